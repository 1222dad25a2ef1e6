//! From nothing to a running VM. The branches in their order; the first whose condition holds is taken.

use roost_microvm::{
    ArtifactKind, Backend, CloneFrom, CloneOptions, Nic, Progress, Reference, RegistryError,
    RunOptions, RuntimeError, SnapshotRecord, VmConfig, VmRecord, VmState,
};
use tokio::sync::SemaphorePermit;

use super::host::Host;
use super::table::Waiting;
use crate::contract::{Mode, Os, VmSpec, fork_snapshot, import_snapshot};
use crate::planted::{self, Bug};

/// Why a VM did not come up. The texts name what an operator would look for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BringUpError {
    #[error("unmanaged vm {vm} missing pre-assigned IP/VMID")]
    NotGiven { vm: String },
    #[error("pull {vm}: no snapshot puller configured")]
    NoRegistry { vm: String },
    #[error("looking for a hibernated {vm}")]
    Evidence { vm: String, source: RegistryError },
    #[error("ensure snapshot {snapshot}")]
    Snapshot { snapshot: String, source: RuntimeError },
    #[error("snapshot {snapshot} was taken with {has} but CocoonSet requests {wanted}")]
    Backend { snapshot: String, has: String, wanted: String },
    #[error("inspect fork source vm {vm}")]
    ForkSource { vm: String, source: RuntimeError },
    #[error("snapshot fork source vm {vm}")]
    ForkSave { vm: String, source: RuntimeError },
    #[error("image {image} is a snapshot: use mode=clone")]
    SnapshotAsImage { image: String },
    #[error("pull image {image}")]
    Image { image: String, source: RuntimeError },
    #[error("run vm {vm}")]
    Run { vm: String, source: RuntimeError },
    #[error("clone vm {vm}")]
    Clone { vm: String, source: RuntimeError },
    #[error("the kubelet is shutting down")]
    ShuttingDown,
    #[error("wake {vm}")]
    WakePull { vm: String, source: Box<BringUpError> },
    #[error("wake {vm}")]
    WakeClone { vm: String, source: Box<BringUpError> },
}

impl BringUpError {
    /// The reason of the event that tells of it.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::WakePull { .. } => "WakePullFailed",
            Self::WakeClone { .. } => "WakeCloneFailed",
            Self::Evidence { .. } => "HibernateEvidenceFailed",
            Self::NotGiven { .. }
            | Self::NoRegistry { .. }
            | Self::Snapshot { .. }
            | Self::Backend { .. }
            | Self::ForkSource { .. }
            | Self::ForkSave { .. }
            | Self::SnapshotAsImage { .. }
            | Self::Image { .. }
            | Self::Run { .. }
            | Self::Clone { .. }
            | Self::ShuttingDown => "CreateBringUpFailed",
        }
    }

    pub(crate) fn is_of_a_wake(&self) -> bool {
        matches!(self, Self::WakePull { .. } | Self::WakeClone { .. })
    }
}

/// A VM that runs.
#[derive(Debug)]
pub(crate) struct BroughtUp {
    pub(crate) vm: VmRecord,
    pub(crate) way: Way,
    /// Whether the guest wakes with another's network.
    pub(crate) is_copy: bool,
    /// The base image of the snapshot that it was cloned from.
    pub(crate) image: String,
}

/// How it came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Given,
    Adopted,
    Woken,
    Cloned,
    Ran,
}

impl Way {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Given => "somebody else runs it",
            Self::Adopted => "it was there already",
            Self::Woken => "woken from hibernation",
            Self::Cloned => "cloned from a snapshot",
            Self::Ran => "booted from an image",
        }
    }
}

/// Tells how far it is.
pub(crate) type Tell<'a> = &'a (dyn Fn(Waiting) + Sync);

