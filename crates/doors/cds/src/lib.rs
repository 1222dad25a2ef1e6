#![doc = include_str!("../README.md")]

mod api;
mod call;
mod cdn;
mod client;
mod error;
mod go_duration;
mod go_time;
mod heartbeat;
mod http_transport;
mod in_flight;
pub mod json;
pub mod jwt;
mod key;
mod monitoring;
mod probe;
mod protocol;
mod queue;
mod registration;
mod session;
mod status;
mod transport;
pub mod v1;
pub mod v2;
mod worker;

pub use api::Api;
pub use call::{Answer, Call};
pub use cdn::CdnConfig;
pub use client::{Client, Settings, SettingsError};
pub use error::{ApiError, CallError, ErrorKind};
pub use go_duration::GoDuration;
pub use heartbeat::{Heartbeat, HeartbeatGaveUp, HeartbeatHealth, HeartbeatSettings};
pub use http_transport::{HttpSettings, HttpSetupError, HttpTransport};
pub use in_flight::{InFlight, InFlightGuard};
pub use key::{HatcheryKey, KeyError, PublicKey};
pub use monitoring::{Level, MonitoringLine, MonitoringStatus};
pub use probe::{Probe, ProbeSession, Version};
pub use protocol::{JobId, Protocol};
pub use queue::{JobHint, QueueHealth, QueueSettings, QueueWatch, WaitingJob};
pub use registration::{HATCHERY_TYPE, Registration};
pub use roost_settings::Secret;
pub use status::{JobStatus, WorkerStatus};
pub use transport::{
    SendFuture, Socket, SocketClosed, SocketError, SocketFuture, SocketPeer, Transport,
};
pub use worker::{
    ClaimedModel, Commands, ConfigError, InjectedVariables, LaunchScript, LogOptions,
    NamesExhausted, OsArch, Purpose, ScriptError, V1Worker, V2Worker, WorkerClaims, WorkerConfig,
    WorkerNames, slug,
};
