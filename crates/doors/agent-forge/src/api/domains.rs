//! A pool in several places.

use super::{FailureDomain, VsphereAgentPool, VsphereSpec};

impl VsphereAgentPool {
    /// The failure domains that VMs go to; one without a name where there are none.
    pub fn domain_names(&self) -> Vec<&str> {
        let domains = &self.spec.vsphere.failure_domains;
        if domains.is_empty() {
            return vec![""];
        }
        domains.iter().map(|domain| domain.name.as_str()).collect()
    }

    /// This pool as if the domain were all of it. The name that is empty means the pool itself.
    pub fn in_domain(&self, name: &str) -> Option<Self> {
        if name.is_empty() {
            return Some(self.clone());
        }
        let domain = self.spec.vsphere.failure_domains.iter().find(|it| it.name == name)?;
        let mut pool = self.clone();
        pool.spec.vsphere = overlaid(&self.spec.vsphere, domain);
        let status = self.status.failure_domains.iter().find(|it| it.name == name);
        pool.status.iso = status.and_then(|status| status.iso.clone());
        Some(pool)
    }
}

fn overlaid(pool: &VsphereSpec, domain: &FailureDomain) -> VsphereSpec {
    let mut spec = VsphereSpec { failure_domains: Vec::new(), ..pool.clone() };
    let FailureDomain { credentials_secret_ref, iso_datastore, resource_pool, network, .. } =
        domain.clone();
    spec.credentials_secret_ref = credentials_secret_ref.unwrap_or(spec.credentials_secret_ref);
    spec.iso_datastore = iso_datastore.unwrap_or(spec.iso_datastore);
    spec.resource_pool = resource_pool.unwrap_or(spec.resource_pool);
    spec.network = network.unwrap_or(spec.network);
    spec.datacenter = domain.datacenter.clone().or(spec.datacenter);
    spec.folder = domain.folder.clone().or(spec.folder);
    spec.storage_policy = domain.storage_policy.clone().or(spec.storage_policy);
    if domain.datastore_cluster.is_some() || domain.datastore.is_some() {
        spec.datastore_cluster.clone_from(&domain.datastore_cluster);
        spec.datastore.clone_from(&domain.datastore);
    }
    spec
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_domain_says_what_differs_and_the_pool_the_rest() {
        let spec = json!({"vsphere": {
        "credentialsSecretRef": {"name": "vc"}, "datacenter": "DC0", "datastoreCluster": "POD",
        "isoDatastore": "iso", "resourcePool": "C0/Resources", "network": "net", "folder": "nodes",
        "failureDomains": [
            {"name": "a"},
            {"name": "b", "datastore": "ds", "resourcePool": "C1/Resources", "credentialsSecretRef": {"name": "vc-b"}},
        ]}});
        let mut pool = VsphereAgentPool::new("ns", "p", serde_json::from_value(spec).unwrap());
        assert_eq!(pool.domain_names(), ["a", "b"]);
        let a = pool.in_domain("a").unwrap().spec.vsphere;
        assert_eq!(
            (a.resource_pool.as_str(), a.datastore_cluster.as_deref()),
            ("C0/Resources", Some("POD"))
        );
        let b = pool.in_domain("b").unwrap().spec.vsphere;
        assert_eq!((b.datastore.as_deref(), b.datastore_cluster), (Some("ds"), None));
        assert_eq!((b.credentials_secret_ref.name.as_str(), b.network.as_str()), ("vc-b", "net"));
        assert!(pool.in_domain("c").is_none());
        pool.spec.vsphere.failure_domains.clear();
        assert_eq!(pool.domain_names(), [""]);
        assert_eq!(pool.in_domain("").as_ref(), Some(&pool));
    }
}
