//! Flavors, resource limits and spares: how large, how much of it, how many ahead.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use roost_cds::v1::ModelPath;
use roost_cds::v2::AsCodePath;
use roost_settings::{Listed, Reader};

use super::keys::vsphere as keys;
use super::vsphere::duration;
use crate::flavor::{Flavor, Flavors, FlavorsError, Footprint};

/// Limits on the powered-on VMs of this hatchery. `None`: none beside the resource pool's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResourceLimits {
    pub max_cpus: Option<u64>,
    pub max_memory_mb: Option<u64>,
    /// MHz of the resource pool that one vCPU needs. `None`: the pool only has to have any left (D10).
    pub mhz_per_cpu: Option<u64>,
    /// Workers of the smallest flavor that must still fit beside a larger one.
    pub keep_smaller: u32,
}

/// Spares and how they are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provisioning {
    pub interval: Duration,
    /// Being made at the same time; at least 1.
    pub pool_size: u32,
    /// Workers never start from a fresh clone.
    pub only_provisioned: bool,
    pub pools: Vec<SparePool>,
}

/// Spares of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SparePool {
    pub kind: SpareKind,
    pub number: u32,
}

/// What a spare was made from and for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpareKind {
    pub model: SpareModel,
    /// In lower case; `None` is a neutral spare, which serves any flavor.
    pub flavor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SpareModel {
    /// A V1 worker model, whose template is named as the model.
    V1(ModelPath),
    /// A template, for V2 models.
    V2(String),
}

impl SpareModel {
    pub fn template(&self) -> &str {
        match self {
            Self::V1(path) => &path.name,
            Self::V2(template) => template,
        }
    }
}

impl fmt::Display for SpareModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V1(path) => path.fmt(f),
            Self::V2(template) => f.write_str(template),
        }
    }
}

impl fmt::Display for SpareKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.flavor {
            Some(flavor) => write!(f, "{} ({flavor})", self.model),
            None => self.model.fmt(f),
        }
    }
}

/// A V2 model for V1 jobs that name none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultModel {
    pub model: AsCodePath,
    pub binaries: Vec<String>,
}

/// Far beyond what vSphere gives one VM, so that only slips are refused.
const MOST_CPUS: u64 = 10_000;
/// vSphere refuses a memory size that is no multiple of this many MB.
const MEMORY_STEP_MB: u64 = 4;
/// `workerProvisioningInterval` 0.
const INTERVAL_SECONDS: u64 = 120;

pub(super) fn limits(reader: &Reader<'_>) -> Option<ResourceLimits> {
    let max_cpus = reader.amount(&keys::MAX_CPUS, u64::MAX);
    let max_memory_mb = reader.amount(&keys::MAX_MEMORY_MB, u64::MAX);
    let mhz_per_cpu = reader.amount(&keys::MHZ_PER_CPU, u64::MAX);
    let keep_smaller = reader.amount(&keys::KEEP_SMALLER, u32::MAX.into());
    let some = |amount: u64| Some(amount).filter(|amount| *amount > 0);
    let limits = ResourceLimits {
        max_cpus: some(max_cpus?),
        max_memory_mb: some(max_memory_mb?),
        mhz_per_cpu: some(mhz_per_cpu?),
        keep_smaller: u32::try_from(keep_smaller?).ok()?,
    };
    if limits.keep_smaller > 0 && limits.max_cpus.is_none() && limits.max_memory_mb.is_none() {
        reader.warn(&keys::KEEP_SMALLER, "has no effect without maxCpus or maxMemoryMB");
    }
    Some(limits)
}

