//! RSA-OAEP with SHA-512 for a public key that somebody gave us. Only the public half is ever here, so nothing about it must take constant time
//! but the plain text, which is used once and soon worthless.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA512, SHA512_OUTPUT_LEN, digest};

/// Why a key cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyError {
    #[error("the public key is no PEM block PUBLIC KEY")]
    Pem,
    #[error("the public key is no RSA key")]
    Rsa,
    #[error("the public key is too short for SHA-512")]
    Short,
    #[error("the public key has more than 8192 bits, or an exponent of more than 32")]
    Long,
}

/// Larger ones would take long to calculate with.
const MOST_BITS: usize = 8_192;
/// A larger exponent would keep a thread at work for long, and keys in use have 65537.
const EXPONENT_BYTES: usize = 4;

pub(crate) const SEED: usize = SHA512_OUTPUT_LEN;

/// A public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublicKey {
    /// Least significant word first, without zeros at the end.
    modulus: Vec<u32>,
    /// Most significant byte first.
    exponent: Vec<u8>,
    /// Bytes of the modulus.
    length: usize,
}

impl PublicKey {
    /// A PEM block `PUBLIC KEY` with PKCS#1 bytes, as upstream's clients send it, or with an X.509 `SubjectPublicKeyInfo`, as the label says.
    pub(crate) fn parse(pem: &str) -> Result<Self, KeyError> {
        let (begin, end) = ("-----BEGIN PUBLIC KEY-----", "-----END PUBLIC KEY-----");
        let inner = pem.split_once(begin).and_then(|(_, rest)| rest.split_once(end));
        let text: String = inner.ok_or(KeyError::Pem)?.0.split_whitespace().collect();
        let bytes = STANDARD.decode(text).map_err(|_| KeyError::Pem)?;
        let (numbers, _) = Der(&bytes).element(SEQUENCE).ok_or(KeyError::Rsa)?;
        let key = match Der(numbers).element(SEQUENCE) {
            // The algorithm, then the key as a string of bits.
            Some((_, rest)) => {
                let (bits, _) = Der(rest).element(BIT_STRING).ok_or(KeyError::Rsa)?;
                let bytes = bits.strip_prefix(&[0]).ok_or(KeyError::Rsa)?;
                Der(bytes).element(SEQUENCE).ok_or(KeyError::Rsa)?.0
            }
            None => numbers,
        };
        let (modulus, rest) = Der(key).element(INTEGER).ok_or(KeyError::Rsa)?;
        let (exponent, _) = Der(rest).element(INTEGER).ok_or(KeyError::Rsa)?;
        let (modulus, exponent) = (without_zeros(modulus), without_zeros(exponent));
        // An even modulus or exponent is no key.
        let is_odd = |number: &[u8]| number.last().is_some_and(|last| last & 1 == 1);
        if !is_odd(modulus) || !is_odd(exponent) {
            return Err(KeyError::Rsa);
        }
        if modulus.len() * 8 > MOST_BITS || exponent.len() > EXPONENT_BYTES {
            return Err(KeyError::Long);
        }
        let length = modulus.len();
        Ok(Self { modulus: words(modulus), exponent: exponent.to_vec(), length })
    }

    /// `seed` must be new and unpredictable each time.
    pub(crate) fn encrypt(&self, message: &[u8], seed: [u8; SEED]) -> Result<Vec<u8>, KeyError> {
        // 0, masked seed, masked block of: hash of the empty label, zeros, 1, message.
        let block = self.length.checked_sub(SEED + 1).ok_or(KeyError::Short)?;
        let padding = block.checked_sub(SEED + 1 + message.len()).ok_or(KeyError::Short)?;
        let mut data = digest(&SHA512, b"").as_ref().to_vec();
        data.resize(SEED + padding, 0);
        data.push(1);
        data.extend_from_slice(message);
        mask(&mut data, &seed);
        let mut masked_seed = seed;
        mask(&mut masked_seed, &data);
        let mut encoded = vec![0];
        encoded.extend_from_slice(&masked_seed);
        encoded.extend_from_slice(&data);
        let power = self.power(&words(&encoded));
        Ok(bytes(&power, self.length))
    }

