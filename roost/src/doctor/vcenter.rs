//! A vCenter that a Kubernetes door names: whether it lets us in, has the places, and lets us do what is done there.

use std::sync::Arc;

use roost_clock::Clock;
use roost_doctor::reach::{self, Target, TrustWords};
use roost_doctor::{CALL, Finding, GOODBYE, LOGIN, Section, told, within};
use roost_vim::wire::MoRef;
use roost_vim::{AddressError, Client, Finder, Found, HttpTransport, Settings, TlsTrust};

/// What is asked of a vCenter.
pub(super) struct Wish {
    pub(super) address: String,
    /// Address and login, or why there are none.
    pub(super) settings: Result<Settings, AddressError>,
    pub(super) trust: TlsTrust,
    pub(super) words: TrustWords,
    pub(super) places: Vec<(Kind, String)>,
    pub(super) datacenter: String,
    /// The extension that VMs are marked by, if the door registers one.
    pub(super) extension: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Folder,
    Pool,
    Datastore,
    Network,
}

impl Kind {
    fn words(self) -> &'static str {
        match self {
            Self::Folder => "folder",
            Self::Pool => "resource pool",
            Self::Datastore => "datastore",
            Self::Network => "network",
        }
    }

    /// What both doors do there, as far as a privilege stands for it.
    fn needs(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Folder => &[
                ("VirtualMachine.Inventory.Create", "CreateVM_Task"),
                ("VirtualMachine.Inventory.Delete", "Destroy_Task"),
                ("VirtualMachine.Config.AddNewDisk", "CreateVM_Task"),
                ("VirtualMachine.Config.AddRemoveDevice", "ReconfigVM_Task"),
                ("VirtualMachine.Config.AdvancedConfig", "ReconfigVM_Task, for extraConfig"),
                ("VirtualMachine.Config.CPUCount", "ReconfigVM_Task"),
                ("VirtualMachine.Config.Memory", "ReconfigVM_Task"),
                ("VirtualMachine.Interact.PowerOn", "PowerOnVM_Task"),
                ("VirtualMachine.Interact.PowerOff", "PowerOffVM_Task"),
            ],
            Self::Pool => &[("Resource.AssignVMToPool", "CreateVM_Task")],
            Self::Datastore => &[("Datastore.AllocateSpace", "CreateVM_Task")],
            Self::Network => &[("Network.Assign", "CreateVM_Task")],
        }
    }
}

pub(super) async fn examine(wish: Wish, clock: &Arc<dyn Clock>) -> Section {
    const SYSTEM: &str = "vCenter";
    let settings = match &wish.settings {
        Ok(settings) => settings.clone(),
        Err(error) => {
            let findings = vec![Finding::fail("address", told(error))];
            return Section { system: SYSTEM, about: wish.address, findings };
        }
    };
    let is_plain = settings.url.scheme() == "http";
    let host = settings.url.host_str().unwrap_or_default();
    let target = Target {
        host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
        port: settings.url.port_or_known_default().unwrap_or(443),
        trust: (!is_plain).then(|| wish.trust.clone()),
    };
    let about = target.place();
    let reach = reach::probe(&target).await;
    let mut findings = reach::judge(&target, &reach, wish.words, clock.now());
    if let Some(why) = reach::obstacle(&findings) {
        findings.push(Finding::skip("all else", why));
        return Section { system: SYSTEM, about, findings };
    }
    match HttpTransport::new(&wish.trust) {
        Err(error) => findings.push(Finding::fail("TLS", told(error))),
        Ok(transport) => {
            let login = Client::connect(settings, Arc::new(transport), Arc::clone(clock));
            match within(LOGIN, login).await {
                Ok(client) => {
                    let about = &client.observer().content().about;
                    findings.push(Finding::pass("login", about.full_name.clone()));
                    places(&client, &wish, &mut findings).await;
                    if let Some(key) = &wish.extension {
                        findings.push(extension(&client, key).await);
                    }
                    let _ = tokio::time::timeout(GOODBYE, client.shutdown()).await;
                }
                Err(why) => findings.push(Finding::fail("login", why).advice(
                    "correct the Secret; every further try counts towards a locked account",
                )),
            }
        }
    }
    Section { system: SYSTEM, about, findings }
}

