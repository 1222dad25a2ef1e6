//! What the requests to the server must contain: a clone that is attributable from its first instant, a claim that is one change, a mark that
//! outlives us.

use jiff::Timestamp;
use roost_cds::JobId;
use roost_cds::v1::{self, ModelPath};
use roost_fleet::AddressGrant;
use roost_vim::wire::MoRef;
use roost_vim::wire::types::{VirtualDevice, VirtualDeviceConfigSpec};
use roost_vim::{
    CloneVm, Customization, DeviceError, DiskCopy, NetworkBacking, NicAddress, Reconfigure,
};

use crate::annotation::{Annotation, Doom};
use crate::flavor::{self, DiskError, FirstDisk, Flavor};
use crate::model::{WorkerModel, last_modified};
use crate::names;
use crate::process::ProcessMark;

/// Where clones go, found once on the server.
#[derive(Debug, Clone, PartialEq)]
pub struct Site {
    pub folder: MoRef,
    pub pool: MoRef,
    pub datastore: MoRef,
    pub network: NetworkBacking,
}

/// A VM to be cloned.
#[derive(Debug, Clone)]
pub struct Birth<'a> {
    pub hatchery: &'a str,
    pub name: &'a str,
    /// The template or VM that is cloned.
    pub source: &'a str,
    pub purpose: Purpose<'a>,
    pub flavor: Option<&'a Flavor>,
    /// `None`: it asks a DHCP server.
    pub address: Option<&'a AddressGrant>,
    /// Who clones it.
    pub process: Option<&'a ProcessMark>,
    pub now: Timestamp,
}

/// What a VM is cloned for.
#[derive(Debug, Clone, Copy)]
pub enum Purpose<'a> {
    Worker {
        model: &'a WorkerModel,
        job: &'a JobId,
    },
    /// Shows what a V1 model can do.
    Registration {
        model: &'a v1::Model,
    },
    /// A spare of a V1 model, or of a template.
    SpareV1 {
        model: &'a v1::Model,
    },
    SpareV2,
    /// Becomes the template of a V1 model.
    Template {
        model: &'a v1::Model,
    },
}

impl Birth<'_> {
    /// What the VM will say about itself.
    pub fn annotation(&self) -> Annotation {
        let mut annotation = Annotation {
            hatchery_name: self.hatchery.to_owned(),
            worker_name: self.name.to_owned(),
            vmware_model_path: self.source.to_owned(),
            created: self.now.into(),
            ip_address: self.address.map(|grant| grant.address.to_string()).unwrap_or_default(),
            flavor: self.flavor.map(|flavor| flavor.name.clone()).unwrap_or_default(),
            process: self.process.cloned(),
            ..Annotation::default()
        };
        let v1 = |annotation: &mut Annotation, model: &v1::Model| {
            annotation.worker_model_path = model.path().to_string();
            annotation.worker_model_last_modified = last_modified(model);
        };
        match self.purpose {
            Purpose::Worker { model, job } => {
                match model {
                    WorkerModel::V1(model) => v1(&mut annotation, model),
                    WorkerModel::V2(model) => annotation.worker_model_path.clone_from(&model.name),
                }
                annotation.job_id = job.to_string();
                annotation.worker_start_time = self.now.into();
            }
            Purpose::Registration { model } => {
                v1(&mut annotation, model);
                annotation.register_only = true;
                annotation.job_id = String::from("0");
                annotation.worker_start_time = self.now.into();
            }
            Purpose::SpareV1 { model } => {
                v1(&mut annotation, model);
                annotation.provisioning = true;
            }
            Purpose::SpareV2 => annotation.provisioning = true,
            Purpose::Template { model } => {
                v1(&mut annotation, model);
                annotation.worker_name.clear();
                annotation.model = true;
            }
        }
        annotation
    }

    /// The clone of reference 7.3. The server gets one address setting for each network card of the template, whether there is a fixed address
    /// or not: it refuses any other number (D34).
    pub fn clone_vm(&self, site: &Site) -> CloneVm {
        let mut customization = Customization::linux("");
        if let Some(AddressGrant { address, network }) = self.address {
            customization.nics.push(NicAddress::Fixed {
                address: *address,
                subnet_mask: network.subnet_mask,
                gateways: network.gateway.into_iter().collect(),
            });
            customization.dns_servers.extend(network.dns.map(std::net::IpAddr::V4));
        }
        CloneVm {
            datastore: Some(site.datastore.clone()),
            disks: DiskCopy::ShareParents,
            annotation: Some(self.annotation().to_string()),
            cpus: self.flavor.and_then(cpus),
            memory_mb: self.flavor.and_then(memory_mb),
            disk_bytes: self.flavor.and_then(|flavor| flavor.disk_gb).map(|gb| gb << 30),
            network: Some(site.network.clone()),
            customization: Some(customization),
            tools_after_power_on: Some(true),
            power_on: true,
            ..CloneVm::new(site.folder.clone(), self.name, site.pool.clone())
        }
    }
}

