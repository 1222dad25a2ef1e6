use std::sync::Arc;

use super::PoolId;
use super::claim::ExtraConfig;
use super::paths::{Reading, set_extra_config};
use super::vm::{Power, Vm};

/// What a change of ours made of a VM, as far as it did. Tell the mirror when the task has succeeded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wrote {
    name: Option<Arc<str>>,
    annotation: Option<Arc<str>>,
    instance_uuid: Option<Arc<str>>,
    folder: Option<Arc<str>>,
    extra_config: ExtraConfig,
    cpus: Option<u32>,
    memory_mb: Option<u64>,
    power: Option<Power>,
    template: Option<bool>,
    pool: Option<PoolId>,
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
    pub fn instance_uuid(mut self, uuid: impl Into<Arc<str>>) -> Self {
        self.instance_uuid = Some(uuid.into());
        self
    }

    /// By the folder's id.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<Arc<str>>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// One value of `extraConfig`, for a key that a door needs. An empty one takes the key away.
    #[must_use]
    pub fn extra_config(mut self, key: &'static str, value: impl Into<Arc<str>>) -> Self {
        self.extra_config.insert(key, value.into());
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

    /// What a VM is recognised by, as it was read.
    pub(crate) fn marks_of(vm: &Vm) -> Self {
        let extra_config = vm.extra_config.as_deref().cloned().unwrap_or_default();
        Self {
            name: Some(Arc::clone(&vm.name)),
            annotation: vm.annotation.clone(),
            instance_uuid: vm.instance_uuid.as_deref().map(Into::into),
            folder: vm.parent.clone(),
            extra_config,
            ..Self::default()
        }
    }

    pub(super) fn moves_power(&self) -> bool {
        self.power.is_some()
    }

    /// This, and what an earlier write made of what this one did not touch.
    pub(super) fn over(self, mut earlier: Self) -> Self {
        earlier.extra_config.extend(self.extra_config);
        Self {
            name: self.name.or(earlier.name),
            annotation: self.annotation.or(earlier.annotation),
            instance_uuid: self.instance_uuid.or(earlier.instance_uuid),
            folder: self.folder.or(earlier.folder),
            extra_config: earlier.extra_config,
            cpus: self.cpus.or(earlier.cpus),
            memory_mb: self.memory_mb.or(earlier.memory_mb),
            power: self.power.or(earlier.power),
            template: self.template.or(earlier.template),
            pool: self.pool.or(earlier.pool),
        }
    }

    /// The same properties with what was just read of them.
    pub(super) fn corrected_by(&self, vm: &Vm) -> Self {
        let extra = |key: &&'static str| (*key, vm.extra_config(key).unwrap_or_default().into());
        Self {
            name: self.name.as_ref().map(|_| Arc::clone(&vm.name)),
            annotation: self.annotation.as_ref().map(|_| vm.annotation.clone().unwrap_or_default()),
            instance_uuid: self
                .instance_uuid
                .as_ref()
                .map(|_| vm.instance_uuid.as_deref().unwrap_or_default().into()),
            folder: self.folder.as_ref().and_then(|_| vm.parent.clone()),
            extra_config: self.extra_config.keys().map(extra).collect(),
            cpus: self.cpus.map(|_| vm.cpus),
            memory_mb: self.memory_mb.map(|_| vm.memory_mb),
            power: self.power.map(|_| vm.power),
            template: self.template.map(|_| vm.template),
            pool: self.pool.as_ref().and_then(|_| vm.pool.clone()),
        }
    }

    /// Whether the stream says the same of all that was written.
    pub(super) fn agrees(&self, vm: &Vm, reading: &Reading) -> bool {
        let over = self.laid_over(vm, reading);
        config_is_same(&over, vm) && over.power == vm.power && (vm.template || over.pool == vm.pool)
    }

    /// Whether the stream has the configuration that was written, and so its version.
    pub(super) fn config_agrees(&self, vm: &Vm, reading: &Reading) -> bool {
        config_is_same(&self.laid_over(vm, reading), vm)
    }

    fn laid_over(&self, vm: &Vm, reading: &Reading) -> Vm {
        let mut over = vm.clone();
        self.write_over(&mut over, reading);
        over
    }

    pub(super) fn write_over(&self, vm: &mut Vm, reading: &Reading) {
        let Self { name, annotation, instance_uuid, folder, extra_config, .. } = self;
        if let Some(name) = name {
            vm.name = Arc::clone(name);
        }
        if let Some(annotation) = annotation {
            vm.annotation = Some(Arc::clone(annotation));
        }
        if let Some(uuid) = instance_uuid {
            vm.instance_uuid = Some((**uuid).into());
        }
        if folder.is_some() {
            vm.parent.clone_from(folder);
        }
        for (key, value) in extra_config {
            // An empty value takes a key away.
            set_extra_config(vm, key, Some(&**value).filter(|value| !value.is_empty()));
        }
        vm.template = self.template.unwrap_or(vm.template);
        if self.moves_marks() {
            reading.recognise(vm);
        }
        vm.cpus = self.cpus.unwrap_or(vm.cpus);
        vm.memory_mb = self.memory_mb.unwrap_or(vm.memory_mb);
        vm.power = self.power.unwrap_or(vm.power);
        if self.pool.is_some() {
            vm.pool.clone_from(&self.pool);
        }
    }

    fn moves_marks(&self) -> bool {
        self.name.is_some()
            || self.annotation.is_some()
            || self.instance_uuid.is_some()
            || self.folder.is_some()
            || self.template.is_some()
            || !self.extra_config.is_empty()
    }
}

fn config_is_same(one: &Vm, other: &Vm) -> bool {
    one.name == other.name
        && one.annotation == other.annotation
        && one.claim.is_some() == other.claim.is_some()
        && one.instance_uuid == other.instance_uuid
        && one.extra_config == other.extra_config
        && one.parent == other.parent
        && one.cpus == other.cpus
        && one.memory_mb == other.memory_mb
        && one.template == other.template
}
