//! RSA keys: the hatchery's, which signs worker tokens, and the public halves that both sides exchange.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::rsa::KeyPair;
use ring::signature::{self, KeyPair as _, RsaParameters, UnparsedPublicKey};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;

use crate::Secret;

const PUBLIC_BEGIN: &str = "-----BEGIN RSA PUBLIC KEY-----\n";
const PUBLIC_END: &str = "-----END RSA PUBLIC KEY-----\n";
const PEM_WIDTH: usize = 64;

/// Why a key cannot be used. Says nothing of its content.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("the RSA private key is not PEM")]
    NotPem,
    #[error("the private key is PEM of another kind than RSA PKCS#1 or PKCS#8")]
    OtherKind,
    #[error("the RSA private key is refused ({reason}); it must have 2048 to 4096 bits")]
    Refused { reason: String },
    #[error("signing needs randomness and the system has none")]
    NoRandomness,
    #[error("the public key is not base64 of PEM `RSA PUBLIC KEY`")]
    NotPublic,
}

/// The hatchery's RSA private key.
pub struct HatcheryKey(KeyPair);

impl HatcheryKey {
    /// Reads PEM, PKCS#1 or PKCS#8. Lines may be indented, as they are when a key stands in a configuration file.
    pub fn parse(pem: &Secret) -> Result<Self, KeyError> {
        let flush: Vec<&str> = pem.expose().lines().map(str::trim).collect();
        let flush = Secret::new(flush.join("\n"));
        let key = PrivateKeyDer::from_pem_slice(flush.expose().as_bytes())
            .map_err(|_| KeyError::NotPem)?;
        let pair = match &key {
            PrivateKeyDer::Pkcs1(der) => KeyPair::from_der(der.secret_pkcs1_der()),
            PrivateKeyDer::Pkcs8(der) => KeyPair::from_pkcs8(der.secret_pkcs8_der()),
            _ => return Err(KeyError::OtherKind),
        };
        pair.map(Self).map_err(|why| KeyError::Refused { reason: why.to_string() })
    }

    pub fn public(&self) -> PublicKey {
        PublicKey { der: self.0.public_key().as_ref().to_vec() }
    }

    /// An RS512 signature. It is a function of key and message: the randomness only blinds the computation.
    pub(crate) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let mut bytes = vec![0; self.0.public().modulus_len()];
        self.0
            .sign(&signature::RSA_PKCS1_SHA512, &SystemRandom::new(), message, &mut bytes)
            .map_err(|_| KeyError::NoRandomness)?;
        Ok(bytes)
    }
}

impl fmt::Debug for HatcheryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HatcheryKey").field("bits", &(self.0.public().modulus_len() * 8)).finish()
    }
}

/// The public half of an RSA key, in PKCS#1 form.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PublicKey {
    der: Vec<u8>,
}

impl PublicKey {
    /// PEM of type `RSA PUBLIC KEY`. The API refuses the more usual `PUBLIC KEY`.
    pub fn to_pem(&self) -> String {
        let base64 = STANDARD.encode(&self.der);
        let mut pem = String::from(PUBLIC_BEGIN);
        let mut rest = base64.as_str();
        while !rest.is_empty() {
            let (line, more) = rest.split_at(rest.len().min(PEM_WIDTH));
            pem.push_str(line);
            pem.push('\n');
            rest = more;
        }
        pem.push_str(PUBLIC_END);
        pem
    }

    /// As JSON and headers carry it: base64 of the PEM.
    pub fn to_base64(&self) -> String {
        STANDARD.encode(self.to_pem())
    }

    pub fn parse_base64(text: &str) -> Result<Self, KeyError> {
        let pem = STANDARD.decode(text.trim()).map_err(|_| KeyError::NotPublic)?;
        Self::parse_pem(&String::from_utf8_lossy(&pem)).ok_or(KeyError::NotPublic)
    }

    fn parse_pem(pem: &str) -> Option<Self> {
        let (_, body) = pem.split_once(PUBLIC_BEGIN.trim_end())?;
        let (body, _) = body.split_once(PUBLIC_END.trim_end())?;
        let base64: String = body.split_ascii_whitespace().collect();
        STANDARD.decode(base64).ok().map(|der| Self { der })
    }

    /// Whether `bytes` is this key's signature of `message` under RS256, RS384 or RS512.
    pub(crate) fn verifies(&self, algorithm: &str, message: &[u8], bytes: &[u8]) -> bool {
        let parameters: &'static RsaParameters = match algorithm {
            "RS256" => &signature::RSA_PKCS1_2048_8192_SHA256,
            "RS384" => &signature::RSA_PKCS1_2048_8192_SHA384,
            "RS512" => &signature::RSA_PKCS1_2048_8192_SHA512,
            _ => return false,
        };
        UnparsedPublicKey::new(parameters, &self.der).verify(message, bytes).is_ok()
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublicKey").field("bytes", &self.der.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PKCS1: &str = include_str!("../testdata/hatchery-pkcs1.pem");
    const PKCS8: &str = include_str!("../testdata/hatchery-pkcs8.pem");
    const PUBLIC: &str = include_str!("../testdata/hatchery-public.pem");

    #[test]
    fn both_private_forms_give_the_public_key_that_openssl_gives() {
        let indented = PKCS1.replace('\n', "\n      ");
        for pem in [PKCS1, PKCS8, &indented] {
            let key = HatcheryKey::parse(&Secret::from(pem)).unwrap();
            assert_eq!(key.public().to_pem(), PUBLIC);
        }
    }

    #[test]
    fn a_public_key_travels_as_base64_and_no_other_pem_type_is_read() {
        let key = HatcheryKey::parse(&Secret::from(PKCS1)).unwrap().public();
        assert_eq!(PublicKey::parse_base64(&key.to_base64()).unwrap(), key);
        let other = PUBLIC.replace("RSA PUBLIC KEY", "PUBLIC KEY");
        assert!(PublicKey::parse_base64(&STANDARD.encode(other)).is_err());
        assert!(PublicKey::parse_base64("%").is_err());
    }

    #[test]
    fn errors_and_debug_say_nothing_of_the_key() {
        let body = PKCS1.lines().nth(3).unwrap();
        let key = HatcheryKey::parse(&Secret::from(PKCS1)).unwrap();
        assert_eq!(format!("{key:?}"), "HatcheryKey { bits: 2048 }");
        let cut = Secret::new(PKCS1.replacen(body, "", 1));
        let error = HatcheryKey::parse(&cut).unwrap_err();
        assert!(matches!(error, KeyError::Refused { .. }), "{error:?}");
        assert!(matches!(HatcheryKey::parse(&Secret::from("key")), Err(KeyError::NotPem)));
    }

    #[test]
    fn a_signature_verifies_with_its_own_key_and_message_only() {
        let key = HatcheryKey::parse(&Secret::from(PKCS1)).unwrap();
        let signature = key.sign(b"message").unwrap();
        assert_eq!(key.sign(b"message").unwrap(), signature, "the same each time");
        assert!(key.public().verifies("RS512", b"message", &signature));
        assert!(!key.public().verifies("RS512", b"massage", &signature));
        assert!(!key.public().verifies("RS256", b"message", &signature));
        assert!(!key.public().verifies("none", b"message", b""));
    }
}
