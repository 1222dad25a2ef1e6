//! Making a VM: one request that carries everything that is known, its identity first.

use std::sync::Arc;

use kube::ResourceExt as _;
use roost_controller::Key;
use roost_fleet::{
    AddressNeed, Amounts, Ask, LedgerGate, Machine, MakeBy, NewMachine, Owner, PoolId, Power,
    Reservation, Wrote,
};
use roost_vim::wire::MoRef;
use roost_vim::wire::methods::{CloneVmTask, CreateVmTask};
use roost_vim::wire::types::{
    OptionValue, ResourceAllocationInfo, SharesInfo, VirtualMachineCloneSpec,
    VirtualMachineConfigSpec, VirtualMachineFileInfo, VirtualMachineRelocateSpec,
};
use roost_vim::{DeployOvf, PlaceVms, Placed, UuidKind};

use super::config::{
    WantedCdrom, WantedNic, card_class, cards_for_clone, extra_config_of, managed_by, new_cards,
};
use super::places::Place;
use super::prereq::{Prereqs, Source};
use super::{CREATES, Cached, Compute, DOOR, OWNER, Provider};
use crate::api::names::{DEFAULT_NOTES, extra_config, label};
use crate::api::vm::{Firmware, ProvisioningMode};
use crate::api::{VirtualMachine, VirtualMachineImageStatus};
use crate::class::{hardware_version, sized_by};
use crate::flow::{Done, Flow, Halt};

/// Everything that a VM is made with.
#[derive(Debug)]
pub(crate) struct CreateArgs {
    pub(crate) key: Key,
    pub(crate) instance_uuid: String,
    pub(crate) by: MakeBy,
    pub(crate) wrote: Wrote,
}

impl Provider {
    /// The interfaces of the spec as cards on networks. `None` leaves the cards alone.
    /// The class says what kind of card each is, unless the interface does.
    pub(crate) async fn nics(
        &self,
        vm: &VirtualMachine,
        base: &VirtualMachineConfigSpec,
    ) -> Flow<Option<Vec<WantedNic>>> {
        let Some(network) = &vm.spec.network else { return Ok(None) };
        let mut all = Vec::new();
        let cards = base.device_change.iter().map(|change| &change.device);
        let mut cards = cards.filter(|device| device.is_nic()).map(|card| card.class.clone());
        for interface in network.interfaces.iter().filter(|_| !network.disabled) {
            let name = interface.network.as_ref().map(|of| of.name.as_str()).unwrap_or_default();
            let network = self.places.network(name).await;
            let network =
                network.map_err(Halt::because(format!("interface {}", interface.name)))?;
            let mac = Some(interface.mac_addr.clone()).filter(|mac| !mac.is_empty());
            let of_class = cards.next();
            let class = interface.type_.as_deref().and_then(card_class).map(str::to_owned);
            all.push(WantedNic { network, mac, class: class.or(of_class) });
        }
        Ok(Some(all))
    }

    /// Where the VM goes: the zone of its label, the only one there is, or the one that vCenter recommends.
    pub(crate) async fn placement(
        &self,
        vm: &VirtualMachine,
        config: &VirtualMachineConfigSpec,
    ) -> Flow<Arc<Place>> {
        let namespace = vm.namespace().unwrap_or_default();
        let zones = self.places.zones();
        let labelled = vm.labels().get(label::ZONE).filter(|zone| !zone.is_empty());
        let failed = |source| Halt::because("placement")(source);
        if let Some(zone) = labelled {
            return self.places.of(&namespace, zone).await.map_err(failed);
        }
        if let [only] = zones {
            return self.places.of(&namespace, &only.name).await.map_err(failed);
        }
        let mut places = Vec::new();
        for zone in zones {
            places.push(self.places.of(&namespace, &zone.name).await.map_err(failed)?);
        }
        self.recommend(&places, config).await
    }

