//! The operator's file, as text: what a test runs on went through the same reader as a real one.

use std::io;
use std::path::Path;

use roost_cds_sim::demo_hatchery_key;
use roost_hatchery::config::{Config, Surroundings};
use toml::{Table, Value};

pub(crate) const VCENTER_PASSWORD: &str = "vcenter-password-4711";
pub(crate) const GUEST_PASSWORD: &str = "guest-password-0815";

/// The file of one hatchery. Everything below `[hatchery.vsphere]` can be set by its path.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    name: String,
    section: Table,
}

impl Setup {
    /// Three flavors, 61 addresses, two templates, room for ten workers, no spares. Hatcheries of other names than `hv1` have other addresses.
    pub(crate) fn new(name: &str) -> Self {
        let net = name.bytes().fold(0_u8, u8::wrapping_add);
        let setup = Self { name: name.to_owned(), section: Table::new() };
        let setup = setup
            .set("user", user(name))
            .set("endpoint", "vcenter.invalid")
            .set("password", VCENTER_PASSWORD)
            .set("datacenterString", "DC0")
            .set("networkString", "VM Network")
            .set("commonConfiguration.name", name)
            .set("commonConfiguration.url", format!("http://{name}.invalid:8086"))
            .set("commonConfiguration.rsaPrivateKey", demo_hatchery_key().expose())
            .set("commonConfiguration.api.token", token(name))
            .set("commonConfiguration.api.tokenV2", token_v2(name))
            .set("commonConfiguration.api.http.url", "http://cds.invalid")
            .network(&format!("10.{net}.0.0/26"), &format!("10.{net}.0.62"), "255.255.255.192")
            .flavor("small", 2, 4096)
            .flavor("medium", 4, 8192)
            .flavor("large", 8, 16384);
        ["debian12", "ubuntu24"].iter().fold(setup, |setup, template| {
            setup.push("models", |entry| {
                entry.insert("modelVMWare".into(), Value::from(*template));
                entry.insert("username".into(), "cds".into());
                entry.insert("password".into(), GUEST_PASSWORD.into());
            })
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Sets a key by its path below `[hatchery.vsphere]`, such as `commonConfiguration.provision.maxWorker`.
    pub(crate) fn set(mut self, path: &str, value: impl Into<Value>) -> Self {
        let mut keys: Vec<&str> = path.split('.').collect();
        let last = keys.pop().unwrap();
        let table = keys.into_iter().fold(&mut self.section, |table, key| {
            let below = table.entry(key).or_insert_with(|| Table::new().into());
            below.as_table_mut().unwrap()
        });
        table.insert(last.to_owned(), value.into());
        self
    }

    pub(crate) fn unset(mut self, key: &str) -> Self {
        self.section.remove(key);
        self
    }

    /// Adds an entry to a list of tables.
    pub(crate) fn push(mut self, key: &str, fill: impl FnOnce(&mut Table)) -> Self {
        let mut entry = Table::new();
        fill(&mut entry);
        let list = self.section.entry(key).or_insert_with(|| Value::Array(Vec::new()));
        list.as_array_mut().unwrap().push(entry.into());
        self
    }

    pub(crate) fn network(self, range: &str, gateway: &str, mask: &str) -> Self {
        self.push("networks", |entry| {
            entry.insert("iprange".into(), range.into());
            entry.insert("gateway".into(), gateway.into());
            entry.insert("subnetMask".into(), mask.into());
        })
    }

    /// Only these addresses.
    pub(crate) fn addresses(self, range: &str, gateway: &str, mask: &str) -> Self {
        self.unset("networks").network(range, gateway, mask)
    }

    pub(crate) fn dhcp(self) -> Self {
        self.unset("networks")
    }

    pub(crate) fn flavor(self, name: &str, cpus: i64, memory_mb: i64) -> Self {
        self.push("flavors", |entry| {
            entry.insert("name".into(), name.into());
            entry.insert("cpus".into(), cpus.into());
            entry.insert("memoryMB".into(), memory_mb.into());
        })
    }

    /// Keeps spares of a template.
    pub(crate) fn pool(self, template: &str, number: i64) -> Self {
        self.push("workerProvisioning", |entry| {
            entry.insert("modelVMWare".into(), template.into());
            entry.insert("number".into(), number.into());
        })
    }

    /// Keeps spares of a template in a size.
    pub(crate) fn flavored_pool(self, template: &str, flavor: &str, number: i64) -> Self {
        self.push("workerProvisioning", |entry| {
            entry.insert("modelVMWare".into(), template.into());
            entry.insert("flavor".into(), flavor.into());
            entry.insert("number".into(), number.into());
        })
    }

    /// Keeps spares of a V1 model.
    pub(crate) fn v1_pool(self, model: &str, number: i64) -> Self {
        self.push("workerProvisioning", |entry| {
            entry.insert("modelPath".into(), model.into());
            entry.insert("number".into(), number.into());
        })
    }

    /// The same pools with other numbers, for an operator who changes their mind.
    pub(crate) fn without_pools(self) -> Self {
        self.unset("workerProvisioning")
    }

    pub(crate) fn provision(self, key: &str, value: impl Into<Value>) -> Self {
        self.set(&format!("commonConfiguration.provision.{key}"), value)
    }

    /// Room for so many workers, all of which may start at the same time.
    pub(crate) fn max_workers(self, number: i64) -> Self {
        let registering = number.clamp(1, 2);
        self.provision("maxWorker", number)
            .provision("maxConcurrentProvisioning", number.max(1))
            .provision("maxConcurrentRegistering", registering)
    }

    pub(crate) fn only_v1(self) -> Self {
        self.set("commonConfiguration.api.tokenV2", "")
    }

    pub(crate) fn only_v2(self) -> Self {
        self.set("commonConfiguration.api.token", "")
    }

    pub(crate) fn text(&self) -> String {
        let mut hatchery = Table::new();
        hatchery.insert("vsphere".to_owned(), self.section.clone().into());
        let mut file = Table::new();
        file.insert("hatchery".to_owned(), hatchery.into());
        toml::to_string(&file).unwrap()
    }

    pub(crate) fn load(&self) -> Config {
        let loaded = Config::load(&self.text(), &Nothing);
        loaded.unwrap_or_else(|invalid| panic!("{invalid}")).config
    }
}

pub(crate) fn user(name: &str) -> String {
    format!("svc-{name}@vsphere.local")
}

pub(crate) fn token(name: &str) -> String {
    format!("consumer-token-of-{name}-7f3a")
}

pub(crate) fn token_v2(name: &str) -> String {
    format!("hatchery-token-of-{name}-91bc")
}

/// No variables and no files.
#[derive(Debug)]
pub(crate) struct Nothing;

impl Surroundings for Nothing {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn read_file(&self, _: &Path) -> io::Result<String> {
        Err(io::ErrorKind::NotFound.into())
    }
}
