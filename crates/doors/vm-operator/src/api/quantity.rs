//! Amounts as Kubernetes writes them: `4Gi`, `500m`, `1e3`, or a plain number.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An amount, kept as it was written so that writing it back changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Quantity {
    Number(i64),
    Text(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text} is no quantity: a number with an optional suffix such as Gi, M or m")]
pub struct QuantityError {
    pub text: String,
}

/// Thousandths, the smallest unit that any of our amounts has.
const MILLI: i128 = 1000;

impl Quantity {
    pub fn new(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// As few digits as the binary suffixes allow: `4Gi`, `1536Mi`, `1000`.
    pub fn from_bytes(bytes: i64) -> Self {
        let suffixes = [("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];
        for (suffix, shift) in suffixes {
            if bytes != 0 && bytes % (1_i64 << shift) == 0 {
                return Self::Text(format!("{}{suffix}", bytes >> shift));
            }
        }
        Self::Text(bytes.to_string())
    }

    /// In thousandths, rounded up.
    pub fn milli(&self) -> Result<i128, QuantityError> {
        match self {
            Self::Number(number) => Ok(i128::from(*number) * MILLI),
            Self::Text(text) => {
                parse(text.trim()).ok_or_else(|| QuantityError { text: text.clone() })
            }
        }
    }

    /// Whole units, rounded up as Kubernetes does.
    pub fn value(&self) -> Result<i64, QuantityError> {
        let milli = self.milli()?;
        let whole = milli.div_euclid(MILLI) + i128::from(milli.rem_euclid(MILLI) != 0);
        i64::try_from(whole).map_err(|_| QuantityError { text: self.to_string() })
    }

    /// In units of 2^20, rounded up.
    pub fn mebibytes(&self) -> Result<i64, QuantityError> {
        let bytes = self.value()?;
        Ok(bytes.div_euclid(1 << 20) + i64::from(bytes.rem_euclid(1 << 20) != 0))
    }

    pub fn is_zero(&self) -> bool {
        self.milli() == Ok(0)
    }
}

fn parse(text: &str) -> Option<i128> {
    let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '+' | '-'));
    let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
    let (negative, digits) = match number.as_bytes().first()? {
        b'-' => (true, &number[1..]),
        b'+' => (false, &number[1..]),
        _ => (false, number),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if (whole.is_empty() && fraction.is_empty())
        || fraction.contains(['.', '+', '-'])
        || whole.contains(['+', '-'])
    {
        return None;
    }
    // The number is `mantissa / 10^places`.
    let places = u32::try_from(fraction.len()).ok()?;
    let mantissa: i128 = format!("{whole}{fraction}").parse().ok()?;
    let (numerator, denominator) = scale(suffix)?;
    let numerator = mantissa.checked_mul(numerator)?.checked_mul(MILLI)?;
    let denominator = 10_i128.checked_pow(places)?.checked_mul(denominator)?;
    let milli = numerator / denominator + i128::from(numerator % denominator != 0);
    Some(if negative { -milli } else { milli })
}

fn scale(suffix: &str) -> Option<(i128, i128)> {
    let binary = |power: u32| Some((1_i128 << (10 * power), 1));
    let decimal = |power: u32| Some((10_i128.pow(3 * power), 1));
    match suffix {
        "" => Some((1, 1)),
        "n" => Some((1, 1_000_000_000)),
        "u" => Some((1, 1_000_000)),
        "m" => Some((1, 1000)),
        "k" => decimal(1),
        "M" => decimal(2),
        "G" => decimal(3),
        "T" => decimal(4),
        "P" => decimal(5),
        "E" => decimal(6),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            let power = 10_i128.checked_pow(exponent.unsigned_abs())?;
            Some(if exponent < 0 { (1, power) } else { (power, 1) })
        }
    }
}

impl Default for Quantity {
    fn default() -> Self {
        Self::Text("0".to_owned())
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(formatter),
            Self::Text(text) => text.fmt(formatter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_kubernetes_reads_them() {
        for (text, milli) in [
            ("0", 0),
            ("1", 1000),
            ("500m", 500),
            ("1.5", 1500),
            (".5", 500),
            ("-2", -2000),
            ("4Gi", 4 * 1024 * 1024 * 1024 * 1000),
            ("1e3", 1_000_000),
            ("1E-3", 1),
            ("2k", 2_000_000),
            ("100n", 1),
            ("1E", 1_000_000_000_000_000_000_000),
        ] {
            assert_eq!(Quantity::new(text).milli(), Ok(milli), "{text}");
        }
        for text in ["", "Gi", "4GiB", "1.2.3", "four", "1e", "--1", "."] {
            assert!(Quantity::new(text).milli().is_err(), "{text}");
        }
        assert_eq!(Quantity::Number(7).value(), Ok(7));
    }

    #[test]
    fn parts_of_a_unit_count_as_a_whole_one() {
        assert_eq!(Quantity::new("1500m").value(), Ok(2));
        assert_eq!(Quantity::new("1000k").mebibytes(), Ok(1));
        assert_eq!(Quantity::new("4Gi").mebibytes(), Ok(4096));
        assert!(Quantity::new("0").is_zero() && !Quantity::new("1").is_zero());
    }

    #[test]
    fn an_amount_is_written_back_as_it_was() {
        for json in ["\"4Gi\"", "4294967296", "\"0.5\""] {
            let quantity: Quantity = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&quantity).unwrap(), json);
        }
        assert_eq!(Quantity::from_bytes(4 << 30).to_string(), "4Gi");
        assert_eq!(Quantity::from_bytes(1536 << 20).to_string(), "1536Mi");
        assert_eq!(Quantity::from_bytes(1000).to_string(), "1000");
        assert_eq!(Quantity::from_bytes(0).to_string(), "0");
    }
}