impl Host {
    pub(crate) async fn bring_up(
        &self,
        spec: &VmSpec,
        tell: Tell<'_>,
        progress: &Progress,
    ) -> Result<BroughtUp, BringUpError> {
        if !spec.managed {
            return given(spec);
        }
        if spec.restore_from_hibernate || self.is_hibernated(spec).await? {
            return self.wake(spec, tell, progress).await;
        }
        if let Some(folder) = &spec.clone_from_dir {
            let from = CloneFrom::Folder(folder.clone());
            let cloned = self.clone_vm(spec, from, true, None, tell).await;
            self.metrics.clone_from_dir(cloned.is_ok());
            return cloned;
        }
        if let Some(source) = &spec.fork_from {
            self.ensure_fork(source).await?;
            return self
                .clone_vm(spec, CloneFrom::Snapshot(fork_snapshot(source)), false, None, tell)
                .await;
        }
        match spec.mode {
            Mode::Run => self.run(spec, tell, progress).await,
            Mode::Clone | Mode::Static => self.clone_from_registry(spec, tell, progress).await,
        }
    }

    /// A tag that is still there tells of a wake that nobody carried out: booting afresh would lose what was saved.
    pub(super) async fn is_hibernated(&self, spec: &VmSpec) -> Result<bool, BringUpError> {
        if planted::is(Bug::ForgetsTags) {
            return Ok(false);
        }
        let Some(registry) = &self.registry else {
            let local = import_snapshot(&spec.name);
            let failed = |source| BringUpError::Snapshot { snapshot: local.clone(), source };
            return Ok(self.runtime.snapshot(&local).await.map_err(failed)?.is_some());
        };
        let evidence = |source| BringUpError::Evidence { vm: spec.name.clone(), source };
        registry.has_manifest(&spec.name, "hibernate").await.map_err(evidence)
    }

    async fn wake(
        &self,
        spec: &VmSpec,
        tell: Tell<'_>,
        progress: &Progress,
    ) -> Result<BroughtUp, BringUpError> {
        let local = import_snapshot(&spec.name);
        let _held = self.cache.hold(&local, self.clock.now());
        if self.registry.is_some() {
            let from = Reference { repository: spec.name.clone(), tag: "hibernate".to_owned() };
            self.pull(from, &local, tell, progress).await.map_err(|source| {
                BringUpError::WakePull { vm: spec.name.clone(), source: Box::new(source) }
            })?;
        }
        let nics = (spec.os == Os::Windows && !spec.backend.is_firecracker()).then_some(1);
        let from = CloneFrom::Snapshot(local.clone());
        let woken = self.clone_vm(spec, from, false, nics, tell).await.map_err(|source| {
            BringUpError::WakeClone { vm: spec.name.clone(), source: Box::new(source) }
        })?;
        if let Err(error) = self.runtime.snapshot_remove(&local).await {
            tracing::warn!(vm = spec.name, "the unpacked snapshot stays: {error}");
        }
        if self.deletes_hibernate_tag
            && let Some(registry) = &self.registry
            && let Err(error) = registry.delete_manifest(&spec.name, "hibernate").await
        {
            tracing::warn!(vm = spec.name, "the hibernate tag stays: {error}");
        }
        Ok(BroughtUp { way: Way::Woken, ..woken })
    }

    async fn clone_from_registry(
        &self,
        spec: &VmSpec,
        tell: Tell<'_>,
        progress: &Progress,
    ) -> Result<BroughtUp, BringUpError> {
        let from = Reference::parse(&spec.image);
        let local = from.local_name();
        // From the look at it to the clone, nobody may remove it.
        let _held = self.cache.hold(&local, self.clock.now());
        let failed = |source| BringUpError::Snapshot { snapshot: local.clone(), source };
        let found = self.runtime.snapshot(&local).await.map_err(failed)?;
        let snapshot = if let Some(snapshot) = found {
            snapshot
        } else {
            self.pull(from, &local, tell, progress).await?;
            let gone = || RuntimeError::SnapshotNotFound { snapshot: local.clone() };
            self.runtime.snapshot(&local).await.map_err(failed)?.ok_or_else(|| failed(gone()))?
        };
        check_backend(self.runtime.capabilities().only, spec, &snapshot)?;
        let pull = !snapshot.image.is_empty();
        let cloned = self.clone_vm(spec, CloneFrom::Snapshot(local), pull, None, tell).await?;
        Ok(BroughtUp { image: snapshot.image, ..cloned })
    }

