use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::session::SignIn;
use crate::{Answer, Call, CallError, MonitoringStatus, Protocol, Registration, Secret, go_time};

/// Sign-in and registration of a service in one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SignInForm {
    #[serde(serialize_with = "Secret::serialize_exposed")]
    pub token: Secret,
    pub service: Service,
}

/// A service as the API keeps it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Service {
    /// By which a booking names its hatchery.
    pub id: i64,
    pub name: String,
    #[serde(rename = "type")]
    pub service_type: String,
    pub http_url: String,
    pub config: Value,
    pub public_key: String,
    pub region: Option<String>,
    pub ignore_job_with_no_region: Option<bool>,
    #[serde(with = "go_time")]
    pub last_heartbeat: Option<Timestamp>,
    pub monitoring_status: MonitoringStatus,
    pub version: String,
    pub up_to_date: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SignInAnswer {
    pub api_url: String,
    #[serde(serialize_with = "Secret::serialize_exposed")]
    pub token: Secret,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<Service>,
}

#[derive(Debug)]
pub(crate) struct V1SignIn {
    pub(crate) token: Secret,
    pub(crate) registration: Arc<Registration>,
}

impl V1SignIn {
    fn form(&self) -> SignInForm {
        let registration = &self.registration;
        let service = Service {
            name: registration.name.clone(),
            service_type: "hatchery".to_owned(),
            http_url: registration.http_url.clone(),
            config: registration.config.clone(),
            public_key: registration.public_key(),
            region: registration.region.clone().filter(|region| !region.is_empty()),
            ignore_job_with_no_region: registration.ignore_job_with_no_region.then_some(true),
            version: registration.version.clone(),
            ..Service::default()
        };
        SignInForm { token: self.token.clone(), service }
    }
}

impl SignIn for V1SignIn {
    const PROTOCOL: Protocol = Protocol::V1;
    /// `None` when the token's consumer is not bound to a service; such a session cannot book.
    type Identity = Option<Service>;

    fn call(&self) -> Call {
        Call::post("/auth/consumer/builtin/signin").json(&self.form()).carrying(&self.token)
    }

    fn read(&self, answer: &Answer) -> Result<(Secret, Self::Identity), CallError> {
        let answer: SignInAnswer = answer.json()?;
        Ok((answer.token, answer.service))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::HatcheryKey;
    use crate::json as go_json;

    fn registration() -> Registration {
        let pem = Secret::from(include_str!("../../testdata/hatchery-pkcs1.pem"));
        Registration {
            name: "my-vsphere-hatchery".into(),
            http_url: "http://localhost:8086".into(),
            config: json!({
                "commonConfiguration": {"name": "my-vsphere-hatchery", "osArch": ["linux/amd64"]},
                "user": "u",
                "endpoint": "e"
            }),
            key: Arc::new(HatcheryKey::parse(&pem).unwrap()),
            region: Some("eu-west".into()),
            ignore_job_with_no_region: true,
            os_arch: vec!["linux/amd64".into()],
            version: String::new(),
        }
    }

    #[test]
    fn the_form_is_the_one_of_the_reference() {
        let registration = Arc::new(registration());
        let public_key = registration.public_key();
        let form = V1SignIn { token: "consumer".into(), registration }.form();
        let sent: Value = serde_json::from_slice(&go_json::encode(&form)).unwrap();
        assert_eq!(
            sent,
            json!({
                "token": "consumer",
                "service": {
                    "id": 0, "name": "my-vsphere-hatchery", "type": "hatchery",
                    "http_url": "http://localhost:8086",
                    "config": {
                        "commonConfiguration": {"name": "my-vsphere-hatchery", "osArch": ["linux/amd64"]},
                        "user": "u", "endpoint": "e"
                    },
                    "public_key": public_key,
                    "region": "eu-west", "ignore_job_with_no_region": true,
                    "last_heartbeat": "0001-01-01T00:00:00Z",
                    "monitoring_status": {"now": "0001-01-01T00:00:00Z", "lines": null},
                    "version": "", "up_to_date": false
                }
            })
        );
    }

    #[test]
    fn an_empty_region_and_a_flag_that_is_off_are_null() {
        let registration = Registration {
            region: Some(String::new()),
            ignore_job_with_no_region: false,
            ..registration()
        };
        let form = V1SignIn { token: "t".into(), registration: Arc::new(registration) }.form();
        let sent: Value = serde_json::from_slice(&go_json::encode(&form)).unwrap();
        assert_eq!(sent["service"]["region"], Value::Null);
        assert_eq!(sent["service"]["ignore_job_with_no_region"], Value::Null);
    }

    #[test]
    fn the_answer_carries_token_and_service() {
        let answer = br#"{"api_url":"http://api","token":"jwt","user":{"id":"x"},
            "service":{"id":42,"name":"h","type":"hatchery","region":null,"extra":[1]}}"#;
        let answer: SignInAnswer = go_json::decode(answer).unwrap();
        assert_eq!(answer.token.expose(), "jwt");
        assert_eq!(answer.service.unwrap().id, 42);
    }
}
