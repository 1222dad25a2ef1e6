use std::sync::Arc;
use std::time::Duration;

use roost_clock::Clock;
use roost_supervise::Chain;
use tracing::warn;
use url::Url;

use crate::{
    Api, CallError, CdnConfig, Heartbeat, HeartbeatSettings, Probe, QueueSettings, QueueWatch,
    Registration, Secret, Transport, Version, v1, v2,
};

/// Where the API is and who we are.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Scheme, host, port, and a path if the API has one before its own.
    pub url: Url,
    /// Of each attempt of a call; zero means 60 s.
    pub request_timeout: Duration,
    /// Of a V1 consumer. V1 is spoken if it is there.
    pub token: Option<Secret>,
    /// Of a V2 hatchery. V2 is spoken if it is there.
    pub token_v2: Option<Secret>,
    pub registration: Registration,
}

impl Settings {
    /// What an operator gets without asking for anything else.
    pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
}

/// Why settings cannot work.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SettingsError {
    #[error("the API's address has the scheme {scheme}, only http and https are spoken")]
    Scheme { scheme: String },
    #[error("the API's address holds a user name or password; the token is the only credential")]
    Credentials,
    #[error("there is neither a V1 token nor a V2 token")]
    NoToken,
    #[error("the hatchery has no name")]
    NoName,
}

/// A CDS API as a hatchery sees it: one half for each protocol that there is a token for.
#[derive(Debug, Clone)]
pub struct Client {
    v1: Option<v1::Client>,
    v2: Option<v2::Client>,
    api: Api,
    clock: Arc<dyn Clock>,
}

impl Client {
    /// Sends nothing yet.
    pub fn new(
        settings: Settings,
        transport: Arc<dyn Transport>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SettingsError> {
        let Settings { url, request_timeout, token, token_v2, registration } = settings;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(SettingsError::Scheme { scheme: url.scheme().to_owned() });
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(SettingsError::Credentials);
        }
        if registration.name.is_empty() {
            return Err(SettingsError::NoName);
        }
        let (token, token_v2) = (token.filter(is_given), token_v2.filter(is_given));
        if token.is_none() && token_v2.is_none() {
            return Err(SettingsError::NoToken);
        }
        let api = Api::new(transport, &url, request_timeout, clock.clone());
        let registration = Arc::new(registration);
        let v1 = token.map(|token| v1::Client::new(api.clone(), token, registration.clone()));
        let v2 = token_v2.map(|token| v2::Client::new(api.clone(), token, registration));
        Ok(Self { v1, v2, api, clock })
    }

    pub fn v1(&self) -> Option<&v1::Client> {
        self.v1.as_ref()
    }

    pub fn v2(&self) -> Option<&v2::Client> {
        self.v2.as_ref()
    }

    /// Signs in to each protocol for the first time, with five minutes of patience for each.
    pub async fn sign_in(&self) -> Result<(), CallError> {
        if let Some(v1) = &self.v1 {
            v1.sign_in().await?;
        }
        if let Some(v2) = &self.v2 {
            v2.sign_in().await?;
        }
        Ok(())
    }

    /// Where workers send their logs; asked of V2 if it is spoken.
    pub async fn cdn_config(&self) -> Result<CdnConfig, CallError> {
        match (&self.v1, &self.v2) {
            (_, Some(v2)) => v2.cdn_config().await,
            (Some(v1), None) => v1.cdn_config().await,
            (None, None) => Ok(CdnConfig::default()),
        }
    }

    /// What the API says of itself, which needs no session.
    pub async fn version(&self) -> Result<Version, CallError> {
        Probe::new(self.api.clone()).version().await
    }

    /// One watch for each protocol; run each as a task of its own, all into one channel.
    pub fn queue_watches(&self, settings: QueueSettings) -> Vec<QueueWatch> {
        let clock = || self.clock.clone();
        let v1 = self.v1.iter().map(|v1| QueueWatch::v1(v1.clone(), settings, clock()));
        let v2 = self.v2.iter().map(|v2| QueueWatch::v2(v2.clone(), settings, clock()));
        v1.chain(v2).collect()
    }

    /// One heartbeat for each protocol; run each as a task of its own.
    pub fn heartbeats(&self, settings: HeartbeatSettings) -> Vec<Heartbeat> {
        let clock = || self.clock.clone();
        let v1 = self.v1.iter().map(|v1| Heartbeat::v1(v1.clone(), settings, clock()));
        let v2 = self.v2.iter().map(|v2| Heartbeat::v2(v2.clone(), settings, clock()));
        v1.chain(v2).collect()
    }

    /// Ends the V1 session at shutdown. V2 has no such call.
    pub async fn sign_out(&self) {
        if let Some(v1) = &self.v1
            && let Err(error) = v1.sign_out().await
        {
            warn!("signing out of CDS failed: {}", Chain(&error));
        }
    }
}

fn is_given(token: &Secret) -> bool {
    !token.is_empty()
}
