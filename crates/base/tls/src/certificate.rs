//! What a certificate says of itself: whose it is, who signed it, how long it is good for.
//!
//! Only for telling people. Whether it is believed is decided by the code that also guards the connections.

use jiff::Timestamp;

/// The parts that a person wants to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The common name, else the organisation, else a dash.
    pub subject: String,
    pub common_name: Option<String>,
    /// Of the subject, in their order. Kubernetes takes them for a client's groups.
    pub organisations: Vec<String>,
    pub issuer: String,
    pub is_self_signed: bool,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
}

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_ID: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const EXPLICIT_VERSION: u8 = 0xa0;

/// 2.5.4.3
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// 2.5.4.10
const ORGANISATION: &[u8] = &[0x55, 0x04, 0x0a];

impl Certificate {
    /// `None` if it is not a certificate.
    pub fn read(der: &[u8]) -> Option<Self> {
        let (whole, _) = Der::take(der, SEQUENCE)?;
        let (mut body, _) = Der::take(whole, SEQUENCE)?;
        if body.first() == Some(&EXPLICIT_VERSION) {
            body = Der::any(body)?.rest;
        }
        // The serial number, the signature's algorithm.
        body = Der::any(body)?.rest;
        body = Der::any(body)?.rest;
        let (issuer, body) = Der::take(body, SEQUENCE)?;
        let (validity, body) = Der::take(body, SEQUENCE)?;
        let (subject, _) = Der::take(body, SEQUENCE)?;
        let not_before = Der::any(validity)?;
        let not_after = Der::any(not_before.rest)?;
        Some(Self {
            is_self_signed: issuer == subject,
            common_name: attribute(subject, COMMON_NAME),
            organisations: attributes(subject, ORGANISATION),
            subject: name(subject),
            issuer: name(issuer),
            not_before: time(not_before.tag, not_before.content)?,
            not_after: time(not_after.tag, not_after.content)?,
        })
    }
}

/// One value with its tag.
struct Der<'a> {
    tag: u8,
    content: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Der<'a> {
    fn any(bytes: &'a [u8]) -> Option<Self> {
        let (tag, bytes) = bytes.split_first()?;
        let (first, bytes) = bytes.split_first()?;
        let (length, bytes) = match usize::from(*first) {
            short @ 0..0x80 => (short, bytes),
            long => {
                let (digits, bytes) = bytes.split_at_checked(long - 0x80)?;
                if digits.len() > 4 {
                    return None;
                }
                (digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit)), bytes)
            }
        };
        let (content, rest) = bytes.split_at_checked(length)?;
        Some(Self { tag: *tag, content, rest })
    }

    /// What is in a value of this tag, and what follows it.
    fn take(bytes: &'a [u8], tag: u8) -> Option<(&'a [u8], &'a [u8])> {
        Self::any(bytes).filter(|value| value.tag == tag).map(|value| (value.content, value.rest))
    }
}

fn name(parts: &[u8]) -> String {
    let named = attribute(parts, COMMON_NAME).or_else(|| attribute(parts, ORGANISATION));
    named.unwrap_or_else(|| "-".to_owned())
}

/// The first attribute of a name that has this id.
fn attribute(parts: &[u8], wanted: &[u8]) -> Option<String> {
    attributes(parts, wanted).into_iter().next()
}

/// All attributes of a name that have this id, up to the first that cannot be read.
fn attributes(mut parts: &[u8], wanted: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    while let Some((mut set, rest)) = Der::take(parts, SET) {
        parts = rest;
        while let Some((pair, rest)) = Der::take(set, SEQUENCE) {
            set = rest;
            let Some((id, value)) = Der::take(pair, OBJECT_ID) else { return found };
            if id == wanted {
                let Some(value) = Der::any(value) else { return found };
                found.push(String::from_utf8_lossy(value.content).into_owned());
            }
        }
    }
    found
}

fn time(tag: u8, content: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(content).ok()?;
    let text = match tag {
        // Two digits of a year count from 1950.
        UTC_TIME => {
            let century = if text.get(..2)?.parse::<u8>().ok()? < 50 { "20" } else { "19" };
            format!("{century}{text}")
        }
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let part = |range| text.get(range);
    let (date, clock) = (
        [part(0..4)?, part(4..6)?, part(6..8)?].join("-"),
        [part(8..10)?, part(10..12)?, part(12..14)?].join(":"),
    );
    format!("{date}T{clock}Z").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TlsIdentity;

    #[test]
    fn a_certificate_says_whose_it_is_and_until_when() {
        let identity = TlsIdentity::self_signed("vCenter simulator", &["vc.example.org"]).unwrap();
        let read = Certificate::read(identity.certificate_der()).unwrap();
        assert_eq!(
            (read.subject.as_str(), read.issuer.as_str()),
            ("vCenter simulator", "vCenter simulator")
        );
        assert!(read.is_self_signed);
        assert_eq!(read.organisations, ["Roost"]);
        assert!(read.not_after > Timestamp::constant(2_000_000_000, 0), "{:?}", read.not_after);
    }

    #[test]
    fn both_forms_of_time_are_read() {
        let wanted: Timestamp = "2031-02-03T04:05:06Z".parse().unwrap();
        assert_eq!(time(UTC_TIME, b"310203040506Z"), Some(wanted));
        assert_eq!(time(GENERALIZED_TIME, b"20310203040506Z"), Some(wanted));
        assert_eq!(time(UTC_TIME, b"99"), None);
    }

    #[test]
    fn what_is_cut_short_or_no_certificate_is_none() {
        let whole = TlsIdentity::self_signed("x", &[]).unwrap();
        let der = whole.certificate_der();
        for end in 0..der.len() {
            assert_eq!(Certificate::read(&der[..end]), None, "{end}");
        }
        assert_eq!(Certificate::read(b"hello"), None);
        assert_eq!(Certificate::read(&[0x30, 0xff, 1, 2, 3]), None);
    }
}