pub(super) fn flavors(reader: &Reader<'_>, limits: Option<ResourceLimits>) -> Option<Flavors> {
    let listed = reader.tables(&keys::FLAVORS, "flavors[].");
    let names: Vec<Option<String>> = listed.iter().map(flavor_name).collect();
    let mut before: HashMap<String, &String> = HashMap::new();
    for (index, name) in names.iter().enumerate() {
        let Some(name) = name else { continue };
        if let Some(first) = before.get(&crate::flavor::folded(name)) {
            let twice = FlavorsError::Twice { index, first: (*first).clone() };
            listed[index].reader.problem(&keys::FLAVOR_NAME, twice.to_string());
        } else {
            before.insert(crate::flavor::folded(name), name);
        }
    }
    let default = reader.filled(&keys::DEFAULT_FLAVOR);
    if let Some(name) = &default {
        // A flavor without a name is reported already; it may be the one.
        let is_known = names
            .iter()
            .any(|known| known.as_ref().is_none_or(|known| crate::flavor::same(known, name)));
        if !is_known {
            let known = Flavors::list_names(names.iter().flatten());
            let unknown = FlavorsError::NoSuchDefault { name: name.clone(), known };
            reader.problem(&keys::DEFAULT_FLAVOR, unknown.to_string());
        }
    }
    let read: Vec<Option<Flavor>> =
        listed.iter().zip(names).map(|(entry, name)| flavor(&entry.reader, name)).collect();
    let flavors = Flavors::new(read.into_iter().collect::<Option<_>>()?, default).ok()?;
    let smallest = flavors.smallest();
    for (entry, flavor) in listed.iter().zip(flavors.iter()) {
        warn_of_size(&entry.reader, smallest, flavor, limits.unwrap_or_default());
    }
    Some(flavors)
}

/// Of an entry, or the table's own name if the flavors are tables by name.
fn flavor_name(entry: &Listed<'_>) -> Option<String> {
    let reader = &entry.reader;
    let Some(table) = entry.name else { return reader.mandatory(&keys::FLAVOR_NAME) };
    if let Some(name) = reader.filled(&keys::FLAVOR_NAME)
        && !crate::flavor::same(table, &name)
    {
        let message = format!("must be left out or be {table:?}, the table's name; is {name:?}");
        reader.problem(&keys::FLAVOR_NAME, message);
    }
    Some(table.to_owned())
}

fn flavor(reader: &Reader<'_>, name: Option<String>) -> Option<Flavor> {
    let cpus = reader.amount(&keys::FLAVOR_CPUS, MOST_CPUS);
    let memory_mb = reader.amount(&keys::FLAVOR_MEMORY_MB, i64::MAX.unsigned_abs());
    let disk_gb = reader.amount(&keys::FLAVOR_DISK_GB, u32::MAX.into());
    if let Some(odd) = memory_mb.filter(|memory| !memory.is_multiple_of(MEMORY_STEP_MB)) {
        reader.problem(
            &keys::FLAVOR_MEMORY_MB,
            format!("must be a multiple of {MEMORY_STEP_MB}, is {odd}"),
        );
    }
    let some = |amount: u64| Some(amount).filter(|amount| *amount > 0);
    Some(Flavor {
        name: name?,
        cpus: some(cpus?).and_then(|cpus| cpus.try_into().ok()),
        memory_mb: some(memory_mb?),
        disk_gb: some(disk_gb?),
    })
}

/// A flavor that can never be spawned is worth a word before the first job waits for it.
fn warn_of_size(
    reader: &Reader<'_>,
    smallest: Option<Footprint>,
    flavor: &Flavor,
    limits: ResourceLimits,
) {
    let reserve = flavor.reserve_for(smallest, limits.keep_smaller);
    let Footprint { cpus, memory_mb } =
        flavor.footprint(Some(Footprint::default())).unwrap_or_default();
    let cpus = u64::from(cpus) + u64::from(reserve.cpus);
    let memory_mb = memory_mb.saturating_add(reserve.memory_mb);
    for (key, need, limit, name) in [
        (&keys::FLAVOR_CPUS, cpus, limits.max_cpus, "maxCpus"),
        (&keys::FLAVOR_MEMORY_MB, memory_mb, limits.max_memory_mb, "maxMemoryMB"),
    ] {
        if let Some(limit) = limit.filter(|limit| need > *limit) {
            let what = if limits.keep_smaller > 0 {
                "with what is kept for smaller flavors"
            } else {
                "alone"
            };
            reader.warn(key, format!("never fits: needs {need} {what}, and {name} is {limit}"));
        }
    }
}

