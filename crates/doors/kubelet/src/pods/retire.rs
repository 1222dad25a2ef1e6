//! From a running VM to nothing, without losing what is to be kept.

use roost_microvm::{Leases, Reference, RegistryError, RuntimeError, TransferError, VmRecord};

use super::host::Host;
use crate::contract::{Os, VmSpec, fork_snapshot};

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
    #[error("hibernate {vm}: no registry is configured")]
    NoRegistry { vm: String },
    #[error("remove vm {vm}, and its hibernate tag could not be taken back either: {tag}")]
    RemoveAndTag { vm: String, tag: RegistryError, source: RuntimeError },
}

impl RetireError {
    /// The reason of the event that tells of it.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Save { .. } => "HibernateSnapshotFailed",
            Self::Push { .. } | Self::Export { .. } | Self::NoRegistry { .. } => {
                "HibernatePushFailed"
            }
            Self::Nics { .. } => "HibernateNetResizeFailed",
            Self::Remove { .. } | Self::RemoveAndTag { .. } => "HibernateRemoveFailed",
        }
    }
}

impl Host {
    /// Saves where the policy says so, then stops and removes. What could not be saved is not removed.
    pub(crate) async fn delete(
        &self,
        spec: Option<&VmSpec>,
        vm: &VmRecord,
        grace_seconds: u64,
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
            self.push(vm, "latest", Some(&spec.image)).await?;
        }
        if grace_seconds > 0
            && let Err(error) = self.runtime.stop(&vm.id, grace_seconds).await
        {
            tracing::warn!(vm = vm.name(), "the guest did not stop by itself: {error}");
        }
        self.remove(vm).await?;
        if !spec.is_some_and(|spec| spec.keep_snapshot) {
            for name in [vm.name().to_owned(), fork_snapshot(vm.name())] {
                if let Err(error) = self.runtime.snapshot_remove(&name).await {
                    tracing::warn!(snapshot = name, "a local snapshot stays: {error}");
                }
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

    /// Saves, pushes, removes. If the VM stays, its tag is taken back: a tag beside a running VM would make the next boot an old one.
    pub(crate) async fn hibernate(&self, spec: &VmSpec, vm: &VmRecord) -> Result<(), RetireError> {
        let name = || vm.name().to_owned();
        if self.registry.is_none() {
            return Err(RetireError::NoRegistry { vm: name() });
        }
        if spec.os == Os::Windows && !spec.backend.is_firecracker() {
            let resized = self.runtime.resize_nics(&vm.id, 0).await;
            resized.map_err(|source| RetireError::Nics { vm: name(), source })?;
        }
        self.save(vm.name(), vm).await?;
        self.push(vm, "hibernate", Some(&spec.image)).await?;
        match self.remove(vm).await {
            Err(RetireError::Remove { vm, source }) => {
                let Some(registry) = &self.registry else {
                    return Err(RetireError::Remove { vm, source });
                };
                match registry.delete_manifest(&vm, "hibernate").await {
                    Ok(()) => Err(RetireError::Remove { vm, source }),
                    Err(tag) => Err(RetireError::RemoveAndTag { vm, tag, source }),
                }
            }
            other => other,
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

    async fn push(&self, vm: &VmRecord, tag: &str, image: Option<&str>) -> Result<(), RetireError> {
        let Some(registry) = &self.registry else { return Ok(()) };
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
