//! A look at an API from outside, for who wants to know whether a hatchery could work with it.
//!
//! A hatchery's sign-in also writes down who it is: address, configuration and public key replace what the API had. With another
//! key than that of a hatchery at work, its workers would be refused from then on. So nothing here registers anything: V1 lets a
//! token sign in alone, as people do, which opens a session beside all others. V2 has no such way.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::v1::{Model, SignInAnswer};
use crate::{Answer, Api, Call, CallError, Secret};

/// For each call, all attempts included.
const BUDGET: Duration = Duration::from_secs(15);
const API_TIME: &str = "x-api-time";

/// Asks without being anybody.
#[derive(Debug, Clone)]
pub struct Probe {
    api: Api,
}

/// What the API says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Empty if what answers is no CDS API.
    pub version: String,
    /// By the API's own clock, if it told.
    pub time: Option<Timestamp>,
}

/// A V1 session that registered nothing. It lasts until [`ProbeSession::end`], else an hour.
#[derive(Debug)]
pub struct ProbeSession {
    api: Api,
    token: Secret,
}

#[derive(Serialize)]
struct TokenOnly<'a> {
    #[serde(serialize_with = "Secret::serialize_exposed")]
    token: &'a Secret,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct VersionAnswer {
    version: String,
}

impl Probe {
    pub fn new(api: Api) -> Self {
        Self { api }
    }

    pub async fn version(&self) -> Result<Version, CallError> {
        let answer = self.api.call(&Call::get("/mon/version").within(BUDGET), None).await?;
        let told: VersionAnswer = answer.json().unwrap_or_default();
        Ok(Version { version: told.version, time: time_of(&answer) })
    }

    /// Signs in by a V1 token alone.
    pub async fn sign_in_v1(&self, token: &Secret) -> Result<ProbeSession, CallError> {
        let call = Call::post("/auth/consumer/builtin/signin")
            .json(&TokenOnly { token })
            .carrying(token)
            .within(BUDGET);
        let answer: SignInAnswer = self.api.call(&call, None).await?.json()?;
        Ok(ProbeSession { api: self.api.clone(), token: answer.token })
    }
}

impl ProbeSession {
    /// All models that may be used. Refused while no service belongs to the token, so before a hatchery's first sign-in.
    pub async fn enabled_models(&self) -> Result<Vec<Model>, CallError> {
        let call = Call::get("/worker/model/enabled").within(BUDGET);
        self.api.call(&call, Some(&self.token)).await?.json()
    }

    pub async fn end(self) -> Result<(), CallError> {
        let call = Call::post("/auth/consumer/signout").within(BUDGET);
        self.api.call(&call, Some(&self.token)).await.map(drop)
    }
}

fn time_of(answer: &Answer) -> Option<Timestamp> {
    answer.headers.get(API_TIME)?.to_str().ok()?.parse().ok()
}
