use std::fmt::{self, Write as _};
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// SHA-256 of a certificate in DER form, written as 32 octets in hex with or without colons.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Thumbprint([u8; 32]);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ThumbprintError {
    #[error(
        "{text:?} is a SHA-1 thumbprint, which can be forged; give the SHA-256 one (32 octets)"
    )]
    Sha1 { text: String },
    #[error("{text:?} is not a SHA-256 thumbprint: 32 octets in hex, such as 4C:3D:58:...")]
    Malformed { text: String },
}

impl Thumbprint {
    pub fn of(certificate_der: &[u8]) -> Self {
        Self(Sha256::digest(certificate_der).into())
    }
}

impl FromStr for Thumbprint {
    type Err = ThumbprintError;

    fn from_str(text: &str) -> Result<Self, ThumbprintError> {
        let malformed = || ThumbprintError::Malformed { text: text.to_owned() };
        let digits: Vec<char> = text.trim().chars().filter(|digit| *digit != ':').collect();
        let octets = digits.chunks(2).map(|pair| match pair {
            [high, low] => u8::try_from(high.to_digit(16)? * 16 + low.to_digit(16)?).ok(),
            _ => None,
        });
        let octets = octets.collect::<Option<Vec<u8>>>().ok_or_else(malformed)?;
        match octets.try_into() {
            Ok(octets) => Ok(Self(octets)),
            Err(octets) if octets.len() == 20 => {
                Err(ThumbprintError::Sha1 { text: text.to_owned() })
            }
            Err(_) => Err(malformed()),
        }
    }
}

impl fmt::Display for Thumbprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, octet) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_char(':')?;
            }
            write!(f, "{octet:02X}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Thumbprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "4C:3D:58:C2:80:EA:08:A0:67:53:79:A8:D5:3B:7C:77:6A:8A:40:EE:D1:80:4E:17:26:39:5B:D7:07:23:D4:D8";

    #[test]
    fn a_thumbprint_reads_with_and_without_colons() {
        let thumbprint: Thumbprint = TEXT.parse().unwrap();
        assert_eq!(thumbprint.to_string(), TEXT);
        assert_eq!(TEXT.replace(':', "").to_lowercase().parse(), Ok(thumbprint));
    }

    #[test]
    fn a_wrong_thumbprint_is_one_clear_line() {
        let sha1 = "52:6C:4E:88:1D:78:AE:12:1C:F3:BB:6C:5B:F4:E2:82:86:A7:08:AF";
        for (text, part) in [
            (sha1, "SHA-1"),
            ("", "32 octets"),
            ("4C:3D", "32 octets"),
            (&TEXT.replace('4', "x"), "32 octets"),
        ] {
            let line = text.parse::<Thumbprint>().unwrap_err().to_string();
            assert!(line.contains(part) && !line.contains('\n'), "{line}");
        }
    }
}
