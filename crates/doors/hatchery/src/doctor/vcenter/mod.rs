//! The vCenter: whether it lets a hatchery with this configuration do its work.
//!
//! [`collect`] asks, through a handle that cannot change anything; the other files say what the answers mean.

mod addresses;
mod collect;
mod facts;
mod leftovers;
mod place;
mod pool;
mod privileges;
mod session;
mod space;
mod template;
mod wish;

use std::sync::Arc;

use crate::config::Config;
use roost_cds::v1;
use roost_clock::Clock;

use self::facts::Facts;
use self::wish::Wish;
use roost_doctor::clock::{self, Clocks};
use roost_doctor::reach::{self, Target, TrustWords};
use roost_doctor::{Finding, Section};
use roost_doctor::{QUESTIONS, told};

pub(super) const SYSTEM_NAME: &str = "vCenter";

const WORDS: TrustWords = TrustWords {
    ca_file: "hatchery.vsphere.caFile",
    thumbprint: Some("hatchery.vsphere.thumbprint"),
    insecure: "hatchery.vsphere.insecure",
    authority: "the vCenter's authority, which it offers for download at https://<vCenter>/certs/download.zip",
};

/// `models` are the V1 worker models that CDS has, as far as they are known: their templates are looked at as well.
pub(super) async fn examine(
    config: &Config,
    models: &[v1::Model],
    clock: &Arc<dyn Clock>,
) -> Section {
    let target = match target(config) {
        Ok(target) => target,
        Err(why) => {
            let finding = Finding::fail("address", why).advice("correct hatchery.vsphere.endpoint");
            let about = config.vcenter.endpoint.clone();
            return Section { system: SYSTEM_NAME, about, findings: vec![finding] };
        }
    };
    let about = target.place();
    let reach = reach::probe(&target).await;
    let mut findings = reach::judge(&target, &reach, WORDS, clock.now());
    if let Some(why) = reach::obstacle(&findings) {
        findings.push(Finding::skip("all else", why));
        return Section { system: SYSTEM_NAME, about, findings };
    }
    let wish = Wish::of(config, models);
    match collect::collect(config, &wish, clock).await {
        Some(facts) => findings.extend(judge(&wish, &facts)),
        None => findings.push(
            Finding::fail("answers", format!("not all within {} s", QUESTIONS.as_secs()))
                .advice("the vCenter is overloaded; look at its health and try again"),
        ),
    }
    Section { system: SYSTEM_NAME, about, findings }
}

fn target(config: &Config) -> Result<Target, String> {
    let nobody = roost_vim::Credentials::new("", "");
    let settings = roost_vim::Settings::new(&config.vcenter.endpoint, nobody).map_err(told)?;
    let host = settings.url.host_str().unwrap_or_default();
    let trust = match (settings.url.scheme(), &config.vcenter.trust) {
        ("http", _) => None,
        (_, trust) => Some(trust.clone()),
    };
    Ok(Target {
        host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
        port: settings.url.port_or_known_default().unwrap_or(443),
        trust,
    })
}

/// In the order in which one would look.
fn judge(wish: &Wish, facts: &Facts) -> Vec<Finding> {
    let mut findings = session::judge(&facts.session);
    let clocks = Clocks {
        server: "the vCenter",
        limit: wish.grace,
        harm: "VMs would be taken for older or younger than they are, and deleted too early or too late",
        nuisance: "ages of VMs and times in logs are off by that much",
    };
    findings.push(clock::judge(clocks, &facts.skew));
    findings.extend(place::judge(facts));
    findings.push(pool::judge(wish, facts));
    findings.extend(template::judge(wish, facts));
    findings.extend(privileges::judge(&facts.rights));
    findings.push(space::judge(wish, facts));
    findings.push(addresses::judge(wish, &facts.machines));
    findings.extend(leftovers::judge(wish, facts));
    findings
}
