//! Asking the CDS API, without leaving anything behind unless that was asked for.

use std::sync::Arc;

use crate::config::{Config, SecretSource, SystemSurroundings};
use crate::run::cds_settings;
use http::StatusCode;
use roost_cds::{Api, CallError, Client, HttpSettings, HttpTransport, Probe, Secret, v1};
use roost_clock::Clock;
use tokio::time::{Instant, timeout};

use super::SignIn;
use roost_doctor::Fact;
use roost_doctor::Skew;
use roost_doctor::{CALL, GOODBYE, SIGN_IN, told, within};

/// What was seen of a CDS API.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) version: Fact<String>,
    pub(super) skew: Fact<Skew>,
    /// `None` without a token.
    pub(super) v1: Option<Token>,
    pub(super) v2: Option<Token>,
    pub(super) models: Fact<Vec<v1::Model>>,
    /// Of the file.
    pub(super) region: Option<String>,
}

/// What became of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// It is good; nothing was registered.
    Accepted,
    /// The hatchery is signed in with it, for this region.
    SignedIn {
        region: Option<String>,
    },
    Refused(String),
    /// The API knows the token and wants the whole sign-in of a hatchery with it, which registers something.
    Known,
    /// The API wants to know more than it was told, and does not say whether it knows the token.
    Unclear(String),
    /// The sign-in came to nothing for another reason.
    Failed(String),
    /// There is no way to try it that changes nothing.
    NotTried,
    Skipped(String),
}

pub(super) async fn collect(config: &Config, sign_in: SignIn, clock: &Arc<dyn Clock>) -> Facts {
    match Asking::new(config, clock) {
        Ok(asking) => asking.facts(sign_in).await,
        Err(why) => unknown(config, &why),
    }
}

fn unknown(config: &Config, why: &str) -> Facts {
    let skipped = || Token::Skipped("the API does not answer".to_owned());
    Facts {
        version: Fact::Failed(why.to_owned()),
        skew: Fact::Skipped("the API does not answer".to_owned()),
        v1: config.api.tokens.v1.as_ref().map(|_| skipped()),
        v2: config.api.tokens.v2.as_ref().map(|_| skipped()),
        models: Fact::Skipped("the API does not answer".to_owned()),
        region: config.region.name.clone(),
    }
}

struct Asking<'a> {
    config: &'a Config,
    clock: &'a Arc<dyn Clock>,
    transport: Arc<HttpTransport>,
    probe: Probe,
}

impl<'a> Asking<'a> {
    fn new(config: &'a Config, clock: &'a Arc<dyn Clock>) -> Result<Self, String> {
        let api = &config.api;
        let http = HttpSettings { insecure: api.insecure, ca_file: api.ca_file.clone() };
        let transport = Arc::new(HttpTransport::new(&http).map_err(told)?);
        let url = api.url.parse().map_err(told)?;
        let carrier: Arc<dyn roost_cds::Transport> = transport.clone();
        let probe = Probe::new(Api::new(carrier, &url, CALL, Arc::clone(clock)));
        Ok(Self { config, clock, transport, probe })
    }

    async fn facts(&self, sign_in: SignIn) -> Facts {
        let (asked, began) = (self.clock.now(), Instant::now());
        let version = match within(CALL, self.probe.version()).await {
            Ok(version) => version,
            Err(why) => return unknown(self.config, &why),
        };
        let way = began.elapsed();
        let skew = match version.time {
            Some(time) => Fact::Known(Skew::of(time, asked, way)),
            None => Fact::Skipped("the API does not tell its time".to_owned()),
        };
        let (v1, models, v2) = match sign_in {
            SignIn::TokenOnly => self.try_tokens().await,
            SignIn::Whole => self.sign_in().await,
        };
        let region = self.config.region.name.clone();
        Facts { version: Fact::Known(version.version), skew, v1, v2, models, region }
    }

    async fn try_tokens(&self) -> (Option<Token>, Fact<Vec<v1::Model>>, Option<Token>) {
        let tokens = &self.config.api.tokens;
        let v2 = tokens.v2.as_ref().map(|_| Token::NotTried);
        let no_session = |why: &str| Fact::Skipped(why.to_owned());
        let Some(source) = &tokens.v1 else {
            return (None, no_session("there is no V1 token"), v2);
        };
        let (v1, models) = match read(source) {
            Err(why) => (Token::Failed(why), no_session("not signed in")),
            Ok(token) => self.try_v1(&token).await,
        };
        (Some(v1), models, v2)
    }