    /// Without DRS vCenter recommends nothing; then the pool with the most memory left is taken.
    async fn recommend(
        &self,
        places: &[Arc<Place>],
        config: &VirtualMachineConfigSpec,
    ) -> Flow<Arc<Place>> {
        let request = PlaceVms {
            pools: places.iter().map(|place| place.pool.clone()).collect(),
            vms: vec![config.clone()],
            wants_host: false,
            wants_datastore: false,
        };
        if let Ok(placed) = self.fleet.observer().place_vms(&request).await
            && let Some(Placed::At { pool, .. }) = placed.first()
            && let Some(place) = places.iter().find(|place| place.pool == *pool)
        {
            return Ok(Arc::clone(place));
        }
        let room = |place: &&Arc<Place>| {
            let pool = self.fleet.mirror().pool(&PoolId::from(&place.pool));
            pool.and_then(|pool| pool.memory_bytes.unreserved).unwrap_or_default()
        };
        let best = places.iter().max_by_key(|place| (room(place), std::cmp::Reverse(&place.zone)));
        best.cloned().ok_or_else(|| Halt::failed("no zone is configured"))
    }

    /// Get create arguments: the request, without anything being changed.
    pub(crate) async fn create_args(
        &self,
        vm: &VirtualMachine,
        prereqs: &Prereqs,
        nics: &[WantedNic],
        cdroms: &[WantedCdrom],
        place: &Place,
        cached: Option<&Cached>,
    ) -> Flow<CreateArgs> {
        let mhz = match prereqs.class.as_deref().map(|class| &class.spec.policies.resources) {
            Some(of) if of.requests.cpu.is_some() || of.limits.cpu.is_some() => self
                .places
                .clock_of(&place.pool)
                .await
                .map_err(Halt::because("the cluster's clock"))?,
            _ => 1_000,
        };
        let compute = Compute::of(vm, prereqs.class.as_deref(), mhz);
        let compute = compute.map_err(Halt::because("the class"))?;
        let extension_key = &self.settings.extension_key;
        let mut config = config_of(vm, &prereqs.base, prereqs.image.as_ref(), extension_key);
        let devices = std::mem::take(&mut config.device_change);
        let keys = extra_config_of(vm, &prereqs.base, &self.settings.extra_config);
        config.extra_config = keys
            .iter()
            .map(|(key, value)| OptionValue::text(key.as_str(), value.as_str()))
            .collect();
        if let Some(class) = &prereqs.class {
            let mark = OptionValue::text(extra_config::SIZED_BY, sized_by(class));
            config.extra_config.push(mark);
        }
        compute.write(&mut config);
        let (folder, pool) = self.below_policy(prereqs, place).await?;
        let name = vm.name_any();
        let by = match (&prereqs.source, cached) {
            (Source::Ovf { .. }, Some(cached)) => {
                config.device_change = new_cards(nics);
                config.device_change.extend(devices);
                let at = (&folder, &pool);
                Box::pin(self.make_of_cached(vm, prereqs, cached, at, config)).await?
            }
            (Source::Ovf { item, .. }, None) => {
                config.device_change = new_cards(nics);
                config.device_change.extend(devices);
                self.deploy(
                    item,
                    &name,
                    prereqs,
                    place,
                    (folder.clone(), pool.clone()),
                    config.clone(),
                )
                .await?
            }
            (Source::Template(template), _) => {
                let template = self.fleet.mirror().vm(template);
                let template = template.ok_or_else(|| Halt::failed("the image's VM is gone"))?;
                let facts = self.fleet.machines().template_facts(&template).await;
                let facts = facts.map_err(Halt::because("reading the image's VM"))?;
                config.device_change = cards_for_clone(nics, &facts.nics);
                config.device_change.extend(devices);
                let is_linked = facts.current_snapshot.is_some();
                let datastore =
                    if is_linked { None } else { self.datastore(prereqs, place).await? };
                let location = VirtualMachineRelocateSpec {
                    pool: Some(pool.clone()),
                    datastore: datastore.map(|(moref, _)| moref),
                    disk_move_type: is_linked.then(|| "createNewChildDiskBacking".to_owned()),
                    ..VirtualMachineRelocateSpec::default()
                };
                let spec = VirtualMachineCloneSpec {
                    location,
                    config: Some(config.clone()),
                    snapshot: facts.current_snapshot.clone(),
                    ..VirtualMachineCloneSpec::default()
                };
                let this = template.id.moref();
                let folder = folder.clone();
                MakeBy::Clone(Box::new(CloneVmTask { this, folder, name: name.clone(), spec }))
            }
            (Source::Iso, _) => {
                config.device_change = new_cards(nics);
                config.device_change.extend(devices);
                config.device_change.extend(super::config::new_drives(cdroms));
                let image = prereqs.image.as_ref().map(|image| image.os_info.type_.as_str());
                config.guest_id = Some(crate::class::guest_id(vm, image.unwrap_or_default()));
                let datastore = self.datastore(prereqs, place).await?;
                let (_, datastore) =
                    datastore.ok_or_else(|| Halt::failed("no datastore is known"))?;
                config.files = Some(VirtualMachineFileInfo {
                    vm_path_name: Some(format!("[{datastore}]")),
                    ..VirtualMachineFileInfo::default()
                });
                let call = CreateVmTask {
                    this: folder.clone(),
                    config: config.clone(),
                    pool: pool.clone(),
                    host: None,
                };
                MakeBy::Create(Box::new(call))
            }
        };
        let mut wrote = Wrote::new()
            .folder(&*folder.id)
            .pool(PoolId::from(&pool))
            .power(Power::Off)
            .extra_config(extra_config::NAMESPACED_NAME, vm.namespaced_name());
        if let Some(cpus) = compute.cpus.and_then(|cpus| cpus.try_into().ok()) {
            wrote = wrote.cpus(cpus);
        }
        if let Some(memory) = compute.memory_mb.and_then(|memory| memory.try_into().ok()) {
            wrote = wrote.memory_mb(memory);
        }
        Ok(CreateArgs { key: Key::of(vm), instance_uuid: vm.spec.instance_uuid.clone(), by, wrote })
    }

