//! Kubernetes quantities, as far as sizes and processors need them: exact, in thousandths.

use std::fmt;
use std::str::FromStr;

/// `1500m`, `4Gi`, `1e3`: a number with Kubernetes' suffixes, kept in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Quantity {
    thousandths: u128,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a quantity such as 500m, 2, 4Gi or 1G")]
pub struct BadQuantity {
    text: String,
}

impl Quantity {
    pub fn from_units(units: u64) -> Self {
        Self { thousandths: u128::from(units) * 1000 }
    }

    /// Whole units, rounded up, as Kubernetes rounds.
    pub fn value(self) -> u64 {
        u64::try_from(self.thousandths.div_ceil(1000)).unwrap_or(u64::MAX)
    }

    pub fn milli(self) -> u64 {
        u64::try_from(self.thousandths).unwrap_or(u64::MAX)
    }

    pub fn is_zero(self) -> bool {
        self.thousandths == 0
    }
}

impl FromStr for Quantity {
    type Err = BadQuantity;

    fn from_str(text: &str) -> Result<Self, BadQuantity> {
        let bad = || BadQuantity { text: text.to_owned() };
        let text = text.trim();
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, suffix) = text.split_at(split);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() {
            return Err(bad());
        }
        let digits = format!("{whole}{fraction}");
        let digits: u128 = digits.parse().map_err(|_| bad())?;
        let scale = scale(suffix).ok_or_else(bad)?;
        let decimals = u32::try_from(fraction.len()).map_err(|_| bad())?;
        let divisor = 10_u128.checked_pow(decimals).ok_or_else(bad)?;
        let scaled = digits.checked_mul(scale).ok_or_else(bad)?;
        Ok(Self { thousandths: scaled.div_ceil(divisor) })
    }
}

/// Thousandths of one unit with this suffix.
fn scale(suffix: &str) -> Option<u128> {
    let powers = |base: u128, names: &[&str]| {
        let at = names.iter().position(|name| *name == suffix)?;
        base.checked_pow(u32::try_from(at).ok()? + 1)?.checked_mul(1000)
    };
    match suffix {
        "" => Some(1000),
        "m" => Some(1),
        _ if suffix.starts_with(['e', 'E']) && suffix.len() > 1 => {
            let exponent: u32 = suffix[1..].trim_start_matches('+').parse().ok()?;
            10_u128.checked_pow(exponent)?.checked_mul(1000)
        }
        _ => powers(1024, &["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"])
            .or_else(|| powers(1000, &["k", "M", "G", "T", "P", "E"])),
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.thousandths.is_multiple_of(1000) {
            write!(f, "{}", self.thousandths / 1000)
        } else {
            write!(f, "{}m", self.thousandths)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_kubernetes_reads_them() {
        for (text, value, milli) in [
            ("2", 2, 2000),
            ("1500m", 2, 1500),
            ("500m", 1, 500),
            ("4Gi", 4_294_967_296, 4_294_967_296_000),
            ("1G", 1_000_000_000, 1_000_000_000_000),
            ("0.5Gi", 536_870_912, 536_870_912_000),
            ("1e3", 1000, 1_000_000),
            ("1E", 1_000_000_000_000_000_000, u64::MAX),
            ("0", 0, 0),
        ] {
            let quantity: Quantity = text.parse().unwrap();
            assert_eq!((quantity.value(), quantity.milli()), (value, milli), "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in ["", "Gi", "4GiB", "-1", "1.2.3", "ten", "1 Gi", "e3"] {
            assert!(text.parse::<Quantity>().is_err(), "{text}");
        }
    }

    #[test]
    fn it_prints_what_kubernetes_reads() {
        for text in ["2", "1500m", "4294967296"] {
            assert_eq!(text.parse::<Quantity>().unwrap().to_string(), text);
        }
    }
}