    fn power(&self, base: &[u32]) -> Vec<u32> {
        let mut result = vec![1];
        for byte in &self.exponent {
            for bit in (0..8).rev() {
                result = multiply(&result, &result, &self.modulus);
                if byte >> bit & 1 == 1 {
                    result = multiply(&result, base, &self.modulus);
                }
            }
        }
        result
    }
}

/// MGF1: the text is covered by what the seed grows into.
fn mask(text: &mut [u8], seed: &[u8]) {
    for (counter, part) in (0_u32..).zip(text.chunks_mut(SHA512_OUTPUT_LEN)) {
        let grown = digest(&SHA512, &[seed, &counter.to_be_bytes()].concat());
        for (byte, cover) in part.iter_mut().zip(grown.as_ref()) {
            *byte ^= cover;
        }
    }
}

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;

/// As much of DER as keys need.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// What the first element holds if it is of this kind, and what comes after it.
    fn element(&self, tag: u8) -> Option<(&'a [u8], &'a [u8])> {
        let rest = self.0.strip_prefix(&[tag])?;
        let (first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(*first), rest),
            0x81..=0x84 => {
                let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (digits.iter().fold(0, |number, digit| number << 8 | usize::from(*digit)), rest)
            }
            _ => return None,
        };
        rest.split_at_checked(length)
    }
}

fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|digit| **digit == 0).count();
    &number[zeros..]
}

fn words(number: &[u8]) -> Vec<u32> {
    let word = |part: &[u8]| part.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
    let mut words: Vec<u32> = number.rchunks(4).map(word).collect();
    trim(&mut words);
    words
}

fn bytes(number: &[u32], length: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = number.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.resize(length, 0);
    bytes.reverse();
    bytes
}

fn trim(number: &mut Vec<u32>) {
    while number.last() == Some(&0) {
        number.pop();
    }
}

/// One factor is added for each bit of the other: slow and short, and once per request.
fn multiply(one: &[u32], other: &[u32], modulus: &[u32]) -> Vec<u32> {
    let mut result = Vec::new();
    for word in one.iter().rev() {
        for bit in (0..32).rev() {
            let twice = result.clone();
            add(&mut result, &twice, modulus);
            if word >> bit & 1 == 1 {
                add(&mut result, other, modulus);
            }
        }
    }
    result
}

/// Both are smaller than the modulus, so taking it away once is enough.
fn add(number: &mut Vec<u32>, other: &[u32], modulus: &[u32]) {
    number.resize(number.len().max(other.len()) + 1, 0);
    let mut carry = 0_u64;
    for (index, word) in number.iter_mut().enumerate() {
        carry += u64::from(*word) + u64::from(other.get(index).copied().unwrap_or(0));
        let low = carry & u64::from(u32::MAX);
        *word = u32::try_from(low).unwrap_or(u32::MAX);
        carry >>= 32;
    }
    trim(number);
    if is_less(number, modulus) {
        return;
    }
    let mut borrow = 0_i64;
    for (index, word) in number.iter_mut().enumerate() {
        let less = i64::from(modulus.get(index).copied().unwrap_or(0));
        let mut left = i64::from(*word) - less + borrow;
        borrow = 0;
        if left < 0 {
            left += 1 << 32;
            borrow = -1;
        }
        *word = u32::try_from(left).unwrap_or(u32::MAX);
    }
    trim(number);
}

