use std::error::Error;
use std::fmt;

/// An error with all of its causes on one line. A cause that repeats what stands above it is left out.
#[derive(Debug, Clone, Copy)]
pub struct Chain<'a>(pub &'a (dyn Error + 'a));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.0.to_string();
        let mut next = self.0.source();
        while let Some(cause) = next {
            let text = cause.to_string();
            if !shown.contains(&text) {
                shown.push_str(": ");
                shown.push_str(&text);
            }
            next = cause.source();
        }
        f.write_str(&shown)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{what}")]
    struct Step {
        what: &'static str,
        source: Box<dyn Error>,
    }

    fn step(what: &'static str, source: impl Error + 'static) -> Step {
        Step { what, source: Box::new(source) }
    }

    #[test]
    fn every_cause_is_told_once() {
        let error =
            step("starting", step("listening on 127.0.0.1:8989", io::Error::other("in use")));
        assert_eq!(Chain(&error).to_string(), "starting: listening on 127.0.0.1:8989: in use");
        let error = step("connecting: no route", io::Error::other("no route"));
        assert_eq!(Chain(&error).to_string(), "connecting: no route");
    }
}
