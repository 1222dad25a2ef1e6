//! Asking a datastore cluster which of its datastores to use.

use roost_vim_wire::methods::{PlaceVm, PlaceVmsXCluster, RecommendDatastores};
use roost_vim_wire::types::{
    PodDiskLocator, StorageDrsPodSelectionSpec, StoragePlacementSpec, VirtualDeviceConfigSpec,
    VirtualMachineConfigSpec, VirtualMachineRelocateSpec, VmPodConfigForPlacement,
};
use roost_vim_wire::{Element, Fault, LocalizedMethodFault, MoRef};

use crate::{
    CallError, CloneSpecError, CloneVm, CreateVm, DeviceError, Faulted, Observer, Remedy,
    TemplateFacts,
};

/// Where the server would put a VM of a cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct VmPlacement {
    pub host: Option<MoRef>,
    pub relocate: VirtualMachineRelocateSpec,
    /// Why it was recommended, such as `xvmotionPlacement`.
    pub reason: String,
}

/// VMs to be placed in one of several pools, each in a cluster of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct PlaceVms {
    pub pools: Vec<MoRef>,
    pub vms: Vec<VirtualMachineConfigSpec>,
    pub wants_host: bool,
    pub wants_datastore: bool,
}

/// One VM of [`PlaceVms`].
#[derive(Debug, Clone, PartialEq)]
pub enum Placed {
    At {
        name: String,
        pool: MoRef,
        host: Option<MoRef>,
        /// With the datastores that were chosen, if they were asked for. Boxed: it is large.
        config: Box<VirtualMachineConfigSpec>,
        reason: String,
    },
    /// No pool can have it; per pool why.
    Nowhere { name: String, faults: Vec<(MoRef, LocalizedMethodFault)> },
}

/// Why a datastore cluster gave no datastore.
#[derive(Debug, thiserror::Error)]
pub enum PlacementError {
    #[error("the clone request for {name}")]
    CloneSpec { name: String, source: CloneSpecError },
    #[error("the devices of {name}")]
    Devices { name: String, source: DeviceError },
    #[error("asking datastore cluster {pod} for a place for {name}")]
    Call { pod: MoRef, name: String, source: CallError },
    #[error("datastore cluster {pod} has no place for {name}")]
    NoPlace { pod: MoRef, name: String },
}

impl PlacementError {
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::CloneSpec { .. } | Self::Devices { .. } => Remedy::GiveUp,
            Self::Call { source, .. } => source.remedy(),
            Self::NoPlace { .. } => Remedy::Wait,
        }
    }
}

impl Faulted for PlacementError {
    fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Call { source, .. } => source.fault(),
            Self::CloneSpec { .. } | Self::Devices { .. } | Self::NoPlace { .. } => None,
        }
    }
}

impl Observer {
    /// The datastore of a cluster where the server would put a new VM. The recommendation is not carried out: name the
    /// datastore in the request.
    pub async fn recommend_for_create(
        &self,
        request: &CreateVm,
        pod: &MoRef,
    ) -> Result<MoRef, PlacementError> {
        let spec = create_placement(request, pod)
            .map_err(|source| PlacementError::Devices { name: request.name.clone(), source })?;
        self.recommend(spec, pod, &request.name).await
    }

    /// As [`Observer::recommend_for_create`], for a clone.
    pub async fn recommend_for_clone(
        &self,
        template: &TemplateFacts,
        request: &CloneVm,
        pod: &MoRef,
    ) -> Result<MoRef, PlacementError> {
        let spec = clone_placement(template, request, pod)
            .map_err(|source| PlacementError::CloneSpec { name: request.name.clone(), source })?;
        self.recommend(spec, pod, &request.name).await
    }

    /// Where the server would put a new VM in a cluster, best first.
    pub async fn place_vm(
        &self,
        cluster: &MoRef,
        config: &VirtualMachineConfigSpec,
    ) -> Result<Vec<VmPlacement>, CallError> {
        let spec = Element::new("placementSpec")
            .typed("PlacementSpec")
            .with_field("configSpec", config)
            .with_field("placementType", &"create".to_owned());
        let answer = self.read(&PlaceVm { this: cluster.clone(), placement_spec: spec }).await?;
        let mut all = Vec::new();
        for row in answer.children_named("recommendations") {
            let reason = row.text_of("reason").unwrap_or_default().to_owned();
            all.extend(row.children_named("action").map(|action| VmPlacement {
                host: action.child("targetHost").and_then(Element::moref),
                relocate: action.get("relocateSpec"),
                reason: reason.clone(),
            }));
        }
        Ok(all)
    }

    /// Where the server would put new VMs among the clusters of these pools, in the order in which they were given.
    pub async fn place_vms(&self, request: &PlaceVms) -> Result<Vec<Placed>, CallError> {
        let mut spec = Element::new("placementSpec")
            .typed("PlaceVmsXClusterSpec")
            .with_field("placementType", &"createAndPowerOn".to_owned());
        for pool in &request.pools {
            spec = spec.with_field("resourcePools", pool);
        }
        for config in &request.vms {
            let one = Element::new("vmPlacementSpecs").with_field("configSpec", config);
            spec = spec.with(one);
        }
        let spec = spec
            .with_field("hostRecommRequired", &request.wants_host)
            .with_field("datastoreRecommRequired", &request.wants_datastore);
        let this = self.content().root_folder.clone();
        let answer = self.read(&PlaceVmsXCluster { this, placement_spec: spec }).await?;
        Ok(request.vms.iter().map(|config| read_placed(&answer, config)).collect())
    }

