//! Compact JWS with RSA signatures, as much of it as hatchery, worker and API exchange.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::key::{HatcheryKey, KeyError, PublicKey};
use crate::{Secret, json};

const HEADER: &str = r#"{"alg":"RS512","typ":"JWT"}"#;

/// Why a token is not believed or not understood.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TokenError {
    #[error("the token is not three parts of base64")]
    Malformed,
    #[error("the token's claims are not as expected")]
    Claims(#[from] json::DecodeError),
    #[error("the token's signature does not fit the key")]
    Signature,
}

/// Signs claims with RS512.
pub fn sign<T: Serialize>(claims: &T, key: &HatcheryKey) -> Result<Secret, KeyError> {
    let mut token = URL_SAFE_NO_PAD.encode(HEADER);
    token.push('.');
    URL_SAFE_NO_PAD.encode_string(json::encode(claims), &mut token);
    let signature = key.sign(token.as_bytes())?;
    token.push('.');
    URL_SAFE_NO_PAD.encode_string(signature, &mut token);
    Ok(Secret::new(token))
}

/// The claims, without a look at the signature: for who must read them to know whose key to verify with.
pub fn read_unverified<T: DeserializeOwned>(token: &Secret) -> Result<T, TokenError> {
    let parts = Parts::split(token)?;
    Ok(json::decode(&parts.claims)?)
}

/// The claims of a token that `key` signed with any of RS256, RS384 and RS512.
pub fn verify<T: DeserializeOwned>(token: &Secret, key: &PublicKey) -> Result<T, TokenError> {
    let parts = Parts::split(token)?;
    if !key.verifies(&parts.algorithm, parts.message, &parts.signature) {
        return Err(TokenError::Signature);
    }
    Ok(json::decode(&parts.claims)?)
}

/// When a session ends, in the server's own time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Lifetime {
    #[serde(rename = "iat")]
    pub(crate) issued_secs: i64,
    #[serde(rename = "exp")]
    pub(crate) expires_secs: i64,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
}

struct Parts<'a> {
    algorithm: String,
    message: &'a [u8],
    claims: Vec<u8>,
    signature: Vec<u8>,
}

impl<'a> Parts<'a> {
    fn split(token: &'a Secret) -> Result<Self, TokenError> {
        let token = token.expose();
        let (message, signature) = token.rsplit_once('.').ok_or(TokenError::Malformed)?;
        let (header, claims) = message.split_once('.').ok_or(TokenError::Malformed)?;
        let bytes = |part| URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenError::Malformed);
        let header: Header = json::decode(&bytes(header)?)?;
        Ok(Self {
            algorithm: header.alg,
            message: message.as_bytes(),
            claims: bytes(claims)?,
            signature: bytes(signature)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn key() -> HatcheryKey {
        HatcheryKey::parse(&Secret::from(include_str!("../testdata/hatchery-pkcs1.pem"))).unwrap()
    }

    #[test]
    fn a_signed_token_reads_back_and_a_changed_one_does_not() {
        let claims = json!({"sub": "w", "exp": 7});
        let token = sign(&claims, &key()).unwrap();
        assert_eq!(verify::<Value>(&token, &key().public()).unwrap(), claims);
        let mut parts: Vec<String> = token.expose().split('.').map(str::to_owned).collect();
        parts[1] = URL_SAFE_NO_PAD.encode(r#"{"sub":"x","exp":7}"#);
        let forged = Secret::new(parts.join("."));
        assert_eq!(verify::<Value>(&forged, &key().public()), Err(TokenError::Signature));
        assert_eq!(read_unverified::<Value>(&forged).unwrap()["sub"], "x");
    }

    #[test]
    fn what_is_no_token_is_refused_without_being_quoted() {
        for text in ["", "hunter2", "a.b", "hunter2.hunter2.hunter2", "e30.e30."] {
            let error = read_unverified::<Value>(&Secret::from(text)).unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }
}
