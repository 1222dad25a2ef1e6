use roost_vim::wire::types::Hidden;
use roost_vim::{
    Card, CdromBus, CreateVm, DatastorePath, DiskController, Firmware, HotAdd, NewDisk, NewNic,
    Provisioning, Reserved, ScsiController, UnknownCard,
};

use super::marker::Marker;
use super::place::{Disks, Place};
use crate::api::names::OWNER_KEY;
use crate::api::{FirmwareName, PoolDefaults, VsphereAgentPool};

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum HardwareError {
    #[error(
        "spec.vsphere.scsiType: {name:?} is none of pvscsi, lsilogic, lsilogic-sas, buslogic, nvme, sata, ide"
    )]
    Controller { name: String },
    #[error("spec.vsphere.networkAdapterType")]
    Card { source: UnknownCard },
}

/// The whole VM in one request: disk, ISO, card, marker. After it nothing has to be added that a crash could leave out.
pub fn hardware(
    pool: &VsphereAgentPool,
    place: &Place,
    marker: &Marker,
    name: &str,
    iso_path: &str,
) -> Result<CreateVm, HardwareError> {
    let (spec, template) = (&pool.spec.vsphere, &pool.spec.template);
    let first = new_disk(pool.disk_gib(), spec.disk_eagerly_scrub);
    let more = template.extra_disks.iter().map(|disk| new_disk(disk.size_gib, disk.eagerly_scrub));
    let kinds = spec.extra_networks.iter().map(|extra| extra.adapter_type.as_deref());
    let kinds = [None].into_iter().chain(kinds);
    let mut nics = Vec::new();
    for (network, kind) in place.networks.iter().zip(kinds) {
        let card: Result<Card, _> = kind.unwrap_or(pool.adapter_type()).parse();
        let card = card.map_err(|source| HardwareError::Card { source })?;
        nics.push(NewNic { card, network: network.clone() });
    }
    let datastore = match &place.disks {
        Disks::Datastore(found) => found.name.clone(),
        // Asked for with the rest of the request.
        Disks::Cluster(_) => String::new(),
    };
    let pair = |key: &str, value: String| (key.to_owned(), Hidden(value));
    let own = [pair("disk.enableUUID", "TRUE".to_owned()), pair(OWNER_KEY, marker.to_string())];
    let asked = template.extra_config.iter().map(|(key, value)| pair(key, value.clone()));
    // Whose a VM is cannot be overruled by what a pool asks for.
    let asked =
        asked.filter(|(key, _)| own.iter().all(|(other, _)| !other.eq_ignore_ascii_case(key)));
    let extra_config = own.iter().cloned().chain(asked).collect();
    Ok(CreateVm {
        guest_id: pool.guest_id().to_owned(),
        annotation: Some(marker.annotation()),
        cpus: pool.cpus(),
        memory_mb: pool.memory_mib().into(),
        cores_per_socket: template.cores_per_socket,
        hot_add: HotAdd {
            cpus: template.cpu_hot_add.unwrap_or(false),
            memory: template.memory_hot_add.unwrap_or(false),
        },
        reserved: Reserved {
            cpu_mhz: template.cpu_reservation_mhz,
            memory_mb: template.memory_reservation_mib,
        },
        hardware_version: template.hardware_version.map(|number| format!("vmx-{number:02}")),
        storage_policy: place.policy.clone(),
        disk_controller: disk_controller(pool.scsi_type())?,
        disks: [first].into_iter().chain(more).collect(),
        iso: Some(DatastorePath::new(place.iso_datastore.name.clone(), iso_path)),
        cdrom_bus: CdromBus::Ide,
        nics,
        firmware: match pool.firmware() {
            FirmwareName::Efi => Firmware::Efi,
            FirmwareName::Bios => Firmware::Bios,
        },
        secure_boot: template.secure_boot.unwrap_or(false),
        tpm: template.vtpm.unwrap_or(false),
        // An empty disk falls through to the drive; after the installation the disk boots first.
        boot_order: Vec::new(),
        extra_config,
        ..CreateVm::new(place.folder.moref.clone(), name, place.pool.clone(), datastore)
    })
}

fn disk_controller(name: &str) -> Result<DiskController, HardwareError> {
    Ok(match name {
        "pvscsi" => DiskController::Scsi(ScsiController::ParaVirtual),
        "lsilogic" | "scsi" => DiskController::Scsi(ScsiController::LsiLogic),
        "lsilogic-sas" | "lsilogicsas" => DiskController::Scsi(ScsiController::LsiLogicSas),
        "buslogic" => DiskController::Scsi(ScsiController::BusLogic),
        "nvme" => DiskController::Nvme,
        "sata" => DiskController::Sata,
        "ide" => DiskController::Ide,
        other => return Err(HardwareError::Controller { name: other.to_owned() }),
    })
}

fn new_disk(gib: i32, eager: Option<bool>) -> NewDisk {
    let bytes = u64::try_from(gib).unwrap_or_default() << 30;
    let eager = eager.unwrap_or(false);
    let provisioning = if eager { Provisioning::EagerZeroed } else { Provisioning::Thin };
    NewDisk { provisioning, ..NewDisk::thin(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_disk_controller_of_upstream_is_known() {
        for (name, controller) in [
            ("pvscsi", DiskController::Scsi(ScsiController::ParaVirtual)),
            ("scsi", DiskController::Scsi(ScsiController::LsiLogic)),
            ("lsilogic", DiskController::Scsi(ScsiController::LsiLogic)),
            ("lsilogic-sas", DiskController::Scsi(ScsiController::LsiLogicSas)),
            ("lsilogicsas", DiskController::Scsi(ScsiController::LsiLogicSas)),
            ("buslogic", DiskController::Scsi(ScsiController::BusLogic)),
            ("nvme", DiskController::Nvme),
            ("sata", DiskController::Sata),
            ("ide", DiskController::Ide),
        ] {
            assert_eq!(disk_controller(name), Ok(controller), "{name}");
        }
        let refused = disk_controller("floppy").unwrap_err().to_string();
        assert!(refused.starts_with("spec.vsphere.scsiType: \"floppy\" is none of"), "{refused}");
    }
}
