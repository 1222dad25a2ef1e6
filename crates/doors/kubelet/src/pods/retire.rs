//! From a running VM to nothing, without losing what is to be kept.

use roost_microvm::{
    Leases, Progress, Reference, RegistryError, RuntimeError, TransferError, VmRecord,
};

use futures_util::future::BoxFuture;

use super::host::Host;
use super::shares::displace;
use crate::contract::{Os, VmSpec, fork_snapshot, import_snapshot};
use crate::planted::{self, Bug};

#[derive(Debug, thiserror::Error)]
pub(crate) enum RetireError {
    #[error("snapshot save {vm}")]
    Save { vm: String, source: RuntimeError },
    #[error("push snapshot of {vm}")]
    Push { vm: String, source: TransferError },
    #[error("export snapshot of {vm}")]
    Export { vm: String, source: RuntimeError },
    #[error("dropping the network cards of {vm}")]
    Nics { vm: String, source: RuntimeError },
    #[error("remove vm {vm}")]
    Remove { vm: String, source: RuntimeError },
    #[error("hibernate tag of {vm}")]
    Tag { vm: String, source: RegistryError },
    #[error("asking whether {vm} is still to hibernate")]
    Confirm { vm: String, source: kube::Error },
}

impl RetireError {
    /// The reason of the event that tells of it.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Save { .. } => "HibernateSnapshotFailed",
            Self::Push { .. } | Self::Export { .. } => "HibernatePushFailed",
            Self::Nics { .. } => "HibernateNetResizeFailed",
            Self::Remove { .. } | Self::Tag { .. } | Self::Confirm { .. } => {
                "HibernateRemoveFailed"
            }
        }
    }
}

/// Clears the VM's id at its pod and says whether the pod is still to hibernate, as the API server has it now.
pub(crate) type Confirm<'a> = BoxFuture<'a, Result<bool, kube::Error>>;

/// What came of a hibernation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retired {
    Gone,
    /// The VM goes on: while it was saved, somebody wanted it awake.
    NotWanted,
}

impl Host {
    /// Saves where the policy says so, then stops and removes. What could not be saved is not removed.
    pub(crate) async fn delete(
        &self,
        spec: Option<&VmSpec>,
        vm: &VmRecord,
        grace_seconds: u64,
        progress: &Progress,
    ) -> Result<(), RetireError> {
        let managed = spec.is_none_or(|spec| spec.managed);
        if !managed {
            return Ok(());
        }
        if let Some(spec) = spec
            && spec.snapshot_policy.saves(spec.role)
            && self.registry.is_some()
            && self.is_running(vm).await?
        {
            self.save(vm.name(), vm).await?;
            self.push(vm, "latest", Some(&spec.image), progress).await?;
        }
        if grace_seconds > 0
            && let Err(error) = self.runtime.stop(&vm.id, grace_seconds).await
        {
            tracing::warn!(vm = vm.name(), "the guest did not stop by itself: {error}");
        }
        self.remove(vm).await?;
        if !spec.is_some_and(|spec| spec.keep_snapshot) {
            for name in [vm.name().to_owned(), fork_snapshot(vm.name())] {
                self.drop_local(&name).await;
            }
        }
        Ok(())
    }

    async fn is_running(&self, vm: &VmRecord) -> Result<bool, RetireError> {
        match self.runtime.inspect(&vm.id).await {
            Ok(seen) => Ok(seen.state.is_running()),
            Err(error) if error.is_vm_gone() => Ok(false),
            Err(source) => Err(RetireError::Save { vm: vm.name().to_owned(), source }),
        }
    }

    /// Saves, pushes, asks whether it is still wanted, removes. If the VM surely stays, its tag is taken back: a tag beside a running VM would
    /// make the next boot an old one. Where nobody knows whether the VM is gone, the tag stays, because it may be all that is left.
    pub(crate) async fn hibernate(
        &self,
        spec: &VmSpec,
        vm: &VmRecord,
        progress: &Progress,
        confirm: Confirm<'_>,
    ) -> Result<Retired, RetireError> {
        // Windows does not wake with a card that is another one.
        let drops_nics = spec.os == Os::Windows && !spec.backend.is_firecracker();
        if drops_nics {
            let resized = self.runtime.resize_nics(&vm.id, 0).await;
            let name = vm.name().to_owned();
            resized.map_err(|source| RetireError::Nics { vm: name, source })?;
        }
        let retired = self.save_and_remove(spec, vm, progress, confirm).await;
        if drops_nics && !matches!(retired, Ok(Retired::Gone)) {
            let cards = u32::try_from(vm.network_configs.len()).unwrap_or(1).max(1);
            if let Err(error) = self.runtime.resize_nics(&vm.id, cards).await {
                tracing::warn!(vm = vm.name(), "the VM stays without its network cards: {error}");
            }
        }
        retired
    }

