use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::session::SignIn;
use crate::{Answer, Call, CallError, HATCHERY_TYPE, Protocol, Registration, Secret, go_time};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SignInForm {
    #[serde(serialize_with = "Secret::serialize_exposed")]
    pub token: Secret,
    pub name: String,
    #[serde(rename = "type")]
    pub model_type: String,
    pub http_url: String,
    pub config: Value,
    pub public_key: String,
    #[serde(default)]
    pub version: String,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SignInAnswer {
    pub up_to_date: bool,
    pub api_url: String,
    #[serde(serialize_with = "Secret::serialize_exposed")]
    pub token: Secret,
    /// The region that this hatchery works for, whatever its configuration says.
    pub region: String,
    pub hatchery: Hatchery,
}

/// A hatchery as the API keeps it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hatchery {
    pub id: String,
    pub name: String,
    pub model_type: String,
    pub config: Value,
    #[serde(with = "go_time")]
    pub last_heartbeat: Option<Timestamp>,
    pub public_key: String,
    pub http_url: String,
}

/// Who the API says we are.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) region: String,
    pub(crate) hatchery: Hatchery,
}

#[derive(Debug)]
pub(crate) struct V2SignIn {
    pub(crate) token: Secret,
    pub(crate) registration: Arc<Registration>,
}

impl V2SignIn {
    fn form(&self) -> SignInForm {
        SignInForm {
            token: self.token.clone(),
            name: self.registration.name.clone(),
            model_type: HATCHERY_TYPE.to_owned(),
            http_url: self.registration.http_url.clone(),
            config: self.registration.v2_config(),
            public_key: self.registration.public_key(),
            version: self.registration.version.clone(),
        }
    }
}

impl SignIn for V2SignIn {
    const PROTOCOL: Protocol = Protocol::V2;
    type Identity = Identity;

    fn call(&self) -> Call {
        Call::post("/v2/auth/consumer/hatchery/signin").json(&self.form()).carrying(&self.token)
    }

    fn read(&self, answer: &Answer) -> Result<(Secret, Identity), CallError> {
        let answer: SignInAnswer = answer.json()?;
        let region = match (&*answer.region, &self.registration.region) {
            ("", Some(configured)) => configured.clone(),
            _ => answer.region,
        };
        Ok((answer.token, Identity { region, hatchery: answer.hatchery }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::HatcheryKey;
    use crate::json as go_json;

    #[test]
    fn the_form_is_the_one_of_the_reference_with_os_arch_at_the_top_of_config() {
        let pem = Secret::from(include_str!("../../testdata/hatchery-pkcs1.pem"));
        let registration = Arc::new(Registration {
            name: "my-vsphere-hatchery".into(),
            http_url: "http://localhost:8086".into(),
            config: json!({"user": "u", "commonConfiguration": {"osArch": ["linux/amd64"]}}),
            key: Arc::new(HatcheryKey::parse(&pem).unwrap()),
            region: None,
            ignore_job_with_no_region: false,
            os_arch: vec!["linux/amd64".into(), "linux/arm64".into()],
            version: "0.57.0".into(),
        });
        let public_key = registration.public_key();
        let form = V2SignIn { token: "hatchery".into(), registration }.form();
        let sent: Value = serde_json::from_slice(&go_json::encode(&form)).unwrap();
        assert_eq!(
            sent,
            json!({
                "token": "hatchery", "name": "my-vsphere-hatchery", "type": "vsphere",
                "http_url": "http://localhost:8086",
                "config": {
                    "user": "u", "commonConfiguration": {"osArch": ["linux/amd64"]},
                    "osArch": ["linux/amd64", "linux/arm64"]
                },
                "public_key": public_key, "version": "0.57.0"
            })
        );
    }

    #[test]
    fn the_answer_of_the_reference_is_read() {
        let answer = br#"{ "up_to_date": false, "api_url": "http://api", "token": "jwt", "region": "default",
  "hatchery": { "id": "u-1", "name": "my-vsphere-hatchery", "model_type": "vsphere", "config": {},
                "last_heartbeat": "2026-07-01T09:00:00Z", "public_key": "b64", "http_url": "http://localhost:8086" } }"#;
        let answer: SignInAnswer = go_json::decode(answer).unwrap();
        assert_eq!((answer.region.as_str(), answer.token.expose()), ("default", "jwt"));
        assert_eq!(answer.hatchery.id, "u-1");
        assert!(!format!("{answer:?}").contains("jwt"));
    }
}
