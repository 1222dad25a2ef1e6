use std::net::IpAddr;

use roost_hatchery::annotation::Annotation;
use roost_vim::wire::MoRef;
use roost_vim::wire::types::{ObjectSpec, PropertyFilterSpec, PropertySpec};
use roost_vim::{Client, Kind, Properties};

const PATHS: [&str; 10] = [
    "name",
    "config.uuid",
    "config.annotation",
    "config.changeVersion",
    "config.template",
    "runtime.powerState",
    "guest.ipAddress",
    "summary.config.numCpu",
    "summary.config.memorySizeMB",
    "network",
];

/// A VM or template as the vCenter shows it at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Vm {
    pub(crate) moref: MoRef,
    pub(crate) name: String,
    /// As its firmware shows it.
    pub(crate) uuid: Option<String>,
    pub(crate) text: String,
    pub(crate) change_version: Option<String>,
    pub(crate) is_template: bool,
    pub(crate) is_on: bool,
    pub(crate) address: Option<IpAddr>,
    pub(crate) cpus: Option<i64>,
    pub(crate) memory_mb: Option<i64>,
    pub(crate) networks: Vec<MoRef>,
}

impl Vm {
    /// All that are in the datacenter, by name.
    pub(crate) async fn read_all(client: &Client) -> Vec<Self> {
        Self::try_read_all(client).await.unwrap()
    }

    pub(crate) async fn try_read_all(client: &Client) -> anyhow::Result<Vec<Self>> {
        let finder = client.finder("DC0").await?;
        let found = finder.list(Kind::VirtualMachine, "*").await?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let object = |moref| ObjectSpec { obj: moref, skip: Some(false), select_set: Vec::new() };
        let spec = PropertyFilterSpec {
            prop_set: vec![PropertySpec::new("VirtualMachine", &PATHS)],
            object_set: found.into_iter().map(|vm| object(vm.moref)).collect(),
            // One that has gone in the meantime is left out.
            report_missing_objects_in_results: Some(true),
        };
        let read = client.retrieve(spec).await?.into_iter();
        let mut vms: Vec<Self> = read.map(|vm| Self::of(vm.obj.clone(), &vm.into())).collect();
        vms.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(vms)
    }

    fn of(moref: MoRef, read: &Properties) -> Self {
        let text = |path| read.str(path).map(str::to_owned);
        Self {
            moref,
            name: text("name").unwrap_or_default(),
            uuid: text("config.uuid"),
            text: text("config.annotation").unwrap_or_default(),
            change_version: text("config.changeVersion"),
            is_template: read.bool("config.template").unwrap_or(false),
            is_on: read.str("runtime.powerState") == Some("poweredOn"),
            address: read.str("guest.ipAddress").and_then(|address| address.parse().ok()),
            cpus: read.i64("summary.config.numCpu"),
            memory_mb: read.i64("summary.config.memorySizeMB"),
            networks: read.refs("network"),
        }
    }

    /// What it says of itself, if it is of this hatchery.
    pub(crate) fn of_hatchery(&self, name: &str) -> Option<Annotation> {
        Annotation::parse(&self.text).ok().filter(|annotation| annotation.is_of(name))
    }
}