    async fn save_and_remove(
        &self,
        spec: &VmSpec,
        vm: &VmRecord,
        progress: &Progress,
        confirm: Confirm<'_>,
    ) -> Result<Retired, RetireError> {
        let name = || vm.name().to_owned();
        if self.registry.is_some() {
            self.save(vm.name(), vm).await?;
            let pushed = self.push(vm, "hibernate", Some(&spec.image), progress).await;
            if !planted::is(Bug::RemovesUnsaved) {
                pushed?;
            }
        } else {
            self.save(&import_snapshot(vm.name()), vm).await?;
        }
        let is_wanted = confirm.await;
        let is_wanted = is_wanted.map_err(|source| RetireError::Confirm { vm: name(), source })?;
        if !is_wanted && !planted::is(Bug::RemovesTheAwake) {
            return Ok(Retired::NotWanted);
        }
        let Err(failed) = self.remove(vm).await else {
            if self.registry.is_some() {
                self.drop_local(vm.name()).await;
            }
            return Ok(Retired::Gone);
        };
        // The command may have failed after it was done.
        match self.runtime.inspect(&vm.id).await {
            Err(error) if error.is_vm_gone() && !planted::is(Bug::TakesTagsBackBlindly) => {
                Ok(Retired::Gone)
            }
            Ok(_) => {
                self.drop_tag(vm.name()).await?;
                Err(failed)
            }
            Err(_) if planted::is(Bug::TakesTagsBackBlindly) => {
                self.drop_tag(vm.name()).await?;
                Err(failed)
            }
            Err(_) => Err(failed),
        }
    }

    /// What was saved for a hibernation goes, wherever it is.
    pub(crate) async fn drop_tag(&self, vm: &str) -> Result<(), RetireError> {
        let Some(registry) = &self.registry else {
            self.drop_hibernated(vm).await;
            return Ok(());
        };
        let dropped = registry.delete_manifest(vm, "hibernate").await;
        dropped.map_err(|source| RetireError::Tag { vm: vm.to_owned(), source })
    }

    /// What hibernation without a registry left on this host.
    pub(crate) async fn drop_hibernated(&self, vm: &str) {
        self.drop_local(&import_snapshot(vm)).await;
    }

    async fn drop_local(&self, snapshot: &str) {
        if let Err(error) = self.runtime.snapshot_remove(snapshot).await {
            tracing::warn!(snapshot, "a local snapshot stays: {error}");
        }
    }

    async fn save(&self, name: &str, vm: &VmRecord) -> Result<(), RetireError> {
        let _permit = self.limits.saves.acquire().await;
        let began = self.clock.now();
        let saved = self.runtime.snapshot_save(name, &vm.id).await;
        self.metrics.snapshot_save(saved.is_ok());
        self.metrics.snapshot_save_took(self.clock.now().duration_since(began));
        saved.map_err(|source| RetireError::Save { vm: vm.name().to_owned(), source })
    }

    async fn push(
        &self,
        vm: &VmRecord,
        tag: &str,
        image: Option<&str>,
        progress: &Progress,
    ) -> Result<(), RetireError> {
        let Some(registry) = &self.registry else { return Ok(()) };
        let registry = registry.counting(progress);
        let name = vm.name();
        let began = self.clock.now();
        let (near, far) = tokio::io::duplex(1 << 20);
        let to = Reference { repository: name.to_owned(), tag: tag.to_owned() };
        let image = image.filter(|image| !image.is_empty());
        let (exported, pushed) = tokio::join!(
            self.runtime.snapshot_export(name, Box::new(far)),
            registry.push_snapshot(&to, image, Box::new(near), began)
        );
        self.metrics.snapshot_push(
            exported.is_ok() && pushed.is_ok(),
            self.clock.now().duration_since(began),
        );
        // A broken export shows on the pushing side as a cut archive; the export says why.
        exported.map_err(|source| RetireError::Export { vm: name.to_owned(), source })?;
        pushed.map(drop).map_err(|source| RetireError::Push { vm: name.to_owned(), source })
    }

    /// Also gives the addresses of its cards back.
    pub(crate) async fn remove(&self, vm: &VmRecord) -> Result<(), RetireError> {
        let removed = self.runtime.remove(&vm.id).await;
        removed.map_err(|source| RetireError::Remove { vm: vm.name().to_owned(), source })?;
        displace(self.cgroups.as_ref(), vm);
        for nic in
            vm.network_configs.iter().filter(|nic| nic.network.is_none() && !nic.mac.is_empty())
        {
            if self.net_control.exists()
                && let Err(error) = Leases::release(&self.net_control, &nic.mac).await
            {
                tracing::warn!(vm = vm.name(), "a lease stays until it runs out: {error}");
            }
        }
        Ok(())
    }
}