    async fn pull(
        &self,
        from: Reference,
        local: &str,
        tell: Tell<'_>,
        progress: &Progress,
    ) -> Result<(), BringUpError> {
        let Some(registry) = &self.registry else {
            return Err(BringUpError::NoRegistry { vm: local.to_owned() });
        };
        let _permit = permit(self.limits.pulls.acquire().await)?;
        tell(Waiting::PullingSnapshot);
        let began = self.clock.now();
        let archive = registry.counting(progress).pull_snapshot(from, local.to_owned());
        let pulled = self.runtime.snapshot_import(local, archive).await;
        self.metrics.snapshot_pull(pulled.is_ok(), self.clock.now().duration_since(began));
        self.cache.grow();
        pulled.map_err(|source| BringUpError::Snapshot { snapshot: local.to_owned(), source })
    }

    /// The snapshot that forks of `source` start from. One that is older than the VM is of an earlier VM of that name.
    async fn ensure_fork(&self, source: &str) -> Result<(), BringUpError> {
        let _permit = permit(self.limits.forks.acquire().await)?;
        let name = fork_snapshot(source);
        let vm = self
            .runtime
            .inspect(source)
            .await
            .map_err(|error| BringUpError::ForkSource { vm: source.to_owned(), source: error })?;
        let failed = |error| BringUpError::ForkSave { vm: source.to_owned(), source: error };
        let is_current = |snapshot: &SnapshotRecord| match (snapshot.created_at, vm.created_at) {
            (Some(saved), Some(made)) => saved >= made,
            _ => true,
        };
        if self
            .runtime
            .snapshot(&name)
            .await
            .map_err(failed)?
            .is_some_and(|snapshot| is_current(&snapshot))
        {
            return Ok(());
        }
        let _permit = permit(self.limits.saves.acquire().await)?;
        let saved = self.runtime.snapshot_save(&name, &vm.id).await;
        self.metrics.snapshot_save(saved.is_ok());
        saved.map_err(failed)
    }

    async fn run(
        &self,
        spec: &VmSpec,
        tell: Tell<'_>,
        progress: &Progress,
    ) -> Result<BroughtUp, BringUpError> {
        tell(Waiting::PullingImage);
        let image = self.ensure_image(spec, progress).await?;
        let _permit = permit(self.limits.clones.acquire().await)?;
        tell(Waiting::Booting);
        let options = RunOptions {
            name: spec.name.clone(),
            image,
            cpus: spec.cpus,
            memory: spec.memory,
            storage: spec.storage.clone(),
            network: spec.network.clone(),
            windows: spec.os == Os::Windows,
            backend: spec.backend.clone(),
            no_direct_io: spec.no_direct_io,
        };
        match self.runtime.run(options).await {
            Ok(vm) => {
                Ok(BroughtUp { vm, way: Way::Ran, is_copy: false, image: spec.image.clone() })
            }
            Err(RuntimeError::NameTaken { .. }) if !planted::is(Bug::NeverAdopts) => {
                self.adopt(spec, false).await
            }
            Err(source) => Err(BringUpError::Run { vm: spec.name.clone(), source }),
        }
    }

    /// The image on this host, under the name by which it is run. A cloud image of the registry is streamed into the runtime.
    async fn ensure_image(
        &self,
        spec: &VmSpec,
        progress: &Progress,
    ) -> Result<String, BringUpError> {
        let _permit = permit(self.limits.pulls.acquire().await)?;
        let image = &spec.image;
        let failed = |source| BringUpError::Image { image: image.clone(), source };
        let is_url = image.starts_with("http://") || image.starts_with("https://");
        if let (false, Some(registry)) = (is_url, &self.registry) {
            let from = Reference::parse(image);
            let kind = registry.kind_of(&from).await;
            match kind {
                Ok(Some(ArtifactKind::Snapshot)) => {
                    return Err(BringUpError::SnapshotAsImage { image: image.clone() });
                }
                Ok(Some(ArtifactKind::CloudImage)) => {
                    if spec.force_pull || self.runtime.image(image).await.map_err(failed)?.is_none()
                    {
                        let disk = registry.counting(progress).pull_disk(from);
                        self.runtime.import_image(image, disk).await.map_err(failed)?;
                    }
                    return Ok(image.clone());
                }
                Ok(_) => {}
                // Not a name of this registry, perhaps: the runtime knows others.
                Err(error) => tracing::debug!(image, "the registry does not tell: {error}"),
            }
        }
        self.runtime.ensure_image(image, spec.force_pull).await.map_err(failed)?;
        Ok(image.clone())
    }

