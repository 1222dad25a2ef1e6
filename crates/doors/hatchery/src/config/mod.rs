//! The operator's CDS file, read plainly and validated once.
//!
//! `[hatchery.vsphere]` of the file that all CDS services share is read as CDS reads it: names in any case, numbers also as text, variables
//! `CDS_HATCHERY_VSPHERE_...` over the file. What comes out has types that carry their rules; the rest of the program never asks again. An
//! operator with three mistakes sees three lines, each led by the path to edit.

mod address_file;
mod common;
mod fleet;
mod guests;
mod keys;
mod sizing;
#[cfg(test)]
pub(crate) mod tests;
mod vsphere;

pub use address_file::{AddressFile, NetworkFile};
pub use common::{
    Cdn, CdsApi, Counts, Graylog, Identity, Listen, ListenTls, PageLinks, Region, Syslog, Tokens,
    WorkerSettings,
};
pub use guests::{
    GuestCredential, GuestLogin, GuestLoginError, GuestModel, GuestOf, GuestUser, Guests,
};
pub use roost_settings::{
    Invalid, LogFormat, LogLevel, LogSettings, Problem, SecretError, SecretSource, Surroundings,
    SystemSurroundings,
};
pub use sizing::{DefaultModel, Provisioning, ResourceLimits, SpareKind, SpareModel, SparePool};
pub use vsphere::{CardType, Lifetimes, Place, Vcenter};

use roost_fleet::{AddressPlan, FleetRules, Limit, Limits, Reserve};
use roost_settings::{Problems, Secret, Section, Table};

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
    /// Deletion guard, journal, ledger and deadlines.
    pub fleet: FleetRules,
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

/// Where the keys stand in CDS's file, and what overrides them.
pub const SECTION: Section = Section {
    root: "hatchery.vsphere",
    variables: Some("CDS_HATCHERY_VSPHERE"),
    keys: keys::ALL,
    former: keys::FORMER,
    added: " (not in CDS)",
};

const SAMPLE_HEAD: &str = "\
# Configuration of a Roost hatchery for CDS. Every line with a # shows a default or an example.
#
# The file is CDS's own: a [hatchery.vsphere] section that served a CDS hatchery works here unchanged, other sections may stay.
# Variables such as CDS_HATCHERY_VSPHERE_USER override it. A secret `x` may also be given as `xFile` (a file) or `xEnv` (a variable).
";

const SAMPLE_LOG: &str = "
# [log]
# debug, info, notice, warning or error
# level = \"info\"
# text, json or discard
# format = \"text\"
";

/// A commented file that shows every key worth setting. It is valid once the files that it names exist.
pub fn sample() -> String {
    format!("{SAMPLE_HEAD}{}{SAMPLE_LOG}", SECTION.sample())
}

/// What is sent at sign-in, and what CDS shows to its users: the configuration as CDS's own hatchery sends it, without secrets, and
/// `osArch` a second time at the top, where the V2 queue looks for it.
fn public(section: &Table, os_arch: &[String]) -> serde_json::Value {
    let mut top = SECTION.json(section);
    top.insert("osArch".to_owned(), serde_json::json!(os_arch));
    top.into()
}

impl Listen {
    /// Reads only where a hatchery listens, for those who want to ask it and may not read its secrets. What else may be wrong with the file
    /// does not matter to them.
    pub fn load(text: &str, surroundings: &dyn Surroundings) -> Result<Self, Invalid> {
        let problems = Problems::default();
        let section = Table::parse(text, &problems)
            .and_then(|file| SECTION.require(&file, surroundings, &problems));
        let listen = section.map(|section| common::listen(&SECTION.reader(&section, &problems)));
        Ok(problems.settle(listen)?.0)
    }

    /// The token that opens what a hatchery serves, if its file gives one and whoever asks may read it.
    pub fn token(text: &str, surroundings: &dyn Surroundings) -> Result<Option<Secret>, Invalid> {
        let problems = Problems::default();
        let section = Table::parse(text, &problems)
            .and_then(|file| SECTION.require(&file, surroundings, &problems));
        let token = section.map(|section| {
            let reader = SECTION.reader(&section, &problems);
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
        let log = LogSettings::read("CDS_LOG", file, surroundings, problems);
        let section = SECTION.require(file, surroundings, problems)?;
        SECTION.check(&section, problems);
        let reader = SECTION.reader(&section, problems);
        let vcenter = vsphere::vcenter(&reader, surroundings);
        let addresses = vsphere::addresses(&reader);
        let lifetimes = vsphere::lifetimes(&reader);
        let fleet = fleet::rules(&reader);
        let limits = sizing::limits(&reader);
        let flavors = sizing::flavors(&reader, limits);
        let provisioning = sizing::provisioning(&reader, flavors.as_ref());
        let models_v1 = !reader.boolean(&keys::vsphere::DISABLE_MODEL_V1);
        let guests = guests::read(&reader, surroundings);
        let default_models = sizing::default_models(&reader);
        let common = common::read(&reader, surroundings)?;
        Some(Self {
            public: public(&section, &common.identity.os_arch),
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
            fleet: fleet?,
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

    /// The configuration that is sent at sign-in.
    pub fn public_config(&self) -> serde_json::Value {
        self.public.clone()
    }
}
