//! Whether waiting AgentMachines could become VMs: the API server, each pool, its vCenter, and the address of its ISO.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client, ResourceExt as _};
use roost_agent_forge::api::VsphereAgentPool;
use roost_agent_forge::machine_version;
use roost_agent_forge::vcenter::Login;
use roost_clock::Clock;
use roost_doctor::reach::TrustWords;
use roost_doctor::{CALL, Finding, Section, Telling, told, within};
use roost_tls::TlsTrust;

use super::cluster;
use super::vcenter::{self, Kind, Wish};
use crate::serve::sections::Cluster;

pub(super) const ROLES: &str = include_str!("../../../deploy/agent-forge/rbac.yaml");

const WORDS: TrustWords = TrustWords {
    ca_file: "the authorities of this machine",
    thumbprint: None,
    insecure: "insecure of the Secret",
    authority: "the vCenter's authority, which it offers for download at https://<vCenter>/certs/download.zip",
};

pub(super) async fn examine(cluster: &Cluster, clock: &Arc<dyn Clock>, telling: &mut Telling) {
    const SYSTEM: &str = "agent-forge";
    telling.begin("Kubernetes API server");
    let (client, mut findings) = cluster::connect(cluster).await;
    let Some(client) = client else {
        return telling.tell(Section { system: SYSTEM, about: String::new(), findings });
    };
    let home = cluster.namespace.clone();
    let home = home.unwrap_or_else(|| client.default_namespace().to_owned());
    let own =
        [("agent-forge.containeroo.ch/v1alpha1", &["vsphereagentpools", "vsphereagents"][..])];
    let advice = "roost crds agent-forge | kubectl apply --server-side -f -";
    findings.push(cluster::definitions(&client, &own, advice).await);
    let machines = within(CALL, machine_version(&client)).await;
    let machines = machines.unwrap_or_else(|_| "v1beta1".to_owned());
    let machines = format!("cluster.x-k8s.io/{machines}");
    let neighbours = [
        ("agent-install.openshift.io/v1beta1", &["agents", "infraenvs"][..]),
        ("capi-provider.agent-install.openshift.io/v1beta1", &["agentmachines"][..]),
        (machines.as_str(), &["machines"][..]),
    ];
    let advice = "install HyperShift and the assisted service: they serve these kinds";
    let mut around = cluster::definitions(&client, &neighbours, advice).await;
    "neighbours".clone_into(&mut around.check);
    findings.push(around);
    let path = "deploy/agent-forge/rbac.yaml";
    findings.push(cluster::rights(&client, ROLES, &home, path).await);
    let pools: Api<VsphereAgentPool> = Api::all(client.clone());
    let pools = match within(CALL, pools.list(&ListParams::default())).await {
        Ok(pools) => pools.items,
        Err(why) => {
            findings.push(Finding::skip("pools", why));
            Vec::new()
        }
    };
    if pools.is_empty() {
        findings.push(
            Finding::warn("pools", "there is none: nothing would be made")
                .advice("docs/agent-forge.md has one to begin with"),
        );
    } else {
        findings.push(Finding::pass("pools", pools.len().to_string()));
    }
    telling.tell(Section { system: SYSTEM, about: format!("namespace {home}"), findings });
    for pool in &pools {
        let (section, wish) = of_pool(&client, pool).await;
        telling.tell(section);
        if let Some(wish) = wish {
            telling.begin("vCenter");
            telling.tell(vcenter::examine(wish, clock).await);
        }
    }
}

async fn of_pool(client: &Client, pool: &VsphereAgentPool) -> (Section, Option<Wish>) {
    let namespace = pool.namespace().unwrap_or_default();
    let about = format!("{namespace}/{}", pool.name_any());
    let mut findings = vec![iso(client, pool, &namespace).await];
    let name = &pool.spec.vsphere.credentials_secret_ref.name;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &namespace);
    let login = match within(CALL, secrets.get(name)).await {
        Ok(secret) => Login::from_secret(&format!("{namespace}/{name}"), &secret).map_err(told),
        Err(why) => Err(why),
    };
    let wish = match login {
        Ok(login) => {
            findings
                .push(Finding::pass("login", format!("{} as {}", login.server, login.username)));
            Some(wish_of(pool, &login))
        }
        Err(why) => {
            findings.push(
                Finding::fail("login", why)
                    .advice("the Secret needs server, username and password"),
            );
            None
        }
    };
    (Section { system: "pool", about, findings }, wish)
}

fn wish_of(pool: &VsphereAgentPool, login: &Login) -> Wish {
    let vsphere = &pool.spec.vsphere;
    let places = [
        (Kind::Folder, vsphere.folder.clone()),
        (Kind::Pool, Some(vsphere.resource_pool.clone())),
        (Kind::Datastore, vsphere.datastore.clone()),
        (Kind::Datastore, Some(vsphere.iso_datastore.clone())),
        (Kind::Network, Some(vsphere.network.clone())),
    ];
    let places = places.into_iter().filter_map(|(kind, name)| Some((kind, name?)));
    Wish {
        address: login.server.clone(),
        settings: login.settings(),
        trust: login.trust.clone(),
        words: WORDS,
        places: places.filter(|(_, name)| !name.is_empty()).collect(),
        datacenter: vsphere.datacenter.clone().unwrap_or_default(),
        extension: None,
    }
}

/// The address stands in the InfraEnv. Only its head is asked for, and it is not shown: it may hold a token.
async fn iso(client: &Client, pool: &VsphereAgentPool, namespace: &str) -> Finding {
    const CHECK: &str = "ISO";
    let kind = roost_agent_forge::outside::infra_envs();
    let environments: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind);
    let name = &pool.spec.infra_env_ref.name;
    let found = match within(CALL, environments.get(name)).await {
        Ok(found) => found,
        Err(why) => {
            let finding = Finding::fail(CHECK, format!("InfraEnv {namespace}/{name}: {why}"));
            return finding.advice("correct spec.infraEnvRef of the pool");
        }
    };
    let url = found.data["status"]["isoDownloadURL"].as_str().unwrap_or_default().to_owned();
    if url.is_empty() {
        let finding =
            Finding::fail(CHECK, format!("InfraEnv {namespace}/{name} has no address yet"));
        return finding.advice("look at its conditions: the assisted service makes the ISO");
    }
    let tls = match TlsTrust::System.client_config() {
        Ok(tls) => tls,
        Err(error) => return Finding::skip(CHECK, told(error)),
    };
    let http = reqwest::Client::builder().tls_backend_preconfigured(tls).build();
    let http = match http {
        Ok(http) => http,
        Err(error) => return Finding::skip(CHECK, told(error)),
    };
    let asked = async { http.head(&url).send().await.map_err(reqwest::Error::without_url) };
    match within(CALL, asked).await {
        Ok(answer) if answer.status().is_success() => {
            let bytes = answer.headers().get("content-length").and_then(|it| it.to_str().ok());
            let size = bytes.and_then(|it| it.parse::<u64>().ok()).map(|it| it >> 20);
            Finding::pass(
                CHECK,
                size.map_or("can be downloaded".to_owned(), |mib| {
                    format!("can be downloaded, {mib} MiB")
                }),
            )
        }
        Ok(answer) => Finding::fail(CHECK, format!("its address answers {}", answer.status()))
            .advice("the address expires: the assisted service renews it in the InfraEnv"),
        Err(why) => Finding::fail(CHECK, why).advice("the address must be reachable from here"),
    }
}