    async fn clone_vm(
        &self,
        spec: &VmSpec,
        from: CloneFrom,
        pull: bool,
        nics: Option<u32>,
        tell: Tell<'_>,
    ) -> Result<BroughtUp, BringUpError> {
        let _permit = permit(self.limits.clones.acquire().await)?;
        tell(Waiting::Cloning);
        let options = CloneOptions {
            name: spec.name.clone(),
            from,
            network: spec.network.clone(),
            backend: spec.backend.clone(),
            no_direct_io: spec.no_direct_io,
            pull,
            // Lazy paging stalls the DHCP client of Windows.
            on_demand: spec.os != Os::Windows,
            nics,
        };
        match self.runtime.clone_vm(options).await {
            Ok(vm) => Ok(BroughtUp { vm, way: Way::Cloned, is_copy: true, image: String::new() }),
            Err(RuntimeError::NameTaken { .. }) if !planted::is(Bug::NeverAdopts) => {
                self.adopt(spec, true).await
            }
            Err(source) => Err(BringUpError::Clone { vm: spec.name.clone(), source }),
        }
    }

    /// A VM of the name is there: an earlier attempt made it, and its answer was lost or we died.
    async fn adopt(&self, spec: &VmSpec, is_copy: bool) -> Result<BroughtUp, BringUpError> {
        let failed = |source| BringUpError::Run { vm: spec.name.clone(), source };
        let mut vm = self.runtime.inspect(&spec.name).await.map_err(failed)?;
        if !vm.state.is_running() {
            self.runtime.start(&vm.id).await.map_err(failed)?;
            vm = self.runtime.inspect(&vm.id).await.map_err(failed)?;
        }
        let image = vm.config.image.clone();
        Ok(BroughtUp { vm, way: Way::Adopted, is_copy, image })
    }
}

/// `only`: the one hypervisor of this node, which takes the place of whichever the pod names.
fn check_backend(
    only: Option<&'static str>,
    spec: &VmSpec,
    snapshot: &SnapshotRecord,
) -> Result<(), BringUpError> {
    let wanted = only.map_or_else(|| spec.backend.clone(), Backend::new);
    if snapshot.hypervisor.serves(&wanted) {
        return Ok(());
    }
    Err(BringUpError::Backend {
        snapshot: snapshot.name.clone(),
        has: snapshot.hypervisor.to_string(),
        wanted: wanted.to_string(),
    })
}

/// A VM that somebody else runs: known by what the pod says, never touched.
fn given(spec: &VmSpec) -> Result<BroughtUp, BringUpError> {
    let (Some(id), Some(ip)) = (&spec.given_id, &spec.given_ip) else {
        return Err(BringUpError::NotGiven { vm: spec.name.clone() });
    };
    let nic = Nic {
        network: Some(roost_microvm::StaticAddress { ip: ip.clone(), ..Default::default() }),
        ..Nic::default()
    };
    let vm = VmRecord {
        id: id.clone(),
        state: VmState::Running,
        config: VmConfig { name: spec.name.clone(), ..VmConfig::default() },
        network_configs: vec![nic],
        ..VmRecord::default()
    };
    Ok(BroughtUp { vm, way: Way::Given, is_copy: false, image: String::new() })
}

fn permit(
    permit: Result<SemaphorePermit<'_>, tokio::sync::AcquireError>,
) -> Result<SemaphorePermit<'_>, BringUpError> {
    permit.map_err(|_| BringUpError::ShuttingDown)
}
