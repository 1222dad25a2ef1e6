use std::net::IpAddr;
use std::sync::Arc;

use super::paths::Reading;
use super::vm::{Power, Vm};
use super::{Identity, PoolId};

/// What a change of ours made of a VM, as far as it did. Tell the mirror when the task has succeeded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wrote {
    name: Option<Arc<str>>,
    annotation: Option<Arc<str>>,
    cpus: Option<u32>,
    memory_mb: Option<u64>,
    power: Option<Power>,
    template: Option<bool>,
    pool: Option<PoolId>,
}

/// The same with its texts understood.
#[derive(Debug, Clone)]
pub(super) struct Believed {
    wrote: Wrote,
    identity: Option<Arc<Identity>>,
    name_address: Option<IpAddr>,
}

impl Wrote {
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    #[must_use]
    pub fn annotation(mut self, annotation: impl Into<Arc<str>>) -> Self {
        self.annotation = Some(annotation.into());
        self
    }

    #[must_use]
    pub fn cpus(mut self, cpus: u32) -> Self {
        self.cpus = Some(cpus);
        self
    }

    #[must_use]
    pub fn memory_mb(mut self, memory_mb: u64) -> Self {
        self.memory_mb = Some(memory_mb);
        self
    }

    #[must_use]
    pub fn power(mut self, power: Power) -> Self {
        self.power = Some(power);
        self
    }

    #[must_use]
    pub fn template(mut self, template: bool) -> Self {
        self.template = Some(template);
        self
    }

    #[must_use]
    pub fn pool(mut self, pool: PoolId) -> Self {
        self.pool = Some(pool);
        self
    }

    pub(super) fn moves_power(&self) -> bool {
        self.power.is_some()
    }

    /// This, and what an earlier write made of what this one did not touch.
    fn over(self, earlier: Self) -> Self {
        Self {
            name: self.name.or(earlier.name),
            annotation: self.annotation.or(earlier.annotation),
            cpus: self.cpus.or(earlier.cpus),
            memory_mb: self.memory_mb.or(earlier.memory_mb),
            power: self.power.or(earlier.power),
            template: self.template.or(earlier.template),
            pool: self.pool.or(earlier.pool),
        }
    }
}

impl Believed {
    pub(super) fn new(wrote: Wrote, reading: &Reading) -> Self {
        Self {
            identity: wrote.annotation.as_deref().and_then(|text| reading.identity(text)),
            name_address: wrote.name.as_deref().and_then(|name| reading.address_in_name(name)),
            wrote,
        }
    }

    pub(super) fn and_then(self, later: Wrote, reading: &Reading) -> Self {
        Self::new(later.over(self.wrote), reading)
    }

    /// The same properties with what was just read of them.
    pub(super) fn corrected_by(&self, vm: &Vm, reading: &Reading) -> Self {
        let wrote = Wrote {
            name: self.wrote.name.as_ref().map(|_| Arc::clone(&vm.name)),
            annotation: self
                .wrote
                .annotation
                .as_ref()
                .map(|_| vm.annotation.clone().unwrap_or_default()),
            cpus: self.wrote.cpus.map(|_| vm.cpus),
            memory_mb: self.wrote.memory_mb.map(|_| vm.memory_mb),
            power: self.wrote.power.map(|_| vm.power),
            template: self.wrote.template.map(|_| vm.template),
            pool: self.wrote.pool.as_ref().and_then(|_| vm.pool.clone()),
        };
        Self::new(wrote, reading)
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.wrote == other.wrote
    }

    pub(super) fn moves_power(&self) -> bool {
        self.wrote.moves_power()
    }

    /// Whether the stream says the same of all that was written.
    pub(super) fn agrees(&self, vm: &Vm) -> bool {
        fn same<T: PartialEq>(wrote: Option<&T>, is: &T) -> bool {
            wrote.is_none_or(|wrote| wrote == is)
        }
        self.config_agrees(vm)
            && same(self.wrote.power.as_ref(), &vm.power)
            && self
                .wrote
                .pool
                .as_ref()
                .is_none_or(|pool| vm.template || vm.pool.as_ref() == Some(pool))
    }

    /// Whether the stream has the configuration that was written, and so its version.
    pub(super) fn config_agrees(&self, vm: &Vm) -> bool {
        let Wrote { name, annotation, cpus, memory_mb, template, .. } = &self.wrote;
        name.as_ref().is_none_or(|name| *name == vm.name)
            // An annotation that nobody reads is not kept in a row either.
            && annotation.as_ref().is_none_or(|text| {
                if self.identity.is_some() { vm.annotation.as_ref() == Some(text) } else { vm.annotation.is_none() }
            })
            && cpus.is_none_or(|cpus| cpus == vm.cpus)
            && memory_mb.is_none_or(|memory_mb| memory_mb == vm.memory_mb)
            && template.is_none_or(|template| template == vm.template)
    }

    pub(super) fn write_over(&self, vm: &mut Vm) {
        let Wrote { name, annotation, cpus, memory_mb, power, template, pool } = &self.wrote;
        if let Some(name) = name {
            vm.name = Arc::clone(name);
            vm.name_address = self.name_address;
        }
        if let Some(annotation) = annotation {
            vm.identity.clone_from(&self.identity);
            vm.annotation = self.identity.as_ref().map(|_| Arc::clone(annotation));
        }
        vm.cpus = cpus.unwrap_or(vm.cpus);
        vm.memory_mb = memory_mb.unwrap_or(vm.memory_mb);
        vm.power = power.unwrap_or(vm.power);
        vm.template = template.unwrap_or(vm.template);
        if pool.is_some() {
            vm.pool.clone_from(pool);
        }
    }
}
