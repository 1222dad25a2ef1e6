use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Serialize};

use crate::api::KeyValue;

data! {
    /// When a VM counts as ready. One of the three actions is set.
    pub struct ReadinessProbe {
        pub tcp_socket: Option<TcpSocketProbe>,
        pub guest_heartbeat: Option<GuestHeartbeatProbe>,
        pub guest_info: Vec<GuestInfoProbe>,
        pub timeout_seconds: i32,
        pub period_seconds: i32,
    }

    pub struct GuestHeartbeatProbe {
        pub threshold_status: Option<HeartbeatStatus>,
    }
}

/// A key below `guestinfo.` and the expression that its value must match.
pub type GuestInfoProbe = KeyValue;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpSocketProbe {
    pub port: IntOrString,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
}

words! {
    pub enum HeartbeatStatus {
        Yellow = "yellow",
        Green = "green",
    }
}