/// Both without zeros at the end.
fn is_less(one: &[u32], other: &[u32]) -> bool {
    one.len().cmp(&other.len()).then_with(|| one.iter().rev().cmp(other.iter().rev())).is_lt()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PKCS_1: &str = "\
-----BEGIN PUBLIC KEY-----\n\
MIIBCgKCAQEAxbcWH0vtR6xQmpfr3exgblaQ2Hutx+J9ec7mydeSLmr4CCts3M0B\n\
VIJwM0dRtDxEj3oayMjg63PmeuzDpSZF7XfNlWwFD0v5/appNuyCOE/d+7kjUsBg\n\
pCpkbHm+aCfx9jmDMlvBLIHkz9++f4oa8WtJlm0wiTvuKXql+mwy1nwxMEqZwenJ\n\
B5jZxiTdIFDzi6LXvluMIr48fuESilNDOPnKkxEaOn0qKpX/amW7gZoD7gMVoKBO\n\
6VhCpriRXgXYnQLdZHCEaJyC3eyn8W+5I2YF1ytlfPzFk5le94eT4VYegw4CBB47\n\
ZHikTgbG5BRFSm+21ZjGurvOkU1S2c/jxQIDAQAB\n\
-----END PUBLIC KEY-----\n";

    const X_509: &str = "\
-----BEGIN PUBLIC KEY-----\n\
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAxbcWH0vtR6xQmpfr3exg\n\
blaQ2Hutx+J9ec7mydeSLmr4CCts3M0BVIJwM0dRtDxEj3oayMjg63PmeuzDpSZF\n\
7XfNlWwFD0v5/appNuyCOE/d+7kjUsBgpCpkbHm+aCfx9jmDMlvBLIHkz9++f4oa\n\
8WtJlm0wiTvuKXql+mwy1nwxMEqZwenJB5jZxiTdIFDzi6LXvluMIr48fuESilND\n\
OPnKkxEaOn0qKpX/amW7gZoD7gMVoKBO6VhCpriRXgXYnQLdZHCEaJyC3eyn8W+5\n\
I2YF1ytlfPzFk5le94eT4VYegw4CBB47ZHikTgbG5BRFSm+21ZjGurvOkU1S2c/j\n\
xQIDAQAB\n\
-----END PUBLIC KEY-----\n";

    /// Made by other means, and decrypted by `openssl pkeyutl -pkeyopt rsa_padding_mode:oaep -pkeyopt rsa_oaep_md:sha512`.
    const SECRET: &str = "\
TC5ZsBiedaywlU3NnxBIaUQ9NBHqo937uAbVOrWZbQV0WLl4moQK9lZA4S+qxzOFQ4GiVLX+ehUr\
3j0ylIpz703aitWjk1Tgm8xTlOFiWQbJay/6pvmqddWk74IohU7bODNQyr7/6XQ6wwteCM50yhfv\
uB7AsnNEqg1PJAN4AkLWXeU8CBH8ZKbzyCiiTuy023YOtFsnAlzg4DOZvMFvIghISkdD/9znCWS4\
2z9GB4gMM5PpDTHN7JCtpRPTYm1JUx2zI/LrVb0uI/Ph73bA9GqPZOLavNNLZLCTpl6AfbGbJMFR\
CM9poEzfBq71Ypu7eUawTqSZ3diXvKd0JK71QA==";

    #[test]
    fn a_text_is_encrypted_as_others_do_it() {
        let seed: [u8; SEED] = std::array::from_fn(|index| u8::try_from(index).unwrap());
        for pem in [PKCS_1, X_509] {
            let key = PublicKey::parse(pem).unwrap();
            let secret = key.encrypt(b"wss://esx-1:443/ticket/52a1", seed).unwrap();
            assert_eq!(STANDARD.encode(secret), SECRET);
        }
    }

    #[test]
    fn what_is_no_key_or_too_short_is_refused() {
        assert_eq!(PublicKey::parse("x"), Err(KeyError::Pem));
        let block = |text: &str| {
            PublicKey::parse(&format!(
                "-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----"
            ))
        };
        assert_eq!(block("!"), Err(KeyError::Pem));
        assert_eq!(block("AAAA"), Err(KeyError::Rsa));
        // A modulus of 3, and an exponent of four and of five bytes.
        let with_exponent = |exponent: &[u8]| {
            let length = u8::try_from(exponent.len()).unwrap();
            let key = [&[SEQUENCE, length + 5, INTEGER, 1, 3, INTEGER, length], exponent].concat();
            block(&STANDARD.encode(key))
        };
        assert!(with_exponent(&[1; 4]).is_ok());
        assert_eq!(with_exponent(&[1; 5]), Err(KeyError::Long));
        let key = PublicKey::parse(PKCS_1).unwrap();
        assert_eq!(key.encrypt(&[0; 127], [0; SEED]), Err(KeyError::Short));
        assert!(key.encrypt(&[0; 126], [0; SEED]).is_ok());
    }
}
