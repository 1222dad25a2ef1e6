//! Times as Go writes them: RFC 3339, with the year 1 for "never".

use jiff::Timestamp;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use serde::{Deserialize, Deserializer, Serializer, de};

/// Go's `time.Time{}`.
pub(crate) const ZERO: Timestamp = Timestamp::constant(-62_135_596_800, 0);

/// For `#[serde(with = "crate::go_time")]` on `Option<Timestamp>`: the zero time is `None`, both ways.
#[expect(clippy::ref_option, reason = "serde gives the field as it is")]
pub(crate) fn serialize<S: Serializer>(
    time: &Option<Timestamp>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&time.unwrap_or(ZERO))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Timestamp>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    match text.as_deref() {
        None | Some("") => Ok(None),
        // The message leaves out the text, as all decoding errors do.
        Some(text) => match text.parse::<Timestamp>() {
            Ok(time) => Ok((time != ZERO).then_some(time)),
            Err(_) => Err(de::Error::custom("not an RFC 3339 time")),
        },
    }
}

/// A time that is always there, at the precision that Go clients send by hand: whole seconds.
pub(crate) mod seconds {
    use super::{Deserialize, Deserializer, Serializer, Timestamp, de, rfc3339};

    pub(crate) fn serialize<S: Serializer>(
        time: &Timestamp,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&rfc3339(*time))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Timestamp, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|_| de::Error::custom("not an RFC 3339 time"))
    }
}

/// `2026-07-01T09:14:21Z`
pub(crate) fn rfc3339(time: Timestamp) -> String {
    strtime::format("%Y-%m-%dT%H:%M:%SZ", &time.to_zoned(TimeZone::UTC))
        .unwrap_or_else(|_| time.to_string())
}

/// `1 Jul 2026 09:14:21 +0000`: the form of the `Date` and `X-CDS-RemoteTime` headers.
pub(crate) fn header(time: Timestamp) -> String {
    strtime::format("%-d %b %Y %H:%M:%S +0000", &time.to_zoned(TimeZone::UTC))
        .unwrap_or_else(|_| time.to_string())
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Beat {
        #[serde(default, with = "super")]
        at: Option<Timestamp>,
    }

    #[test]
    fn the_year_one_is_never() {
        for never in [r#"{"at":"0001-01-01T00:00:00Z"}"#, r#"{"at":null}"#, r#"{"at":""}"#, "{}"] {
            assert_eq!(serde_json::from_str::<Beat>(never).unwrap(), Beat { at: None }, "{never}");
        }
        let written = serde_json::to_string(&Beat { at: None }).unwrap();
        assert_eq!(written, r#"{"at":"0001-01-01T00:00:00Z"}"#);
    }

    #[test]
    fn offsets_and_fractions_are_read() {
        let beat: Beat = serde_json::from_str(r#"{"at":"2026-07-01T11:14:21.5+02:00"}"#).unwrap();
        assert_eq!(beat.at.unwrap().to_string(), "2026-07-01T09:14:21.5Z");
        assert!(serde_json::from_str::<Beat>(r#"{"at":"yesterday"}"#).is_err());
    }

    #[test]
    fn headers_have_an_unpadded_day_and_no_weekday() {
        let time: Timestamp = "2026-07-01T09:14:21.9Z".parse().unwrap();
        assert_eq!(header(time), "1 Jul 2026 09:14:21 +0000");
        assert_eq!(rfc3339(time), "2026-07-01T09:14:21Z");
        let time: Timestamp = "2026-12-24T23:00:00Z".parse().unwrap();
        assert_eq!(header(time), "24 Dec 2026 23:00:00 +0000");
    }
}