pub(super) fn provisioning(reader: &Reader<'_>, flavors: Option<&Flavors>) -> Option<Provisioning> {
    let interval = duration(reader, &keys::PROVISIONING_INTERVAL, 1, INTERVAL_SECONDS);
    let pool_size = reader.amount(&keys::PROVISIONING_POOL_SIZE, u32::MAX.into());
    let only_provisioned = reader.boolean(&keys::ONLY_PROVISIONED);
    let pools = pools(reader, flavors);
    if only_provisioned && pools.iter().all(|pool| pool.number == 0) {
        reader.warn(
            &keys::ONLY_PROVISIONED,
            "without workerProvisioning means that no worker ever starts",
        );
    }
    Some(Provisioning {
        interval: interval?,
        pool_size: u32::try_from(pool_size?).ok()?.max(1),
        only_provisioned,
        pools,
    })
}

fn pools(reader: &Reader<'_>, flavors: Option<&Flavors>) -> Vec<SparePool> {
    let mut pools: Vec<SparePool> = Vec::new();
    let mut seen: HashMap<SpareKind, usize> = HashMap::new();
    for listed in reader.tables(&keys::PROVISIONING, "workerProvisioning[].") {
        let reader = &listed.reader;
        let v1 = reader
            .filled(&keys::PROVISIONING_PATH)
            .map(|path| SpareModel::V1(ModelPath::parse(&path)));
        let v2 = reader.filled(&keys::PROVISIONING_VMWARE).map(SpareModel::V2);
        let number = reader.amount(&keys::PROVISIONING_NUMBER, u32::MAX.into());
        let flavor = reader.filled(&keys::PROVISIONING_FLAVOR);
        if let (Some(name), Some(flavors)) = (&flavor, flavors)
            && flavors.get(name).is_none()
        {
            let message = format!("{name:?} is not one of the flavors: {}", flavors.names());
            reader.problem(&keys::PROVISIONING_FLAVOR, message);
        }
        let Some(number) = number.and_then(|number| u32::try_from(number).ok()) else { continue };
        if v1.is_none() && v2.is_none() {
            if number > 0 {
                reader.problem(&keys::PROVISIONING_VMWARE, "is missing, and so is modelPath");
            } else {
                reader.warn(
                    &keys::PROVISIONING_VMWARE,
                    "is missing, and so is modelPath: the entry has no effect",
                );
            }
        }
        // CDS takes an entry with both names as one pool of each.
        for model in [v1, v2].into_iter().flatten() {
            let kind = SpareKind { model, flavor: flavor.as_ref().map(|name| name.to_lowercase()) };
            if let Some(earlier) = seen.get(&kind) {
                reader.warn(
                    &keys::PROVISIONING_NUMBER,
                    format!("is for {kind}, which has an entry already; the larger number counts"),
                );
                pools[*earlier].number = pools[*earlier].number.max(number);
            } else {
                seen.insert(kind.clone(), pools.len());
                pools.push(SparePool { kind, number });
            }
        }
    }
    pools
}

pub(super) fn default_models(reader: &Reader<'_>) -> Vec<DefaultModel> {
    let mut models = Vec::new();
    for listed in reader.tables(&keys::DEFAULT_MODELS, "defaultWorkerModelsV2[].") {
        let reader = &listed.reader;
        let binaries = reader.texts(&keys::DEFAULT_MODEL_BINARIES);
        let Some(text) = reader.mandatory(&keys::DEFAULT_MODEL) else { continue };
        match AsCodePath::parse(&text) {
            Some(model) => models.push(DefaultModel { model, binaries }),
            None => reader.problem(
                &keys::DEFAULT_MODEL,
                format!("must be PROJECT/vcs/owner/repository/model, is {text:?}"),
            ),
        }
    }
    models
}