/// A spare that becomes the worker of a job.
#[derive(Debug, Clone)]
pub struct Claim<'a> {
    pub hatchery: &'a str,
    pub spare: &'a Annotation,
    /// The version that `spare` is from: if anybody changed the VM since, the claim fails and nothing is changed (W15).
    pub change_version: Option<&'a str>,
    pub worker: &'a str,
    pub job: &'a JobId,
    pub model: &'a WorkerModel,
    pub flavor: Option<&'a Flavor>,
    /// The spare's devices, needed when the flavor has a disk size.
    pub devices: &'a [VirtualDevice],
    /// Who claims it.
    pub process: Option<&'a ProcessMark>,
    pub now: Timestamp,
}

/// Why a spare cannot be claimed as wished.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    #[error("flavor {flavor:?} on a spare")]
    Disk { flavor: String, source: DiskError },
    #[error("the disk of flavor {flavor:?}")]
    Device { flavor: String, source: DeviceError },
}

impl Claim<'_> {
    /// Name, annotation and size in one change (D18): there is no moment at which the VM is neither spare nor worker.
    pub fn reconfigure(&self) -> Result<Reconfigure, ClaimError> {
        let mut annotation = self.spare.claimed(self.hatchery, self.worker, self.job, self.now);
        annotation.process = self.process.cloned();
        if let WorkerModel::V2(model) = self.model {
            annotation.worker_model_path.clone_from(&model.name);
        }
        if let Some(flavor) = self.flavor {
            annotation.flavor.clone_from(&flavor.name);
        }
        Ok(Reconfigure {
            change_version: self.change_version.map(str::to_owned),
            name: Some(self.worker.to_owned()),
            annotation: Some(annotation.to_string()),
            cpus: self.flavor.and_then(cpus),
            memory_mb: self.flavor.and_then(memory_mb),
            devices: self.disk_change()?.into_iter().collect(),
            ..Reconfigure::default()
        })
    }

    fn disk_change(&self) -> Result<Option<VirtualDeviceConfigSpec>, ClaimError> {
        let Some((flavor, wanted_gb)) = self.flavor.and_then(|f| Some((f, f.disk_gb?))) else {
            return Ok(None);
        };
        let disk = first_disk(self.devices);
        let seen = disk.map(|disk| FirstDisk {
            capacity_kb: disk.capacity_in_kb.and_then(|kb| kb.try_into().ok()).unwrap_or_default(),
            is_delta: disk.backing.as_ref().is_some_and(|backing| backing.parent.is_some()),
        });
        let name = || flavor.name.clone();
        let grown = flavor::grow_disk(seen, wanted_gb)
            .map_err(|source| ClaimError::Disk { flavor: name(), source })?;
        match (disk, grown) {
            (Some(disk), Some(kb)) => roost_vim::grow_disk(disk, kb.saturating_mul(1024))
                .map_err(|source| ClaimError::Device { flavor: name(), source }),
            _ => Ok(None),
        }
    }
}

/// Marks a VM for deletion in its own annotation. A spare is also renamed, so that CDS's own clean-up, which leaves `provision-` names alone,
/// deletes it should it come back before we are done.
pub fn mark_for_deletion(
    name: &str,
    annotation: &Annotation,
    doom: impl Into<Doom>,
) -> Reconfigure {
    let mut marked = annotation.clone();
    marked.doom(doom);
    let renamed = names::VmName::of(name).is_spare().then(|| names::retired(name));
    Reconfigure { name: renamed, annotation: Some(marked.to_string()), ..Reconfigure::default() }
}

/// Writes the mark of another process into a VM's annotation, and nothing else.
pub fn sign(annotation: &Annotation, process: &ProcessMark) -> Reconfigure {
    let signed = Annotation { process: Some(process.clone()), ..annotation.clone() };
    Reconfigure { annotation: Some(signed.to_string()), ..Reconfigure::default() }
}

/// The model that a V1 spare or worker is of.
pub fn v1_model_path(annotation: &Annotation) -> Option<ModelPath> {
    let path = &annotation.worker_model_path;
    (!path.is_empty()).then(|| ModelPath::parse(path))
}

/// The one that the guest boots from, by its place on the controllers.
fn first_disk(devices: &[VirtualDevice]) -> Option<&VirtualDevice> {
    let disks = devices.iter().filter(|device| device.is_disk());
    disks.min_by_key(|disk| (disk.controller_key, disk.unit_number, disk.key))
}

