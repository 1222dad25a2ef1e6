//! The CDS API: whether a hatchery with this configuration could sign in, and what it would find.

mod collect;
mod judge;

use std::sync::Arc;

use crate::config::Config;
use roost_cds::v1;
use roost_clock::Clock;
use roost_vim::TlsTrust;

use roost_doctor::reach::{self, Target, TrustWords};
use roost_doctor::{Finding, Section};

pub(super) const SYSTEM_NAME: &str = "CDS API";

const WORDS: TrustWords = TrustWords {
    ca_file: "hatchery.vsphere.commonConfiguration.api.http.caFile",
    thumbprint: None,
    insecure: "api.http.insecure",
    authority: "the authority that signed the API's certificate",
};

/// How far a look goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignIn {
    /// Nothing is written in CDS.
    TokenOnly,
    /// As `roost run` does: the record of this hatchery in CDS is written anew.
    Whole,
}

/// What was found, and the V1 worker models that CDS shows.
pub(super) async fn examine(
    config: &Config,
    sign_in: SignIn,
    clock: &Arc<dyn Clock>,
) -> (Section, Vec<v1::Model>) {
    let about = config.api.url.clone();
    let Some(target) = target(config) else {
        let finding = Finding::fail("address", "names no host").advice("correct api.http.url");
        return (Section { system: SYSTEM_NAME, about, findings: vec![finding] }, Vec::new());
    };
    let reach = reach::probe(&target).await;
    let mut findings = reach::judge(&target, &reach, WORDS, clock.now());
    if let Some(why) = reach::obstacle(&findings) {
        findings.push(Finding::skip("all else", why));
        return (Section { system: SYSTEM_NAME, about, findings }, Vec::new());
    }
    let facts = collect::collect(config, sign_in, clock).await;
    findings.extend(judge::judge(&facts));
    let models = facts.models.known().cloned().unwrap_or_default();
    (Section { system: SYSTEM_NAME, about, findings }, models)
}

fn target(config: &Config) -> Option<Target> {
    let url: http::Uri = config.api.url.parse().ok()?;
    let is_plain = url.scheme_str() == Some("http");
    let trust = match (&config.api.ca_file, config.api.insecure) {
        _ if is_plain => None,
        (_, true) => Some(TlsTrust::Insecure),
        (Some(file), false) => Some(TlsTrust::CaFile(file.clone())),
        (None, false) => Some(TlsTrust::System),
    };
    Some(Target {
        host: url.host()?.trim_start_matches('[').trim_end_matches(']').to_owned(),
        port: url.port_u16().unwrap_or(if is_plain { 80 } else { 443 }),
        trust,
    })
}
