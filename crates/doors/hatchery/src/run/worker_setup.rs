//! What every worker is told at its start, whatever it is for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use roost_cds::{CdnConfig, LogOptions, Secret, WorkerConfig};

use super::about::About;
use super::scheduler::lock;
use super::spawn::LaunchSpecError;
use crate::config::{Graylog, Syslog, WorkerSettings};

/// The part of a worker's configuration that is the same for all.
#[derive(Debug)]
pub(crate) struct WorkerSetup {
    about: Arc<About>,
    cdn: Mutex<CdnConfig>,
}

impl WorkerSetup {
    pub(super) fn new(about: &Arc<About>) -> Self {
        let config = &about.config.cdn;
        let cdn = CdnConfig {
            tcp_url: config.tcp_url.clone().unwrap_or_default(),
            tcp_url_enable_tls: config.tcp_tls,
            http_url: config.url.clone().unwrap_or_default(),
        };
        Self { about: Arc::clone(about), cdn: Mutex::new(cdn) }
    }

    /// What workers are told about the CDN.
    pub(crate) fn cdn(&self) -> CdnConfig {
        lock(&self.cdn).clone()
    }

    /// Takes over what CDS says about the CDN, as far as the configuration leaves it open.
    pub(super) fn learn_cdn(&self, told: CdnConfig) {
        let mut cdn = lock(&self.cdn);
        if cdn.http_url.is_empty() {
            cdn.http_url = told.http_url;
        }
        if cdn.tcp_url.is_empty() {
            (cdn.tcp_url, cdn.tcp_url_enable_tls) = (told.tcp_url, told.tcp_url_enable_tls);
        }
    }

    /// The configuration of any worker (5.3). Job and region are for the caller to fill in.
    pub(crate) fn worker_config(
        &self,
        worker: &str,
        model: &str,
        api_token: Secret,
    ) -> Result<WorkerConfig, LaunchSpecError> {
        let WorkerSettings { api_url, api_insecure, cdn, basedir, environment, .. } =
            &self.about.config.workers;
        let known = self.cdn();
        let (gelf_service_addr, gelf_service_addr_enable_tls) = match &cdn.tcp_url {
            Some(url) => (url.clone(), cdn.tcp_tls),
            None => (known.tcp_url, known.tcp_url_enable_tls),
        };
        Ok(WorkerConfig {
            name: worker.to_owned(),
            base_dir: basedir.clone(),
            log: self.log_options(worker)?,
            hatchery_name: self.about.hatchery().to_owned(),
            api_endpoint: api_url.clone(),
            api_endpoint_insecure: *api_insecure,
            api_token,
            cdn_endpoint: cdn.url.clone().unwrap_or(known.http_url),
            gelf_service_addr,
            gelf_service_addr_enable_tls,
            model: model.to_owned(),
            inject_env_vars: exposed(environment),
            ..WorkerConfig::default()
        })
    }

    fn log_options(&self, worker: &str) -> Result<LogOptions, LaunchSpecError> {
        let WorkerSettings { log_level, graylog, syslog, .. } = &self.about.config.workers;
        let Graylog { host, port, protocol, extra_key, extra_value } = graylog;
        let extra = extra_value.as_ref().map(|source| source.read(&*self.about.surroundings));
        let extra = extra.transpose().map_err(|source| LaunchSpecError::LogSecret { source })?;
        let Syslog { host: syslog_host, port: syslog_port, protocol: syslog_protocol, extra_tag } =
            syslog;
        Ok(LogOptions {
            level: log_level.clone(),
            graylog_host: host.clone(),
            graylog_port: port.to_string(),
            graylog_protocol: protocol.clone(),
            graylog_extra_key: extra_key.clone(),
            graylog_extra_value: extra.unwrap_or_default(),
            service_name: worker.to_owned(),
            syslog_host: syslog_host.clone(),
            syslog_port: syslog_port.to_string(),
            syslog_protocol: syslog_protocol.clone(),
            syslog_extra_tag: extra_tag.clone(),
            ..LogOptions::default()
        })
    }
}

/// The wire type has plain text; it is shown to nobody but the worker.
fn exposed(environment: &[(String, Secret)]) -> BTreeMap<String, String> {
    environment.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect()
}
