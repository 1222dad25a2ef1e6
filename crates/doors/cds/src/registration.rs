use std::sync::Arc;

use serde_json::{Value, json};

use crate::HatcheryKey;

/// What this program spawns workers on, in the API's word.
pub const HATCHERY_TYPE: &str = "vsphere";

/// What a hatchery tells about itself at every sign-in, so that the API's record stays fresh.
#[derive(Debug, Clone)]
pub struct Registration {
    pub name: String,
    /// Where this hatchery's own HTTP server is reached.
    pub http_url: String,
    /// The configuration as JSON, without secrets.
    pub config: Value,
    pub key: Arc<HatcheryKey>,
    /// Asked of V1 jobs. For V2 the API decides the region.
    pub region: Option<String>,
    pub ignore_job_with_no_region: bool,
    /// Operating systems and architectures for which the V2 queue offers jobs, such as `linux/amd64`.
    pub os_arch: Vec<String>,
    pub version: String,
}

impl Registration {
    /// The V2 websocket looks for `osArch` at the top of `config` and nowhere else. Without it, it takes `linux/amd64`.
    pub(crate) fn v2_config(&self) -> Value {
        let mut config = match &self.config {
            Value::Object(members) => members.clone(),
            _ => serde_json::Map::new(),
        };
        if !self.os_arch.is_empty() {
            config.insert("osArch".to_owned(), json!(self.os_arch));
        }
        Value::Object(config)
    }

    pub(crate) fn public_key(&self) -> String {
        self.key.public().to_base64()
    }
}
