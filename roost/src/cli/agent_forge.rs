use std::path::PathBuf;

use clap::{ArgAction, Parser};

use crate::manager::PageOptions;

/// The flags of the upstream manager, so that its deployment needs another image and nothing else.
#[derive(Debug, Parser)]
pub(crate) struct AgentForge {
    /// Address of the metrics, such as :8443; 0 serves none
    #[arg(long, default_value = "0", value_name = "ADDR")]
    pub(crate) metrics_bind_address: String,

    /// Address of /healthz and /readyz; 0 serves none
    #[arg(long, default_value = ":8081", value_name = "ADDR")]
    pub(crate) health_probe_bind_address: String,

    /// Work only while holding the lease agent-forge-operator.containeroo.ch
    #[arg(long, action = ArgAction::Set, default_value_t = false, default_missing_value = "true", num_args = 0..=1, require_equals = true, value_name = "BOOL")]
    pub(crate) leader_elect: bool,

    /// Namespace of the lease; that of the pod or kubeconfig if not given
    #[arg(long, value_name = "NAME")]
    pub(crate) leader_election_namespace: Option<String>,

    /// Serve metrics over HTTPS, to those whom the API server allows it
    #[arg(long, action = ArgAction::Set, default_value_t = true, default_missing_value = "true", num_args = 0..=1, require_equals = true, value_name = "BOOL")]
    pub(crate) metrics_secure: bool,

    /// Folder of the certificate of the metrics; one is made if not given
    #[arg(long, value_name = "DIR", value_parser = folder)]
    pub(crate) metrics_cert_path: Option<PathBuf>,

    /// File of the certificate in that folder
    #[arg(long, default_value = "tls.crt", value_name = "FILE")]
    pub(crate) metrics_cert_name: String,

    /// File of its key in that folder
    #[arg(long, default_value = "tls.key", value_name = "FILE")]
    pub(crate) metrics_cert_key: String,

    /// A Secret of another namespace is used only if its annotation agent-forge.containeroo.ch/allowed-namespaces names the pool's
    #[arg(long)]
    pub(crate) require_secret_consent: bool,

    #[command(flatten)]
    pub(crate) page: PageOptions,

    #[arg(long, hide = true, value_name = "DIR")]
    webhook_cert_path: Option<String>,

    #[arg(long, hide = true, value_name = "FILE")]
    webhook_cert_name: Option<String>,

    #[arg(long, hide = true, value_name = "FILE")]
    webhook_cert_key: Option<String>,

    #[arg(long, hide = true, action = ArgAction::Set, default_value_t = false, default_missing_value = "true", num_args = 0..=1, require_equals = true)]
    enable_http2: bool,

    #[arg(long, hide = true, action = ArgAction::Set, default_value_t = false, default_missing_value = "true", num_args = 0..=1, require_equals = true)]
    zap_devel: bool,

    #[arg(long, hide = true)]
    zap_encoder: Option<String>,

    #[arg(long, hide = true)]
    zap_log_level: Option<String>,

    #[arg(long, hide = true)]
    zap_stacktrace_level: Option<String>,

    #[arg(long, hide = true)]
    zap_time_encoding: Option<String>,
}

pub(super) fn folder(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() { Err("is empty".to_owned()) } else { Ok(text.into()) }
}

impl AgentForge {
    /// Flags of the upstream manager that were given and mean nothing here, and why.
    pub(crate) fn without_effect(&self) -> Vec<(&'static str, &'static str)> {
        const HOOKS: &str = "there are no webhooks";
        const LOGS: &str = "logs are set by ROOST_LOG";
        let flags = [
            ("--webhook-cert-path", self.webhook_cert_path.is_some(), HOOKS),
            ("--webhook-cert-name", self.webhook_cert_name.is_some(), HOOKS),
            ("--webhook-cert-key", self.webhook_cert_key.is_some(), HOOKS),
            ("--enable-http2", self.enable_http2, "HTTP/1.1 is spoken"),
            ("--zap-devel", self.zap_devel, LOGS),
            ("--zap-encoder", self.zap_encoder.is_some(), LOGS),
            ("--zap-log-level", self.zap_log_level.is_some(), LOGS),
            ("--zap-stacktrace-level", self.zap_stacktrace_level.is_some(), LOGS),
            ("--zap-time-encoding", self.zap_time_encoding.is_some(), LOGS),
        ];
        flags
            .into_iter()
            .filter(|(_, is_given, _)| *is_given)
            .map(|(flag, _, why)| (flag, why))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upstream_deployment_is_understood() {
        let args = [
            "agent-forge",
            "--metrics-bind-address=:8443",
            "--leader-elect",
            "--health-probe-bind-address=:8081",
            "--zap-log-level=debug",
        ];
        let options = AgentForge::try_parse_from(args).unwrap();
        assert!(options.leader_elect && options.metrics_secure);
        assert_eq!(options.metrics_bind_address, ":8443");
        assert_eq!(options.without_effect(), [("--zap-log-level", "logs are set by ROOST_LOG")]);
        let options =
            AgentForge::try_parse_from(["agent-forge", "--metrics-secure=false"]).unwrap();
        assert!(!options.metrics_secure && !options.leader_elect);
    }
}