async fn places(client: &Client, wish: &Wish, findings: &mut Vec<Finding>) {
    let observer = client.observer();
    let finder = match within(CALL, observer.finder(&wish.datacenter)).await {
        Ok(finder) => finder,
        Err(why) => return findings.push(Finding::fail("datacenter", why)),
    };
    findings.push(Finding::pass("datacenter", finder.datacenter().path.clone()));
    let mut found: Vec<(Kind, Found)> = Vec::new();
    for (kind, name) in &wish.places {
        match find(&finder, *kind, name).await {
            Ok(place) => {
                findings.push(Finding::pass(kind.words(), place.path.clone()));
                found.push((*kind, place));
            }
            Err(why) => findings.push(Finding::fail(kind.words(), why)),
        }
    }
    let objects: Vec<MoRef> = found.iter().map(|(_, place)| place.moref.clone()).collect();
    let mut names: Vec<&str> =
        found.iter().flat_map(|(kind, _)| kind.needs()).map(|(name, _)| *name).collect();
    names.sort_unstable();
    names.dedup();
    match within(CALL, observer.lacking_privileges(&objects, &names)).await {
        Err(why) => findings
            .push(Finding::warn("privileges", format!("the vCenter does not tell them: {why}"))),
        Ok(lacking) => {
            for (kind, place) in &found {
                let none = Vec::new();
                let of_it = lacking.iter().find(|it| it.object == place.moref);
                let of_it = of_it.map_or(&none, |it| &it.privileges);
                findings.push(judge(*kind, &place.path, of_it));
            }
        }
    }
}

/// VMs are made without it as well, so it is a warning at most.
async fn extension(client: &Client, key: &str) -> Finding {
    const CHECK: &str = "extension";
    const NEEDS: &str = "Extension.Register";
    let observer = client.observer();
    let root = observer.content().root_folder.clone();
    match within(CALL, observer.lacking_privileges(&[root], &[NEEDS])).await {
        Err(why) => Finding::warn(CHECK, format!("the vCenter does not tell privileges: {why}")),
        Ok(lacking) if lacking.iter().all(|it| it.privileges.is_empty()) => {
            Finding::pass(CHECK, format!("{key} may be registered"))
        }
        Ok(_) => Finding::warn(CHECK, format!("{key} cannot be registered: {NEEDS} is missing"))
            .advice("give the user that privilege on the root folder, or register the extension yourself; VMs are made without it, too"),
    }
}

fn judge(kind: Kind, path: &str, lacking: &[String]) -> Finding {
    const CHECK: &str = "privileges";
    let (object, needs) = (format!("{} {path}", kind.words()), kind.needs());
    let missing: Vec<String> = needs
        .iter()
        .filter(|(name, _)| lacking.iter().any(|it| it == name))
        .map(|(name, call)| format!("{name}, for {call}"))
        .collect();
    if missing.is_empty() {
        return Finding::pass(CHECK, format!("{object}: {} of {}", needs.len(), needs.len()));
    }
    Finding::fail(CHECK, format!("{object}: {} of {} are missing", missing.len(), needs.len()))
        .details(missing)
        .advice(
            "add them to the role that the user has there, and let the role propagate to children",
        )
}

async fn find(finder: &Finder, kind: Kind, name: &str) -> Result<Found, String> {
    let found = async {
        match kind {
            Kind::Folder => finder.vm_folder(name).await,
            Kind::Pool => finder.resource_pool(name).await,
            Kind::Datastore => finder.datastore(name).await,
            Kind::Network => finder.network(name).await,
        }
    };
    within(CALL, found).await
}

#[cfg(test)]
mod tests {
    use roost_doctor::Verdict;

    use super::*;

    #[test]
    fn a_missing_privilege_is_named_with_the_call_that_needs_it() {
        let lacking = ["VirtualMachine.Interact.PowerOn".to_owned(), "Network.Assign".to_owned()];
        let finding = judge(Kind::Folder, "/DC0/vm", &lacking);
        assert_eq!(finding.verdict, Verdict::Fail);
        assert_eq!(finding.details, ["VirtualMachine.Interact.PowerOn, for PowerOnVM_Task"]);
        assert_eq!(judge(Kind::Pool, "/p", &lacking).verdict, Verdict::Pass);
    }
}
