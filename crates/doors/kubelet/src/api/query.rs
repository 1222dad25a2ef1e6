//! What requests ask for, read from their query and checked.

use std::time::Duration;

use jiff::Timestamp;
use url::form_urlencoded;

use super::answer::Refusal;

/// Which streams a remote command has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct CommandQuery {
    pub(super) command: Vec<String>,
    pub(super) stdin: bool,
    pub(super) stdout: bool,
    pub(super) stderr: bool,
    pub(super) tty: bool,
}

fn is_yes(value: &str) -> bool {
    matches!(value, "1" | "true")
}

impl CommandQuery {
    pub(super) fn parse(query: &str) -> Result<Self, Refusal> {
        let mut read = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match name.as_ref() {
                "command" => read.command.push(value.into_owned()),
                "input" => read.stdin = is_yes(&value),
                "output" => read.stdout = is_yes(&value),
                "error" => read.stderr = is_yes(&value),
                "tty" => read.tty = is_yes(&value),
                _ => {}
            }
        }
        if read.tty && read.stderr {
            return Err(Refusal::bad("tty and stderr cannot both be true"));
        }
        if !(read.stdin || read.stdout || read.stderr) {
            return Err(Refusal::bad("you must specify at least 1 of stdin, stdout, stderr"));
        }
        Ok(read)
    }
}

/// Which lines of a log are wanted, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct LogQuery {
    pub(super) tail: Option<u64>,
    pub(super) follow: bool,
    pub(super) limit_bytes: Option<u64>,
    pub(super) previous: bool,
    pub(super) since: Option<Timestamp>,
    pub(super) timestamps: bool,
}

impl LogQuery {
    pub(super) fn parse(query: &str, now: Timestamp) -> Result<Self, Refusal> {
        let mut read = Self::default();
        let mut ways_of_since = 0;
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let bad = |what: &str| Refusal::bad(format!("{name}={value:?}: {what}"));
            let number = |least: u64| {
                value
                    .parse::<u64>()
                    .ok()
                    .filter(|number| *number >= least)
                    .ok_or_else(|| bad(&format!("not a whole number of at least {least}")))
            };
            let flag = || match value.as_ref() {
                "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
                "0" | "f" | "F" | "false" | "FALSE" | "False" | "" => Ok(false),
                _ => Err(bad("neither true nor false")),
            };
            match name.as_ref() {
                "tailLines" => read.tail = Some(number(0)?),
                "follow" => read.follow = flag()?,
                "limitBytes" => read.limit_bytes = Some(number(1)?),
                "previous" => read.previous = flag()?,
                "timestamps" => read.timestamps = flag()?,
                "sinceSeconds" => {
                    let ago = Duration::from_secs(number(1)?);
                    read.since = Some(now.checked_sub(ago).unwrap_or(Timestamp::MIN));
                    ways_of_since += 1;
                }
                "sinceTime" => {
                    let time = value.parse().map_err(|_| bad("not a time as RFC 3339 has it"))?;
                    read.since = Some(time);
                    ways_of_since += 1;
                }
                _ => {}
            }
        }
        if ways_of_since > 1 {
            return Err(Refusal::bad("at most one of sinceTime or sinceSeconds may be specified"));
        }
        Ok(read)
    }
}

/// The ports of a forwarding that names them in its query, as WebSockets without SPDY do.
pub(super) fn ports(query: &str) -> Result<Vec<u16>, Refusal> {
    let pairs = form_urlencoded::parse(query.as_bytes());
    let texts = pairs.filter(|(name, _)| matches!(name.as_ref(), "port" | "ports"));
    let mut ports = Vec::new();
    for (_, texts) in texts {
        for text in texts.split(',') {
            let port = text.trim().parse::<u16>().ok().filter(|port| *port > 0);
            ports.push(port.ok_or_else(|| Refusal::bad(format!("{text:?} is no port")))?);
        }
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_read_as_the_api_server_sends_it() {
        let read =
            CommandQuery::parse("command=sh&command=-c&command=echo+a+b%26c&error=1&output=1");
        let wanted = CommandQuery {
            command: ["sh", "-c", "echo a b&c"].map(str::to_owned).into(),
            stdout: true,
            stderr: true,
            ..CommandQuery::default()
        };
        assert_eq!(read, Ok(wanted));
        assert!(CommandQuery::parse("command=sh&input=1&output=1&tty=1").unwrap().tty);
        for bad in ["command=sh&tty=1&error=1", "command=sh", ""] {
            assert_eq!(CommandQuery::parse(bad).unwrap_err().status, 400, "{bad}");
        }
    }

    #[test]
    fn log_options_are_read_and_checked() {
        let now = Timestamp::from_second(1000).unwrap();
        let read = LogQuery::parse(
            "tailLines=10&timestamps=true&follow=1&limitBytes=5&sinceSeconds=300",
            now,
        );
        let wanted = LogQuery {
            tail: Some(10),
            follow: true,
            limit_bytes: Some(5),
            previous: false,
            since: Timestamp::from_second(700).ok(),
            timestamps: true,
        };
        assert_eq!(read, Ok(wanted));
        let since = LogQuery::parse("sinceTime=1970-01-01T00:00:05Z", now).unwrap().since;
        assert_eq!(since, Timestamp::from_second(5).ok());
        for bad in [
            "tailLines=-1",
            "limitBytes=0",
            "sinceSeconds=0",
            "follow=maybe",
            "sinceTime=yesterday",
            "sinceTime=1970-01-01T00:00:05Z&sinceSeconds=5",
        ] {
            assert_eq!(LogQuery::parse(bad, now).unwrap_err().status, 400, "{bad}");
        }
    }

    #[test]
    fn ports_may_be_repeated_or_listed() {
        assert_eq!(ports("port=80&port=443"), Ok(vec![80, 443]));
        assert_eq!(ports("ports=80,443"), Ok(vec![80, 443]));
        assert_eq!(ports("port=0").unwrap_err().status, 400);
        assert_eq!(ports("port=http").unwrap_err().status, 400);
    }
}
