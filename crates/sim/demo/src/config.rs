//! The configuration that the demo runs on: a file like any operator's, read by the code that reads theirs.

use std::io;
use std::path::Path;

use anyhow::Context as _;
use roost_cds_sim::demo_hatchery_key;
use roost_hatchery::config::{Config, Surroundings};

pub(super) const HATCHERY: &str = "roost-demo";
pub(super) const TOKEN: &str = "demo-consumer-token";
pub(super) const TOKEN_V2: &str = "demo-hatchery-token";
pub(super) const REGION: &str = "default";

pub(super) const DEBIAN: &str = "debian12";
pub(super) const UBUNTU: &str = "ubuntu24";
pub(super) const FLAVORS: [&str; 3] = ["small", "medium", "large"];

const BEFORE_KEY: &str = r#"# The configuration of `roost demo`. Its secrets are those of the simulators in it: everybody knows them.

[hatchery.vsphere]
user = "roost@vsphere.local"
password = "demo"
endpoint = "vcenter.demo.invalid"
datacenterString = "DC0"
datastoreString = "LocalDS_0"
networkString = "DC0_DVPG0"
cardName = "vmxnet3"
dns = "10.42.0.53"

# What all workers together may take.
maxCpus = 40
maxMemoryMB = 81920
defaultFlavor = "small"
# Large jobs leave room for one small one.
countSmallerFlavorToKeep = 1

# Shorter than in production, so that there is something to see.
workerTTL = 60
workerRegistrationTTL = 5
killAwolServersInterval = 30
finishedWorkerGracePeriod = 30
workerProvisioningInterval = 30
workerProvisioningPoolSize = 4

[[hatchery.vsphere.flavors]]
name = "small"
cpus = 2
memoryMB = 4096

[[hatchery.vsphere.flavors]]
name = "medium"
cpus = 4
memoryMB = 8192

[[hatchery.vsphere.flavors]]
name = "large"
cpus = 8
memoryMB = 16384

# 26 addresses: the first and last of each range are left out.
[[hatchery.vsphere.networks]]
iprange = "10.42.0.16/28,10.42.0.32/29,10.42.0.40/29"
gateway = "10.42.0.1"
subnetMask = "255.255.255.0"

[[hatchery.vsphere.models]]
modelVMWare = "debian12"
username = "cds"
password = "demo"

[[hatchery.vsphere.models]]
modelVMWare = "ubuntu24"
username = "cds"
password = "demo"

# VMs made ahead of their job.
[[hatchery.vsphere.workerProvisioning]]
modelVMWare = "debian12"
number = 5

[[hatchery.vsphere.workerProvisioning]]
modelVMWare = "ubuntu24"
number = 2

[hatchery.vsphere.commonConfiguration]
name = "roost-demo"
url = "http://localhost:8086"
rsaPrivateKey = """
"#;

const AFTER_KEY: &str = r#""""

[hatchery.vsphere.commonConfiguration.http]
addr = "127.0.0.1"
port = 8086

[hatchery.vsphere.commonConfiguration.api]
token = "demo-consumer-token"
tokenV2 = "demo-hatchery-token"

[hatchery.vsphere.commonConfiguration.api.http]
url = "http://cds.demo.invalid"

[hatchery.vsphere.commonConfiguration.provision]
maxWorker = 14
maxConcurrentProvisioning = 10
region = "default"
"#;

/// The whole file.
pub(super) fn text() -> String {
    let key = demo_hatchery_key();
    format!("{BEFORE_KEY}{}\n{AFTER_KEY}", key.expose().trim())
}

pub(super) fn load() -> anyhow::Result<Config> {
    let loaded = Config::load(&text(), &Nowhere).context("the demo's own configuration")?;
    Ok(loaded.config)
}

/// No variables and no files: whatever surrounds it, the demo is the same.
#[derive(Debug, Clone, Copy)]
pub(super) struct Nowhere;

impl Surroundings for Nowhere {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn read_file(&self, _: &Path) -> io::Result<String> {
        Err(io::ErrorKind::NotFound.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demos_configuration_has_neither_problems_nor_warnings() {
        let loaded = Config::load(&text(), &Nowhere).unwrap_or_else(|invalid| panic!("{invalid}"));
        assert_eq!(loaded.warnings, []);
        let config = loaded.config;
        assert_eq!(config.identity.name, HATCHERY);
        assert_eq!(config.region.name.as_deref(), Some(REGION));
        assert_eq!(config.addresses.total(), 26);
        assert!(FLAVORS.iter().all(|name| config.flavors.get(name).is_some()));
    }
}
