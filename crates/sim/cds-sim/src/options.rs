use std::time::Duration;

use bytes::Bytes;
use roost_cds::{CdnConfig, Secret};

/// What the simulated API knows before anybody signs in.
#[derive(Debug, Clone)]
pub struct Options {
    /// Ids, tokens, latencies and chances of faults all follow from it.
    pub seed: u64,
    /// What sign-ins answer as `api_url`.
    pub url: String,
    pub version: String,
    pub consumers: Vec<Consumer>,
    pub hatcheries: Vec<Hatchery>,
    /// `None` is an API without a CDN service, which answers 404.
    pub cdn: Option<CdnConfig>,
    /// How long each answer takes: between the two.
    pub latency: (Duration, Duration),
    pub timings: Timings,
    /// What guests download as their worker.
    pub worker_binary: Bytes,
    /// Serves `/roost/control/`, which asks for no token: it belongs on loopback.
    pub control_endpoint: bool,
}

/// Who may sign in to V1.
#[derive(Debug, Clone)]
pub struct Consumer {
    pub token: Secret,
    /// If the token is bound to a service, the sign-in must name it so.
    pub service: Option<String>,
    pub groups: Vec<String>,
}

/// Who may sign in to V2.
#[derive(Debug, Clone)]
pub struct Hatchery {
    pub name: String,
    pub token: Secret,
    /// The one region for which it may start workers; `None` is a hatchery without that permission.
    pub region: Option<String>,
}

/// How long the API waits before it acts by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timings {
    /// From one look at what is overdue to the next. Services are looked at on every third, V2 jobs and beats on every sixth.
    pub look: Duration,
    pub session: Duration,
    pub worker_session: Duration,
    pub booking: Duration,
    pub model_booking: Duration,
    /// A V1 service without a heartbeat for this long is deleted.
    pub service_silence: Duration,
    /// A worker without a beat for this long is disabled.
    pub worker_silence: Duration,
    /// The row of a V1 job is purged so long after its end.
    pub v1_purge: Duration,
    /// A V2 job that waits longer fails.
    pub v2_waiting: Duration,
    /// A V2 job that is taken and has no worker for this long waits again.
    pub v2_scheduling: Duration,
    /// So many releases of a V2 job fail it.
    pub v2_releases: usize,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            look: Duration::from_secs(10),
            session: Duration::from_hours(1),
            worker_session: Duration::from_hours(24),
            booking: Duration::from_mins(2),
            model_booking: Duration::from_mins(6),
            service_silence: Duration::from_mins(3),
            worker_silence: Duration::from_mins(5),
            v1_purge: Duration::from_secs(5),
            v2_waiting: Duration::from_hours(1),
            v2_scheduling: Duration::from_mins(10),
            v2_releases: 5,
        }
    }
}

impl Options {
    /// An API without anybody who may sign in.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            url: "http://cds.invalid".to_owned(),
            version: "0.57.0".to_owned(),
            consumers: Vec::new(),
            hatcheries: Vec::new(),
            cdn: Some(CdnConfig {
                tcp_url: "cdn.invalid:8090".to_owned(),
                tcp_url_enable_tls: false,
                http_url: "http://cdn.invalid:8089".to_owned(),
            }),
            latency: (Duration::ZERO, Duration::ZERO),
            timings: Timings::default(),
            worker_binary: Bytes::from_static(b"#!/bin/sh\nexec roost sim worker -- \"$@\"\n"),
            control_endpoint: false,
        }
    }

    /// Lets a service of this name sign in to V1 with this token. It sees what the group `shared.infra` sees.
    #[must_use]
    pub fn consumer(mut self, name: &str, token: impl Into<Secret>) -> Self {
        self.consumers.push(Consumer {
            token: token.into(),
            service: Some(name.to_owned()),
            groups: vec![roost_cds::v1::Group::SHARED_INFRA.to_owned()],
        });
        self
    }

    /// Lets a hatchery of this name sign in to V2 with this token and start workers for the region.
    #[must_use]
    pub fn hatchery(mut self, name: &str, token: impl Into<Secret>, region: &str) -> Self {
        self.hatcheries.push(Hatchery {
            name: name.to_owned(),
            token: token.into(),
            region: Some(region.to_owned()),
        });
        self
    }
}
