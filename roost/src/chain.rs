use std::fmt;

/// An error with all of its causes on one line.
pub(crate) struct Chain<'a>(pub(crate) &'a anyhow::Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = String::new();
        for cause in self.0.chain() {
            let text = cause.to_string();
            // Some causes repeat what is above them; once is enough.
            if shown.contains(&text) {
                continue;
            }
            if !shown.is_empty() {
                shown.push_str(": ");
            }
            shown.push_str(&text);
        }
        f.write_str(&shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_is_told_once() {
        let error = anyhow::anyhow!("address in use")
            .context("listening on 127.0.0.1:8989")
            .context("starting");
        assert_eq!(
            Chain(&error).to_string(),
            "starting: listening on 127.0.0.1:8989: address in use"
        );
        let error = anyhow::anyhow!("no route").context("connecting: no route");
        assert_eq!(Chain(&error).to_string(), "connecting: no route");
    }
}
