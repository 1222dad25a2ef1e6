use std::fmt;
use std::time::Duration;

/// Prints a duration as Go does after rounding it to seconds: `12s`, `1m5s`, `2h0m0s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoDuration(pub Duration);

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.0.saturating_add(Duration::from_millis(500)).as_secs();
        let (hours, minutes, seconds) = (all / 3600, all / 60 % 60, all % 60);
        match (hours, minutes) {
            (0, 0) => write!(f, "{seconds}s"),
            (0, _) => write!(f, "{minutes}m{seconds}s"),
            _ => write!(f, "{hours}h{minutes}m{seconds}s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_go_prints_them() {
        for (millis, text) in [
            (0, "0s"),
            (499, "0s"),
            (11_500, "12s"),
            (65_000, "1m5s"),
            (7_200_000, "2h0m0s"),
            (90_061_000, "25h1m1s"),
        ] {
            assert_eq!(GoDuration(Duration::from_millis(millis)).to_string(), text);
        }
    }
}
