//! A key, and the request that somebody else signs a certificate for it.

use std::fmt;

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use sha2::{Digest as _, Sha256};

use crate::IdentityError;

/// Whom a certificate is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedSubject {
    pub common_name: String,
    pub organisation: String,
    /// Names and addresses that the certificate is to be good for.
    pub hosts: Vec<String>,
}

/// A signing request with the key that it is for.
pub struct SigningRequest {
    key: KeyPair,
    pem: String,
}

impl SigningRequest {
    /// With a key that is made now.
    pub fn new(subject: &RequestedSubject) -> Result<Self, IdentityError> {
        let key = KeyPair::generate().map_err(|source| IdentityError::Make { source })?;
        Self::of(key, subject)
    }

    /// With a key that was made for an earlier request, so that it is the same request.
    pub fn with_key(key_pem: &str, subject: &RequestedSubject) -> Result<Self, IdentityError> {
        let key = KeyPair::from_pem(key_pem).map_err(|source| IdentityError::Make { source })?;
        Self::of(key, subject)
    }

    fn of(key: KeyPair, subject: &RequestedSubject) -> Result<Self, IdentityError> {
        let failed = |source| IdentityError::Make { source };
        let mut params = CertificateParams::new(subject.hosts.clone()).map_err(failed)?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, subject.organisation.as_str());
        params.distinguished_name.push(DnType::CommonName, subject.common_name.as_str());
        let request = params.serialize_request(&key).map_err(failed)?;
        let pem = request.pem().map_err(failed)?;
        Ok(Self { key, pem })
    }

    /// PKCS#10.
    pub fn request_pem(&self) -> &str {
        &self.pem
    }

    /// PKCS#8.
    pub fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    /// Of the public key, in hexadecimal digits: the same key, the same text.
    pub fn fingerprint(&self) -> String {
        let digest = Sha256::digest(self.key.public_key_raw());
        let first = digest.iter().take(8).fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        format!("{first:016x}")
    }
}

impl fmt::Debug for SigningRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningRequest")
            .field("fingerprint", &self.fingerprint())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_key_makes_the_same_request_and_is_not_in_what_is_printed() {
        let subject = RequestedSubject {
            common_name: "system:node:a".into(),
            organisation: "system:nodes".into(),
            hosts: vec!["a".into(), "10.0.0.1".into()],
        };
        let first = SigningRequest::new(&subject).unwrap();
        let again = SigningRequest::with_key(&first.key_pem(), &subject).unwrap();
        assert_eq!(first.fingerprint(), again.fingerprint());
        assert_ne!(first.fingerprint(), SigningRequest::new(&subject).unwrap().fingerprint());
        assert!(first.request_pem().starts_with("-----BEGIN CERTIFICATE REQUEST-----"));
        let shown = format!("{first:?}");
        assert_eq!(
            shown,
            format!("SigningRequest {{ fingerprint: {:?}, .. }}", first.fingerprint())
        );
        assert!(SigningRequest::with_key("no key", &subject).is_err());
    }
}
