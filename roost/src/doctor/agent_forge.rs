//! Whether waiting AgentMachines could become VMs: the API server, each pool, its vCenter, and the address of its ISO.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client, ResourceExt as _};
use roost_agent_forge::api::{PoolDefaults, VsphereAgentPool};
use roost_agent_forge::vcenter::Login;
use roost_agent_forge::{machine_version, may_use};
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
        let (section, wishes) = of_pool(&client, pool).await;
        telling.tell(section);
        for wish in wishes {
            telling.begin("vCenter");
            telling.tell(vcenter::examine(wish, clock).await);
        }
    }
}

/// What a pool needs: its ISO, and a login for each of its failure domains. Domains that share Secret and datacenter are one wish.
async fn of_pool(client: &Client, pool: &VsphereAgentPool) -> (Section, Vec<Wish>) {
    let namespace = pool.namespace().unwrap_or_default();
    let about = format!("{namespace}/{}", pool.name_any());
    let mut findings = vec![iso(client, pool, &namespace).await];
    let mut wishes: Vec<(String, Wish)> = Vec::new();
    let mut failed: Vec<String> = Vec::new();
    for domain in pool.domain_names() {
        let Some(here) = pool.in_domain(domain) else { continue };
        let named = &here.spec.vsphere.credentials_secret_ref;
        let home = if named.namespace.is_empty() { &namespace } else { &named.namespace };
        let secret = format!("{home}/{}", named.name);
        let key = format!("{secret} {}", here.datacenter());
        if let Some((_, wish)) = wishes.iter_mut().find(|(known, _)| *known == key) {
            add_places(&here, wish);
            continue;
        }
        if failed.contains(&secret) {
            continue;
        }
        match login(client, &namespace, home, &named.name).await {
            Ok(login) => {
                let words = format!("{} as {}, by Secret {secret}", login.server, login.username);
                findings.push(Finding::pass("login", words));
                wishes.push((key, wish_of(&here, &login)));
            }
            Err((why, advice)) => {
                findings.push(Finding::fail("login", why).advice(advice));
                failed.push(secret);
            }
        }
    }
    (Section { system: "pool", about, findings }, wishes.into_iter().map(|(_, it)| it).collect())
}

/// What a Secret says, or why it cannot be used and what to do.
async fn login(
    client: &Client,
    pool: &str,
    home: &str,
    name: &str,
) -> Result<Login, (String, &'static str)> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), home);
    let read = within(CALL, secrets.get(name)).await;
    let advice = "correct spec.vsphere.credentialsSecretRef of the pool";
    let secret = read.map_err(|why| (format!("Secret {home}/{name}: {why}"), advice))?;
    if home != pool && !may_use(&secret, pool, false) {
        let why = format!("Secret {home}/{name} is not for pools in namespace {pool}");
        return Err((why, "its annotation agent-forge.containeroo.ch/allowed-namespaces says so"));
    }
    Login::from_secret(&format!("{home}/{name}"), &secret)
        .map_err(|error| (told(error), "the Secret needs server, username and password"))
}

fn wish_of(pool: &VsphereAgentPool, login: &Login) -> Wish {
    let mut wish = Wish {
        address: login.server.clone(),
        settings: login.settings(),
        trust: login.trust.clone(),
        words: WORDS,
        places: Vec::new(),
        datacenter: pool.datacenter().to_owned(),
    };
    add_places(pool, &mut wish);
    wish
}

/// What the pool names, as the door looks for it.
fn add_places(pool: &VsphereAgentPool, wish: &mut Wish) {
    let vsphere = &pool.spec.vsphere;
    let disks = match (&vsphere.datastore_cluster, &vsphere.datastore) {
        (Some(cluster), _) if !cluster.is_empty() => (Kind::DatastoreCluster, cluster.as_str()),
        (_, datastore) => (Kind::Datastore, datastore.as_deref().unwrap_or_default()),
    };
    let places = [
        (Kind::FolderBelow, pool.folder()),
        (Kind::Pool, vsphere.resource_pool.as_str()),
        disks,
        (Kind::IsoDatastore, vsphere.iso_datastore.as_str()),
        (Kind::Network, vsphere.network.as_str()),
    ];
    let more = vsphere.extra_networks.iter().map(|it| (Kind::Network, it.network.as_str()));
    for (kind, name) in places.into_iter().chain(more) {
        let place = (kind, name.to_owned());
        if !wish.places.contains(&place) {
            wish.places.push(place);
        }
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
    let authorities = pool.spec.iso.as_ref().and_then(|iso| iso.ca_bundle.clone());
    let tls = match authorities.map_or(TlsTrust::System, TlsTrust::CaPem).client_config() {
        Ok(tls) => tls,
        Err(error) => {
            return Finding::fail(CHECK, told(error))
                .advice("correct spec.iso.caBundle of the pool");
        }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn places_are_those_that_the_door_looks_for_also_where_the_pool_says_nothing() {
        let spec = json!({"hostedClusterRef": {"name": "blue"}, "vsphere": {
            "datastoreCluster": "pod", "isoDatastore": "iso", "resourcePool": "c/Resources", "network": "net",
            "extraNetworks": [{"network": "storage"}],
            "failureDomains": [{"name": "a"}, {"name": "b", "datastore": "fast", "folder": "/nodes/b/"}]}});
        let pool = VsphereAgentPool::new("ns", "p", serde_json::from_value(spec).unwrap());
        let secret: Secret = serde_json::from_value(json!({"data":
            {"server": "dmM=", "username": "dQ==", "password": "cA=="}}))
        .unwrap();
        let login = Login::from_secret("ns/vc", &secret).unwrap();
        let mut wish = wish_of(&pool.in_domain("a").unwrap(), &login);
        assert_eq!(wish.datacenter, "dc1");
        let of_a = [
            (Kind::FolderBelow, "blue"),
            (Kind::Pool, "c/Resources"),
            (Kind::DatastoreCluster, "pod"),
            (Kind::IsoDatastore, "iso"),
            (Kind::Network, "net"),
            (Kind::Network, "storage"),
        ];
        assert_eq!(wish.places, of_a.map(|(kind, name)| (kind, name.to_owned())));
        add_places(&pool.in_domain("b").unwrap(), &mut wish);
        let of_b = [(Kind::FolderBelow, "nodes/b"), (Kind::Datastore, "fast")];
        assert_eq!(wish.places[of_a.len()..], of_b.map(|(kind, name)| (kind, name.to_owned())));
    }
}
