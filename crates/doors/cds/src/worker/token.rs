use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{HatcheryKey, KeyError, Secret, jwt};

/// How long a worker has between its token and its sign-in.
const LIFETIME: Duration = Duration::from_hours(1);

/// The claims of a worker's token: with it a worker proves that this hatchery started it, and for what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerClaims<W> {
    /// The hatchery's name.
    pub iss: String,
    /// The worker's name.
    pub sub: String,
    pub jti: String,
    pub iat: i64,
    pub exp: i64,
    #[serde(rename = "Worker")]
    pub worker: W,
}

/// A worker for a V1 job, or for the registration of a V1 model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct V1Worker {
    /// Misnamed in the protocol.
    #[serde(rename = "worker_model")]
    pub name: String,
    pub model: ClaimedModel,
    #[serde(skip_serializing_if = "is_zero")]
    pub job_id: i64,
    pub register_only: bool,
    pub hatchery_name: String,
}

/// `{}` when the worker runs on a model as code.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClaimedModel {
    #[serde(skip_serializing_if = "is_zero")]
    pub id: i64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// A worker for a V2 job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct V2Worker {
    /// Misnamed in the protocol.
    #[serde(rename = "worker_model")]
    pub name: String,
    pub model_name: String,
    pub run_job_id: String,
    pub hatchery_name: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl V1Worker {
    /// `id` is a fresh UUID.
    pub fn token(self, id: String, now: Timestamp, key: &HatcheryKey) -> Result<Secret, KeyError> {
        let (iss, sub) = (self.hatchery_name.clone(), self.name.clone());
        sign(iss, sub, id, now, self, key)
    }
}

impl V2Worker {
    /// `id` is a fresh UUID.
    pub fn token(self, id: String, now: Timestamp, key: &HatcheryKey) -> Result<Secret, KeyError> {
        let (iss, sub) = (self.hatchery_name.clone(), self.name.clone());
        sign(iss, sub, id, now, self, key)
    }
}

fn sign<W: Serialize>(
    iss: String,
    sub: String,
    jti: String,
    now: Timestamp,
    worker: W,
    key: &HatcheryKey,
) -> Result<Secret, KeyError> {
    let iat = now.as_second();
    let exp = iat.saturating_add_unsigned(LIFETIME.as_secs());
    jwt::sign(&WorkerClaims { iss, sub, jti, iat, exp, worker }, key)
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::{Value, json};

    use super::*;

    fn key() -> HatcheryKey {
        HatcheryKey::parse(&Secret::from(include_str!("../../testdata/hatchery-pkcs1.pem")))
            .unwrap()
    }

    fn now() -> Timestamp {
        "2026-07-01T09:00:00Z".parse().unwrap()
    }

    fn claims(token: &Secret) -> Value {
        jwt::verify(token, &key().public()).unwrap()
    }

    #[test]
    fn a_v1_token_has_the_claims_of_the_reference() {
        let worker = V1Worker {
            name: "keen-bohr".into(),
            model: ClaimedModel { id: 12, name: "debian12".into() },
            job_id: 123,
            register_only: false,
            hatchery_name: "h".into(),
        };
        let token = worker.token("u-1".into(), now(), &key()).unwrap();
        let header = token.expose().split('.').next().unwrap();
        assert_eq!(URL_SAFE_NO_PAD.decode(header).unwrap(), br#"{"alg":"RS512","typ":"JWT"}"#);
        assert_eq!(
            claims(&token),
            json!({
                "iss": "h", "sub": "keen-bohr", "jti": "u-1", "iat": 1_782_896_400, "exp": 1_782_900_000,
                "Worker": {
                    "worker_model": "keen-bohr", "model": {"id": 12, "name": "debian12"},
                    "job_id": 123, "register_only": false, "hatchery_name": "h"
                }
            })
        );
    }

    #[test]
    fn a_registration_has_no_job_and_a_model_as_code_is_an_empty_object() {
        let worker = V1Worker { name: "w".into(), register_only: true, ..V1Worker::default() };
        let token = worker.token("u-1".into(), now(), &key()).unwrap();
        assert_eq!(
            claims(&token)["Worker"],
            json!({"worker_model": "w", "model": {}, "register_only": true, "hatchery_name": ""})
        );
    }

    #[test]
    fn a_v2_token_has_the_claims_of_the_reference() {
        let worker = V2Worker {
            name: "keen-bohr".into(),
            model_name: "P/github/org/repo/debian12".into(),
            run_job_id: "j-1".into(),
            hatchery_name: "h".into(),
        };
        let token = worker.token("u-1".into(), now(), &key()).unwrap();
        assert_eq!(
            claims(&token)["Worker"],
            json!({
                "worker_model": "keen-bohr", "model_name": "P/github/org/repo/debian12",
                "run_job_id": "j-1", "hatchery_name": "h"
            })
        );
    }
}