    async fn try_v1(&self, token: &Secret) -> (Token, Fact<Vec<v1::Model>>) {
        let session = match timeout(CALL, self.probe.sign_in_v1(token)).await {
            Ok(Ok(session)) => session,
            Ok(Err(error)) => {
                let token = sort_out(error);
                let why = match token {
                    Token::Known => {
                        "CDS shows them to a hatchery that has signed in; say --sign-in"
                    }
                    _ => "not signed in",
                };
                return (token, Fact::Skipped(why.to_owned()));
            }
            Err(_) => {
                let why = format!("no answer within {} s", CALL.as_secs());
                return (Token::Failed(why), Fact::Skipped("not signed in".to_owned()));
            }
        };
        let models = match timeout(CALL, session.enabled_models()).await {
            Ok(Ok(models)) => Fact::Known(models),
            Ok(Err(error)) if error.status() == Some(StatusCode::FORBIDDEN) => Fact::Skipped(
                "CDS shows them once the hatchery has signed in for the first time".to_owned(),
            ),
            Ok(Err(error)) => Fact::Failed(told(error)),
            Err(_) => Fact::Failed(format!("no answer within {} s", CALL.as_secs())),
        };
        // It would end by itself in an hour.
        let _ = timeout(GOODBYE, session.end()).await;
        (Token::Accepted, models)
    }

    /// All of it, as the service does.
    async fn sign_in(&self) -> (Option<Token>, Fact<Vec<v1::Model>>, Option<Token>) {
        let tokens = &self.config.api.tokens;
        let client = cds_settings(self.config, &SystemSurroundings, env!("CARGO_PKG_VERSION"))
            .map_err(told)
            .and_then(|settings| {
                let carrier: Arc<dyn roost_cds::Transport> = self.transport.clone();
                Client::new(settings, carrier, Arc::clone(self.clock)).map_err(told)
            });
        let client = match client {
            Ok(client) => client,
            Err(why) => {
                let failed = || Token::Failed(why.clone());
                let models = Fact::Skipped("not signed in".to_owned());
                return (
                    tokens.v1.as_ref().map(|_| failed()),
                    models,
                    tokens.v2.as_ref().map(|_| failed()),
                );
            }
        };
        let mut models = Fact::Skipped("there is no V1 token".to_owned());
        let mut v1 = None;
        if let Some(half) = client.v1() {
            let service = timeout(SIGN_IN, half.service()).await;
            models = match &service {
                Ok(Ok(_)) => within(SIGN_IN, half.enabled_models()).await.into(),
                _ => Fact::Skipped("not signed in".to_owned()),
            };
            v1 = Some(token_of(service, |service| service.and_then(|service| service.region)));
        }
        let mut v2 = None;
        if let Some(half) = client.v2() {
            v2 = Some(token_of(timeout(SIGN_IN, half.region()).await, Some));
        }
        let _ = timeout(GOODBYE, client.sign_out()).await;
        (v1, models, v2)
    }
}

fn token_of<T>(
    signed_in: Result<Result<T, CallError>, tokio::time::error::Elapsed>,
    region: impl FnOnce(T) -> Option<String>,
) -> Token {
    match signed_in {
        Ok(Ok(told)) => {
            Token::SignedIn { region: region(told).filter(|region| !region.is_empty()) }
        }
        Ok(Err(error)) => sort_out(error),
        Err(_) => Token::Failed(format!("no answer within {} s", SIGN_IN.as_secs())),
    }
}

fn sort_out(error: CallError) -> Token {
    let (is_whole, inner) = match &error {
        CallError::SignIn { source, .. } => (true, &**source),
        other => (false, other),
    };
    match inner.status() {
        Some(StatusCode::UNAUTHORIZED) => Token::Refused(told(error)),
        Some(StatusCode::FORBIDDEN) if is_whole || says(inner, "invalid signin token") => {
            Token::Refused(told(error))
        }
        Some(StatusCode::FORBIDDEN) if says(inner, "doesn't match with consumer") => Token::Known,
        Some(StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST) => Token::Unclear(told(error)),
        _ => Token::Failed(told(error)),
    }
}

/// Whether the API gave this reason.
fn says(error: &CallError, words: &str) -> bool {
    error.api().is_some_and(|error| error.from.contains(words))
}

fn read(source: &SecretSource) -> Result<Secret, String> {
    source.read(&SystemSurroundings).map_err(told)
}