    async fn below_policy(&self, prereqs: &Prereqs, place: &Place) -> Flow<(MoRef, MoRef)> {
        let (mut folder, mut pool) = (place.folder.clone(), place.pool.clone());
        if let Some(policy) = &prereqs.policy {
            let failed = |source| Halt::because("the resource policy")(source);
            if !policy.spec.folder.is_empty() {
                folder =
                    self.places.child_folder(place, &policy.spec.folder).await.map_err(failed)?;
            }
            let name = &policy.spec.resource_pool.name;
            if !name.is_empty() {
                pool = self.places.child_pool(place, name).await.map_err(failed)?;
            }
        }
        Ok((folder, pool))
    }

    async fn deploy(
        &self,
        item: &str,
        name: &str,
        prereqs: &Prereqs,
        place: &Place,
        (folder, pool): (MoRef, MoRef),
        config: VirtualMachineConfigSpec,
    ) -> Flow<MakeBy> {
        let policy = prereqs.storage.policy.clone();
        let datastore =
            if policy.is_some() { None } else { self.datastore(prereqs, place).await? };
        let provisioning = match prereqs.storage.provisioning.unwrap_or(ProvisioningMode::Thin) {
            ProvisioningMode::Thin => "thin",
            ProvisioningMode::Thick => "thick",
            ProvisioningMode::ThickEagerZero => "eagerZeroedThick",
        };
        Ok(MakeBy::DeployOvf(Box::new(DeployOvf {
            folder: Some(folder),
            datastore: datastore.map(|(moref, _)| moref),
            storage_policy: policy,
            provisioning: Some(provisioning.to_owned()),
            config: Some(config),
            ..DeployOvf::new(item, name, pool)
        })))
    }

    /// By the storage class, or the zone's own.
    async fn datastore(&self, prereqs: &Prereqs, place: &Place) -> Flow<Option<(MoRef, String)>> {
        let failed = |source| Halt::because("storage")(source);
        if let Some(policy) = &prereqs.storage.policy {
            return self.places.roomiest(policy).await.map(Some).map_err(failed);
        }
        let Some(name) = prereqs.storage.datastore.as_ref().or(place.datastore.as_ref()) else {
            return Ok(None);
        };
        let moref = self.places.datastore(name).await.map_err(failed)?;
        Ok(Some((moref, name.clone())))
    }

    /// A slot for one more create.
    pub(crate) fn check_concurrency(&self, vm: &VirtualMachine) -> Flow<Reservation> {
        let now = self.now();
        let snapshot = self.fleet.mirror().snapshot();
        let ask = Ask {
            request: DOOR.request(vm.namespaced_name()),
            name: Some(vm.name_any().into()),
            amounts: Amounts::default().count(CREATES, 1),
            pool: None,
            machine: Machine::Fresh { address: AddressNeed::Dhcp },
        };
        let mut ledger = self.fleet.ledger();
        ledger.observe(DOOR, &snapshot, now, Self::holding);
        ledger.reserve(ask, now).map_err(|refusal| {
            let is_full = refusal.bound_by == LedgerGate::Quota(CREATES);
            self.fleet.journal().record(roost_fleet::Draft::from(&refusal), now);
            if is_full { Halt::TooManyCreates } else { Halt::ReconcileInProgress }
        })
    }

