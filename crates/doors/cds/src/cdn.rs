use serde::{Deserialize, Serialize};

/// Where workers send their logs and artefacts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CdnConfig {
    pub tcp_url: String,
    pub tcp_url_enable_tls: bool,
    pub http_url: String,
}