    async fn recommend(
        &self,
        storage_spec: StoragePlacementSpec,
        pod: &MoRef,
        name: &str,
    ) -> Result<MoRef, PlacementError> {
        let failed = |source| PlacementError::Call { pod: pod.clone(), name: name.into(), source };
        let manager = self.content().storage_resource_manager.clone();
        let this = manager
            .ok_or_else(|| failed(CallError::NoManager { manager: "storage resource manager" }))?;
        let result =
            self.read(&RecommendDatastores { this, storage_spec }).await.map_err(failed)?;
        let mut places =
            result.recommendations.iter().flat_map(|recommendation| &recommendation.action);
        let place = places.find_map(|action| action.destination.clone());
        place.ok_or_else(|| PlacementError::NoPlace { pod: pod.clone(), name: name.into() })
    }
}

fn read_placed(answer: &Element, config: &VirtualMachineConfigSpec) -> Placed {
    let name = config.name.clone().unwrap_or_default();
    let is_own = |row: &&Element| row.text_of("vmName") == Some(&name);
    let row = answer.children_named("placementInfos").find(is_own);
    let recommendation = row.and_then(|row| row.child("recommendation"));
    let found = recommendation.and_then(|row| {
        let action = row.child("action")?;
        Some(Placed::At {
            name: name.clone(),
            pool: action.child("pool").and_then(Element::moref)?,
            host: action.child("targetHost").and_then(Element::moref),
            config: action
                .child("configSpec")
                .map_or_else(|| Box::new(config.clone()), |_| Box::new(action.get("configSpec"))),
            reason: row.text_of("reason").unwrap_or_default().to_owned(),
        })
    });
    found.unwrap_or_else(|| {
        let faults = answer.children_named("faults").filter(is_own).flat_map(|row| {
            let pool = row.child("resourcePool").and_then(Element::moref).unwrap_or_default();
            let all: Vec<LocalizedMethodFault> = row.get("faults");
            all.into_iter().map(move |fault| (pool.clone(), fault))
        });
        Placed::Nowhere { name: name.clone(), faults: faults.collect() }
    })
}

fn create_placement(request: &CreateVm, pod: &MoRef) -> Result<StoragePlacementSpec, DeviceError> {
    let config = request.spec()?;
    let locator = |change: &VirtualDeviceConfigSpec| PodDiskLocator {
        disk_id: change.device.key,
        disk_move_type: None,
        disk_backing_info: change.device.backing.clone(),
    };
    let disk =
        config.device_change.iter().filter(|change| change.device.is_disk()).map(locator).collect();
    Ok(StoragePlacementSpec {
        kind: "create".into(),
        pod_selection_spec: StorageDrsPodSelectionSpec {
            initial_vm_config: vec![VmPodConfigForPlacement {
                storage_pod: pod.clone(),
                disk,
                vm_config: None,
            }],
            storage_pod: Some(pod.clone()),
        },
        config_spec: Some(config),
        resource_pool: Some(request.pool.clone()),
        host: request.host.clone(),
        folder: Some(request.folder.clone()),
        ..Default::default()
    })
}

fn clone_placement(
    template: &TemplateFacts,
    request: &CloneVm,
    pod: &MoRef,
) -> Result<StoragePlacementSpec, CloneSpecError> {
    Ok(StoragePlacementSpec {
        kind: "clone".into(),
        vm: Some(template.vm.clone()),
        pod_selection_spec: StorageDrsPodSelectionSpec {
            storage_pod: Some(pod.clone()),
            ..Default::default()
        },
        clone_spec: Some(request.spec(template)?),
        clone_name: Some(request.name.clone()),
        resource_pool: Some(request.pool.clone()),
        host: request.host.clone(),
        folder: Some(request.folder.clone()),
        ..Default::default()
    })
}

#[cfg(test)]
mod tests {
    use roost_vim_wire::MoType;

    use super::*;
    use crate::NewDisk;
    use crate::device::{compact, written};

    #[test]
    fn a_new_vm_is_placed_disk_by_disk() {
        let (folder, pool) = (
            MoRef::new(MoType::Folder, "group-2"),
            MoRef::new(MoType::ResourcePool, "resgroup-27"),
        );
        let request = CreateVm {
            disks: vec![NewDisk::thin(1 << 30)],
            ..CreateVm::new(folder, "a", pool, "pod")
        };
        let spec = create_placement(&request, &MoRef::new(MoType::StoragePod, "group-p1")).unwrap();
        assert_eq!(
            written("podSelectionSpec", &spec.pod_selection_spec),
            compact(
                r#"<podSelectionSpec><initialVmConfig><storagePod type="StoragePod">group-p1</storagePod><disk><diskId>-202</diskId>
                <diskBackingInfo xsi:type="VirtualDiskFlatVer2BackingInfo"><fileName></fileName><diskMode>persistent</diskMode>
                <thinProvisioned>true</thinProvisioned></diskBackingInfo></disk></initialVmConfig><storagePod type="StoragePod">group-p1</storagePod></podSelectionSpec>"#
            )
        );
        assert_eq!(spec.kind, "create");
        let disk = spec.config_spec.unwrap().device_change[1].device.key;
        assert_eq!(spec.pod_selection_spec.initial_vm_config[0].disk[0].disk_id, disk);
    }
}