fn cpus(flavor: &Flavor) -> Option<i32> {
    flavor.cpus.and_then(|cpus| cpus.try_into().ok())
}

fn memory_mb(flavor: &Flavor) -> Option<i64> {
    flavor.memory_mb.and_then(|memory| memory.try_into().ok())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    use roost_fleet::Network;
    use roost_vim::wire::MoType;
    use roost_vim::wire::types::VirtualDeviceBackingInfo;

    use super::*;
    use crate::model::tests::v1_model;

    const NOW: Timestamp = Timestamp::constant(1_780_272_000, 500_000_000);

    fn site() -> Site {
        let network = MoRef::new(MoType::Network, "network-7");
        Site {
            folder: MoRef::new(MoType::Folder, "group-v3"),
            pool: MoRef::new(MoType::ResourcePool, "resgroup-8"),
            datastore: MoRef::new(MoType::Datastore, "datastore-9"),
            network: NetworkBacking::Standard { name: "VM Network".into(), network },
        }
    }

    fn grant() -> AddressGrant {
        let network = Network {
            gateway: Some(Ipv4Addr::new(10, 0, 0, 62)),
            subnet_mask: Ipv4Addr::new(255, 255, 255, 192),
            dns: Some(Ipv4Addr::new(10, 9, 9, 9)),
        };
        AddressGrant { address: Ipv4Addr::new(10, 0, 0, 7), network: Arc::new(network) }
    }

    fn large() -> Flavor {
        Flavor { name: "large".into(), cpus: Some(8), memory_mb: Some(16384), disk_gb: Some(60) }
    }

    fn birth(purpose: Purpose<'_>) -> Birth<'_> {
        Birth {
            hatchery: "h1",
            name: "keen-bohr",
            source: "debian12",
            purpose,
            flavor: None,
            address: None,
            process: None,
            now: NOW,
        }
    }

    fn job() -> JobId {
        JobId::V1(123)
    }

    #[test]
    fn reference_7_3_a_worker_with_flavor_and_address() {
        let (model, flavor, grant, job) =
            (WorkerModel::v1(v1_model("debian12")), large(), grant(), job());
        let birth = Birth {
            flavor: Some(&flavor),
            address: Some(&grant),
            ..birth(Purpose::Worker { model: &model, job: &job })
        };
        let clone = birth.clone_vm(&site());
        assert_eq!(
            (clone.name.as_str(), clone.power_on, clone.tools_after_power_on),
            ("keen-bohr", true, Some(true))
        );
        assert_eq!(clone.disks, DiskCopy::ShareParents, "moveChildMostDiskBacking");
        assert_eq!(
            (clone.cpus, clone.memory_mb, clone.disk_bytes),
            (Some(8), Some(16384), Some(60 << 30))
        );
        assert_eq!(clone.datastore, Some(site().datastore));
        assert_eq!(clone.network, Some(site().network));
        let customization = clone.customization.unwrap();
        assert_eq!(
            customization.nics,
            [NicAddress::Fixed {
                address: Ipv4Addr::new(10, 0, 0, 7),
                subnet_mask: Ipv4Addr::new(255, 255, 255, 192),
                gateways: vec![Ipv4Addr::new(10, 0, 0, 62)],
            }]
        );
        assert_eq!(customization.dns_servers, ["10.9.9.9".parse::<std::net::IpAddr>().unwrap()]);
        assert_eq!(
            clone.annotation.unwrap(),
            concat!(
                r#"{"hatchery_name":"h1","worker_name":"keen-bohr","worker_model_path":"shared.infra/debian12","#,
                r#""vmware_model_path":"debian12","worker_model_last_modified":"1780272000","#,
                r#""created":"2026-06-01T00:00:00.5Z","worker_start_time":"2026-06-01T00:00:00.5Z","#,
                r#""job_id":"123","ip_address":"10.0.0.7","flavor":"large"}"#
            )
        );
    }

    #[test]
    fn d34_without_an_address_every_card_of_the_template_asks_a_dhcp_server() {
        let clone = birth(Purpose::SpareV2).clone_vm(&site());
        assert_eq!(
            (clone.cpus, clone.memory_mb, clone.disk_bytes),
            (None, None, None),
            "D5: a spare is neutral"
        );
        let spec = clone.customization.unwrap().spec(2).unwrap();
        assert_eq!(spec.nic_setting_map.len(), 2);
        assert_eq!(
            clone.annotation.unwrap(),
            concat!(
                r#"{"hatchery_name":"h1","worker_name":"keen-bohr","provisioning":true,"vmware_model_path":"debian12","#,
                r#""created":"2026-06-01T00:00:00.5Z","worker_start_time":"0001-01-01T00:00:00Z"}"#
            )
        );
    }

    #[test]
    fn reference_7_2_each_purpose_says_what_it_is() {
        let model = v1_model("debian12");
        let registration = birth(Purpose::Registration { model: &model }).annotation();
        assert!(
            registration.register_only
                && registration.job_id == "0"
                && registration.job().is_none()
        );
        let spare = birth(Purpose::SpareV1 { model: &model }).annotation();
        assert!(spare.provisioning && spare.worker_start_time.get().is_none());
        assert_eq!(v1_model_path(&spare), Some(model.path()));
        let template = birth(Purpose::Template { model: &model }).annotation();
        assert!(template.model && template.worker_name.is_empty());
        assert_eq!(template.worker_model_last_modified, "1780272000");
    }

    fn disk(gb: i64, parent: bool) -> VirtualDevice {
        let parent = parent.then(|| Box::new(VirtualDeviceBackingInfo::default()));
        VirtualDevice {
            key: 2000,
            capacity_in_kb: Some(gb << 20),
            backing: Some(VirtualDeviceBackingInfo {
                parent,
                ..VirtualDeviceBackingInfo::default()
            }),
            ..VirtualDevice::of("VirtualDisk")
        }
    }

    fn claim<'a>(
        spare: &'a Annotation,
        model: &'a WorkerModel,
        job: &'a JobId,
        flavor: Option<&'a Flavor>,
        devices: &'a [VirtualDevice],
    ) -> Claim<'a> {
        Claim {
            hatchery: "h1",
            spare,
            change_version: Some("v7"),
            worker: "happy-hopper",
            job,
            model,
            flavor,
            devices,
            process: None,
            now: NOW,
        }
    }

    #[test]
    fn d18_a_claim_renames_annotates_and_resizes_in_one_change() {
        let spare = Birth { address: Some(&grant()), ..birth(Purpose::SpareV2) }.annotation();
        let (model, job, flavor) = (WorkerModel::v1(v1_model("debian12")), job(), large());
        let devices = [disk(20, false)];
        let change = claim(&spare, &model, &job, Some(&flavor), &devices).reconfigure().unwrap();
        assert_eq!(change.change_version.as_deref(), Some("v7"), "W15");
        assert_eq!(change.name.as_deref(), Some("happy-hopper"));
        assert_eq!(
            (change.cpus, change.memory_mb, change.devices.len()),
            (Some(8), Some(16384), 1)
        );
        assert_eq!(change.devices[0].device.capacity_in_kb, Some(60 << 20));
        let annotation = Annotation::parse(&change.annotation.unwrap()).unwrap();
        assert!(!annotation.provisioning && annotation.job() == Some(JobId::V1(123)));
        assert_eq!(annotation.ip_address, "10.0.0.7");
        assert_eq!(annotation.worker_start_time.get(), Some(NOW));
    }

    #[test]
    fn a_claim_without_flavor_leaves_the_size_alone() {
        let spare = birth(Purpose::SpareV2).annotation();
        let (model, job) = (WorkerModel::v1(v1_model("debian12")), job());
        let change = claim(&spare, &model, &job, None, &[]).reconfigure().unwrap();
        assert_eq!((change.cpus, change.memory_mb, change.devices.len()), (None, None, 0));
    }

    #[test]
    fn d6_a_linked_clone_whose_disk_cannot_grow_says_so_before_anything_is_changed() {
        let spare = birth(Purpose::SpareV2).annotation();
        let (model, job, flavor) = (WorkerModel::v1(v1_model("debian12")), job(), large());
        let refused = claim(&spare, &model, &job, Some(&flavor), &[disk(20, true)])
            .reconfigure()
            .unwrap_err();
        assert!(matches!(refused, ClaimError::Disk { .. }), "{refused:?}");
        let large_enough = [disk(80, true)];
        let change =
            claim(&spare, &model, &job, Some(&flavor), &large_enough).reconfigure().unwrap();
        assert_eq!(change.devices, [], "a disk never shrinks");
    }

    #[test]
    fn a_mark_takes_a_spare_out_of_everybodys_hands() {
        let spare = birth(Purpose::SpareV2).annotation();
        let mark = mark_for_deletion("provision-v2-keen-bohr", &spare, "no address");
        assert_eq!(mark.name.as_deref(), Some("retired-v2-keen-bohr"));
        let marked = Annotation::parse(&mark.annotation.unwrap()).unwrap();
        assert!(marked.doomed.is_some() && !marked.provisioning);
        assert_eq!(
            mark_for_deletion("keen-bohr", &spare, "x").name,
            None,
            "a worker keeps its worker's name"
        );
    }
}
