//! The operator's CDS file, read plainly and validated once.
//!
//! `[hatchery.vsphere]` of the file that all CDS services share is read as CDS reads it: names in any case, numbers also as text, variables
//! `CDS_HATCHERY_VSPHERE_...` over the file. What comes out has types that carry their rules; the rest of the program never asks again. An
//! operator with three mistakes sees three lines, each led by the path to edit.

mod address_file;
mod common;
mod doc;
mod form;
mod guests;
mod key;
mod keys;
mod log;
mod problem;
mod public;
mod reader;
mod sample;
mod sizing;
mod source;
#[cfg(test)]
pub(crate) mod tests;
mod tree;
mod vsphere;

pub use address_file::{AddressFile, NetworkFile};
pub use common::{
    Cdn, CdsApi, Counts, Graylog, Identity, Listen, ListenTls, Region, Syslog, Tokens,
    WorkerSettings,
};
pub use doc::key_table;
pub use guests::{
    GuestCredential, GuestLogin, GuestLoginError, GuestModel, GuestOf, GuestUser, Guests,
};
pub use key::{Json, Key, Origin, Sample, Shape};
pub use keys::ALL as KEYS;
pub use log::{LogFormat, LogLevel, LogSettings};
pub use problem::{Invalid, Problem};
pub use sample::sample;
pub use sizing::{DefaultModel, Provisioning, ResourceLimits, SpareKind, SpareModel, SparePool};
pub use source::{SecretError, SecretSource, Surroundings, SystemSurroundings};
pub use vsphere::{CardType, Lifetimes, Place, Vcenter};

use roost_cds::Secret;
use roost_fleet::{AddressPlan, Limit, Limits, Reserve};

use self::problem::Problems;
use self::reader::{ROOT, Reader};
use self::tree::Table;
use crate::door::{PENDING, REGISTERING, WORKERS};
use crate::flavor::Flavors;

/// A hatchery that can run.
#[derive(Debug, Clone)]
pub struct Config {
    pub identity: Identity,
    pub listen: Listen,
    /// What opens the page and the API to other machines, and the actions to anybody.
    pub console_token: Option<SecretSource>,
    pub api: CdsApi,
    pub cdn: Cdn,
    pub counts: Counts,
    pub region: Region,
    pub workers: WorkerSettings,
    /// Whether V2 jobs are looked for at all.
    pub poll_v2: bool,
    pub vcenter: Vcenter,
    pub addresses: AddressPlan,
    pub lifetimes: Lifetimes,
    pub limits: ResourceLimits,
    pub flavors: Flavors,
    pub provisioning: Provisioning,
    /// Whether V1 worker models are registered and used.
    pub models_v1: bool,
    pub guests: Guests,
    pub default_models: Vec<DefaultModel>,
    pub log: LogSettings,
    public: serde_json::Value,
}

/// A configuration and what is odd about its file.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub config: Config,
    pub warnings: Vec<Problem>,
}

/// `[hatchery.vsphere]` with the environment over it.
fn section(file: &Table, surroundings: &dyn Surroundings, problems: &Problems) -> Option<Table> {
    let section = file.table("hatchery").and_then(|hatchery| hatchery.table("vsphere"));
    if section.is_none() {
        problems.problem(ROOT, None, "is missing: the file has no such section");
    }
    let mut section = section?.clone();
    form::override_from_environment(&mut section, surroundings);
    Some(section)
}

impl Listen {
    /// Reads only where a hatchery listens, for those who want to ask it and may not read its secrets. What else may be wrong with the file
    /// does not matter to them.
    pub fn load(text: &str, surroundings: &dyn Surroundings) -> Result<Self, Invalid> {
        let problems = Problems::default();
        let section =
            Table::parse(text, &problems).and_then(|file| section(&file, surroundings, &problems));
        let listen = section.map(|section| common::listen(&Reader::root(&section, &problems)));
        Ok(problems.settle(listen)?.0)
    }

    /// The token that opens what a hatchery serves, if its file gives one and whoever asks may read it.
    pub fn token(text: &str, surroundings: &dyn Surroundings) -> Result<Option<Secret>, Invalid> {
        let problems = Problems::default();
        let section =
            Table::parse(text, &problems).and_then(|file| section(&file, surroundings, &problems));
        let token = section.map(|section| {
            let reader = Reader::root(&section, &problems);
            reader.secret(&keys::common::HTTP_TOKEN, surroundings).map(|(_, token)| token)
        });
        Ok(problems.settle(token)?.0)
    }
}

impl Config {
    /// Reads the text of a file, with the environment over it.
    pub fn load(text: &str, surroundings: &dyn Surroundings) -> Result<Loaded, Invalid> {
        let problems = Problems::default();
        let config = Table::parse(text, &problems)
            .and_then(|file| Self::read(&file, surroundings, &problems));
        let (config, warnings) = problems.settle(config)?;
        Ok(Loaded { config, warnings })
    }

    fn read(file: &Table, surroundings: &dyn Surroundings, problems: &Problems) -> Option<Self> {
        let log = log::read(file, surroundings, problems);
        let section = section(file, surroundings, problems)?;
        form::check(&section, problems);
        let reader = Reader::root(&section, problems);
        let vcenter = vsphere::vcenter(&reader, surroundings);
        let addresses = vsphere::addresses(&reader);
        let lifetimes = vsphere::lifetimes(&reader);
        let limits = sizing::limits(&reader);
        let flavors = sizing::flavors(&reader, limits);
        let provisioning = sizing::provisioning(&reader, flavors.as_ref());
        let models_v1 = !reader.boolean(&keys::vsphere::DISABLE_MODEL_V1);
        let guests = guests::read(&reader, surroundings);
        let default_models = sizing::default_models(&reader);
        let common = common::read(&reader, surroundings)?;
        Some(Self {
            public: public::config(&section, &common.identity.os_arch),
            identity: common.identity,
            listen: common.listen,
            console_token: common.console_token,
            api: common.api,
            cdn: common.cdn,
            counts: common.counts,
            region: common.region,
            workers: common.workers,
            poll_v2: common.poll_v2,
            vcenter: vcenter?,
            addresses: addresses?,
            lifetimes: lifetimes?,
            limits: limits?,
            flavors: flavors?,
            provisioning: provisioning?,
            models_v1,
            guests,
            default_models,
            log,
        })
    }

    /// The limits that the ledger keeps.
    pub fn ledger_limits(&self) -> Limits {
        let limit = |limit: Option<u64>| limit.map_or(Limit::Unlimited, Limit::At);
        let smallest = self.flavors.smallest().filter(|_| self.limits.keep_smaller > 0);
        Limits {
            quotas: vec![
                (WORKERS, limit(self.counts.max_workers.map(u64::from))),
                (PENDING, Limit::At(self.counts.max_provisioning.into())),
                (REGISTERING, Limit::At(self.counts.max_registering.unwrap_or(0).into())),
            ],
            cpus: limit(self.limits.max_cpus),
            memory_mb: limit(self.limits.max_memory_mb),
            reserve: smallest.map(|smallest| Reserve {
                count: self.limits.keep_smaller.into(),
                cpus: smallest.cpus.into(),
                memory_mb: smallest.memory_mb,
            }),
            mhz_per_cpu: self.limits.mhz_per_cpu,
        }
    }

    /// What is sent at sign-in, and what CDS shows to its users: the configuration as CDS's own hatchery sends it, without secrets, and
    /// `osArch` a second time at the top, where the V2 queue looks for it.
    pub fn public_config(&self) -> serde_json::Value {
        self.public.clone()
    }
}