    /// Nobody has made it: not we before a crash, not another process.
    pub(crate) async fn check_not_there(&self, vm: &VirtualMachine) -> Flow {
        let uuid = &vm.spec.instance_uuid;
        let found = self.fleet.observer().find_vms_by_uuid(uuid, UuidKind::Instance).await;
        let found = found.map_err(Halt::because("looking for the VM"))?;
        match found.first() {
            None => Ok(()),
            // The mirror will show it.
            Some(_) => Err(Halt::Requeue(std::time::Duration::from_secs(1))),
        }
    }

    /// Starts the create and, unless creates block, leaves it. Its end brings the key back.
    pub(crate) async fn start_create(
        &self,
        args: CreateArgs,
        mut reservation: Reservation,
    ) -> Flow {
        let CreateArgs { key, instance_uuid, by, wrote } = args;
        let told = self.steps.begin(&key, Done::CreateStarted, self.now()).into_told();
        let machines = self.fleet.machines().clone();
        let work = async move {
            let new = NewMachine {
                owner: Owner { door: DOOR, name: OWNER },
                name: key.name(),
                instance_uuid: &instance_uuid,
                by,
                wrote,
            };
            match machines.make_vm(new, &mut reservation).await {
                Ok(_hold) => {
                    reservation.commit();
                    Ok(())
                }
                Err(failed) => {
                    if failed.error.nothing_made() {
                        reservation.release();
                    }
                    Err(failed.error)
                }
            }
        };
        let (over, is_over) = tokio::sync::oneshot::channel();
        self.fleet.machines().start(work, move |ended| {
            told(ended);
            let _ = over.send(());
        });
        if !self.settings.async_create {
            let _ = is_over.await;
        }
        Err(Halt::Done(Done::CreateStarted))
    }
}

/// What does not depend on where the VM goes: what its class hands on, then what is its own. Its cards come later.
pub(crate) fn config_of(
    vm: &VirtualMachine,
    base: &VirtualMachineConfigSpec,
    image: Option<&VirtualMachineImageStatus>,
    extension_key: &str,
) -> VirtualMachineConfigSpec {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let options = vm.spec.boot_options.as_ref();
    let firmware = options.and_then(|of| of.firmware).map(|of| match of {
        Firmware::Bios => "bios".to_owned(),
        Firmware::Efi => "efi".to_owned(),
    });
    let image_version = image.and_then(|image| image.hardware_version);
    let version = hardware_version(vm, base, image_version);
    let devices = base.device_change.iter().filter(|change| !change.device.is_nic());
    VirtualMachineConfigSpec {
        name: Some(vm.name_any()),
        annotation: base.annotation.clone().or_else(|| Some(DEFAULT_NOTES.to_owned())),
        uuid: text(&vm.spec.bios_uuid),
        instance_uuid: text(&vm.spec.instance_uuid),
        // Without a word on it a template keeps its own.
        guest_id: text(&vm.spec.guest_id)
            .or_else(|| image.and_then(|image| text(&image.os_info.type_))),
        version: version.map(|version| format!("vmx-{version}")),
        firmware: firmware
            .or_else(|| image.and_then(|image| text(&image.firmware)))
            .or_else(|| base.firmware.clone()),
        change_tracking_enabled: vm
            .spec
            .advanced
            .as_ref()
            .and_then(|advanced| advanced.change_block_tracking)
            .or(base.change_tracking_enabled),
        managed_by: Some(managed_by(extension_key)),
        device_change: devices.cloned().collect(),
        cpu_allocation: base.cpu_allocation.as_ref().map(completed),
        memory_allocation: base.memory_allocation.as_ref().map(completed),
        ..base.clone()
    }
}

/// What a class leaves open of a share: nothing reserved, no limit, a normal weight.
fn completed(of: &ResourceAllocationInfo) -> ResourceAllocationInfo {
    let normal = || SharesInfo { shares: 0, level: "normal".to_owned() };
    ResourceAllocationInfo {
        reservation: of.reservation.or(Some(0)),
        limit: of.limit.or(Some(-1)),
        shares: of.shares.clone().or_else(|| Some(normal())),
        ..of.clone()
    }
}
