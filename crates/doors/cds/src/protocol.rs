use std::fmt;

/// The two generations of CDS workflows. A hatchery speaks each for which it has a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// Pipelines: jobs with numbers, requirements and worker models in the API's database.
    V1,
    /// Workflows as code: jobs with UUIDs, worker models in repositories.
    V2,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1 => "V1",
            Self::V2 => "V2",
        })
    }
}

/// The id of a job of either generation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum JobId {
    V1(i64),
    V2(String),
}

impl JobId {
    /// Tells the two apart as CDS does: what reads as a UUID is V2, a positive number is V1. `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        if is_uuid(text) {
            return Some(Self::V2(text.to_ascii_lowercase()));
        }
        text.parse().ok().filter(|number| *number > 0).map(Self::V1)
    }

    pub fn protocol(&self) -> Protocol {
        match self {
            Self::V1(_) => Protocol::V1,
            Self::V2(_) => Protocol::V2,
        }
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V1(number) => number.fmt(f),
            Self::V2(uuid) => f.write_str(uuid),
        }
    }
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_v2_and_positive_numbers_are_v1() {
        let uuid = "0d3b6e2c-8a51-4f6e-9c1d-2f5b7a90c3e4";
        assert_eq!(JobId::parse(uuid), Some(JobId::V2(uuid.into())));
        assert_eq!(JobId::parse(&uuid.to_uppercase()), Some(JobId::V2(uuid.into())));
        assert_eq!(JobId::parse("123"), Some(JobId::V1(123)));
        for neither in ["", "0", "-1", "12x", "0d3b6e2c-8a51-4f6e-9c1d-2f5b7a90c3e"] {
            assert_eq!(JobId::parse(neither), None, "{neither:?}");
        }
    }
}
