//! Whether `VirtualMachine` objects could become VMs.

use std::sync::Arc;

use roost_clock::Clock;
use roost_doctor::reach::TrustWords;
use roost_doctor::{Finding, Section, Telling};
use roost_supervise::Chain;
use roost_vim::TlsTrust;
use roost_vm_operator::api::names::SUPERVISOR_EXTENSION;

use super::cluster;
use super::vcenter::{self, Kind, Wish};
use crate::serve::sections::Cluster;
use crate::vm_operator::{address_of, credentials, provider_config};

pub(super) const ROLES: &str = include_str!("../../../deploy/vm-operator/rbac.yaml");

const KINDS: &[&str] = &[
    "virtualmachines",
    "virtualmachineclasses",
    "virtualmachineimages",
    "clustervirtualmachineimages",
    "virtualmachineimagecaches",
    "virtualmachinesnapshots",
    "virtualmachinegroups",
    "virtualmachinesetresourcepolicies",
    "virtualmachineservices",
    "virtualmachinereplicasets",
];

const WORDS: TrustWords = TrustWords {
    ca_file: "CAFilePath",
    thumbprint: None,
    insecure: "InsecureSkipTLSVerify",
    authority: "the vCenter's authority, which it offers for download at https://<vCenter>/certs/download.zip",
};

pub(super) async fn examine(
    cluster: &Cluster,
    secret: Option<String>,
    clock: &Arc<dyn Clock>,
    telling: &mut Telling,
) {
    telling.begin("Kubernetes API server");
    let (client, mut findings) = cluster::connect(cluster).await;
    let mut wish = None;
    let mut about = String::new();
    if let Some(client) = client {
        let home = cluster.namespace.clone();
        let home = home.unwrap_or_else(|| client.default_namespace().to_owned());
        about = format!("namespace {home}");
        let kinds = [("vmoperator.vmware.com/v1alpha5", KINDS)];
        let advice = "roost crds vm-operator | kubectl apply --server-side -f -";
        findings.push(cluster::definitions(&client, &kinds, advice).await);
        let path = "deploy/vm-operator/rbac.yaml";
        findings.push(cluster::rights(&client, ROLES, &home, path).await);
        let config = provider_config(&client, &home).await;
        let login = credentials(&client, &home, secret).await;
        match (config, login) {
            (Ok(config), Ok(login)) => {
                findings.push(Finding::pass("provider", format!("vCenter {}", config.host)));
                wish = Some(wish_of(&config, login));
            }
            (config, login) => {
                for error in [config.err(), login.err()].into_iter().flatten() {
                    findings.push(
                        Finding::fail("provider", Chain(&*error).to_string()).advice(
                            "docs/vm-operator.md has a ConfigMap and a Secret to begin with",
                        ),
                    );
                }
            }
        }
    }
    telling.tell(Section { system: "vm-operator", about, findings });
    match wish {
        Some(wish) => {
            telling.begin("vCenter");
            telling.tell(vcenter::examine(wish, clock).await);
        }
        None => telling.tell(Section::skipped("vCenter", "", "it is not known which")),
    }
}

fn wish_of(config: &roost_vm_operator::ProviderConfig, login: roost_vim::Credentials) -> Wish {
    let provider = &config.provider;
    let mut places = vec![(Kind::Folder, provider.folder.clone())];
    for zone in &provider.zones {
        places.push((Kind::Pool, zone.resource_pool.clone()));
        places.extend(zone.datastore.clone().map(|name| (Kind::Datastore, name)));
    }
    places.push((Kind::Network, provider.network.clone()));
    places.retain(|(_, name)| !name.is_empty());
    let mut known = Vec::new();
    places.retain(|place| {
        !known.contains(place) && {
            known.push(place.clone());
            true
        }
    });
    let trust = match (&config.ca_file, config.insecure) {
        (_, true) => TlsTrust::Insecure,
        (Some(file), false) => TlsTrust::CaFile(file.into()),
        (None, false) => TlsTrust::System,
    };
    Wish {
        settings: roost_vim::Settings::new(&address_of(config), login),
        address: address_of(config),
        trust,
        words: WORDS,
        places,
        datacenter: provider.datacenter.clone(),
        extension: Some(provider.extension_key.clone()).filter(|key| key != SUPERVISOR_EXTENSION),
    }
}
