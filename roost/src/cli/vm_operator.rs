use std::path::PathBuf;

use clap::{ArgAction, Parser};

use super::agent_forge::folder;
use crate::manager::PageOptions;

/// What the environment of the upstream manager does not say.
#[derive(Debug, Parser)]
pub(crate) struct VmOperator {
    /// Address of the metrics, such as :8083; 0 serves none
    #[arg(long, default_value = "0", value_name = "ADDR")]
    pub(crate) metrics_bind_address: String,

    /// Address of /healthz and /readyz; 0 serves none
    #[arg(long, default_value = ":9445", value_name = "ADDR")]
    pub(crate) health_probe_bind_address: String,

    /// Work only while holding the lease vmoperator-controller-manager-runtime
    #[arg(long, action = ArgAction::Set, default_value_t = true, default_missing_value = "true", num_args = 0..=1, require_equals = true, value_name = "BOOL")]
    pub(crate) leader_elect: bool,

    /// Take new VMs, changes of power and deletions before what is only looked at again
    #[arg(long, action = ArgAction::Set, default_value_t = true, default_missing_value = "true", num_args = 0..=1, require_equals = true, value_name = "BOOL")]
    pub(crate) use_priority_queue: bool,

    /// Serve metrics over HTTPS, to those whom the API server allows it
    #[arg(long, action = ArgAction::Set, default_value_t = true, default_missing_value = "true", num_args = 0..=1, require_equals = true, value_name = "BOOL")]
    pub(crate) metrics_secure: bool,

    /// Folder of the certificate of the metrics (tls.crt, tls.key); one is made if not given
    #[arg(long, value_name = "DIR", value_parser = folder)]
    pub(crate) metrics_cert_path: Option<PathBuf>,

    /// Port of the webhooks, such as 9878; 0 serves none
    #[arg(long, default_value_t = 0, value_name = "PORT")]
    pub(crate) webhook_service_container_port: u16,

    /// Service by which the API server reaches the webhooks
    #[arg(long, default_value = "roost-vm-operator-webhook", value_name = "NAME")]
    pub(crate) webhook_service_name: String,

    /// Folder of the certificate of the webhooks (tls.crt, tls.key); one is made and kept if not given
    #[arg(long, value_name = "DIR", value_parser = folder)]
    pub(crate) webhook_secret_volume_mount_path: Option<PathBuf>,

    /// Secret in which the certificate is kept that is made
    #[arg(long, default_value = "roost-vm-operator-webhook", value_name = "NAME")]
    pub(crate) webhook_secret_name: String,

    /// Webhook configurations that are told the authority of the certificate that is made
    #[arg(long, default_value = "roost-vm-operator", value_name = "NAME")]
    pub(crate) webhook_configuration_name: String,

    #[command(flatten)]
    pub(crate) page: PageOptions,
}
