use std::time::Duration;

/// Reads a duration as Go writes it: `1h30m`, `10m0s`, `1.5h`. `None` for what is none, and for negative ones, which mean nothing here.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.strip_prefix('+').unwrap_or(text);
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let (mut rest, mut total) = (text, Duration::ZERO);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, next) = after.split_at(letters);
        let nanos: f64 = match unit {
            "ns" => 1.0,
            "us" | "µs" | "μs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            _ => return None,
        };
        let number: f64 = number.parse().ok()?;
        let part = Duration::try_from_secs_f64(number * nanos / 1e9).ok()?;
        total = total.checked_add(part)?;
        rest = next;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        for (text, wanted) in [
            ("10m", Some(600_000)),
            ("1h30m", Some(5_400_000)),
            ("10m0s", Some(600_000)),
            ("1.5h", Some(5_400_000)),
            ("250ms", Some(250)),
            ("0", Some(0)),
            ("0s", Some(0)),
            ("", None),
            ("10", None),
            ("-5m", None),
            ("m", None),
            ("5 m", None),
        ] {
            assert_eq!(parse_duration(text), wanted.map(Duration::from_millis), "{text:?}");
        }
    }
}
