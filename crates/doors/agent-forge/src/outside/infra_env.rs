use kube::api::DynamicObject;

use super::text;

/// What is read of an InfraEnv.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InfraEnvView {
    /// Where its ISO is; empty while it has none.
    pub iso_url: String,
}

impl InfraEnvView {
    pub fn of(object: &DynamicObject) -> Self {
        Self { iso_url: text(object, "/status/isoDownloadURL").to_owned() }
    }
}
