//! OVF descriptors: the VM that the server would make of one.

use roost_vim_wire::methods::CreateImportSpec;
use roost_vim_wire::types::{VirtualDevice, VirtualMachineConfigSpec};
use roost_vim_wire::{Element, LocalizedMethodFault, MoRef};

use crate::error::Told;
use crate::{CallError, Observer, Remedy};

/// A VM as a descriptor describes it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ImportSpec {
    pub config: VirtualMachineConfigSpec,
    /// Keys of disks in the configuration, each with the name of the file that it is filled from. Disks without one are blank.
    pub files: Vec<(i32, String)>,
}

/// Why a descriptor describes no VM.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("asking what the descriptor describes")]
    Call(#[from] CallError),
    #[error("the descriptor cannot be used: {}", Told(.0))]
    Refused(Box<LocalizedMethodFault>),
    #[error("the descriptor describes no VM")]
    NoVm,
    #[error("the descriptor fills {device} from {file}, and there is no such disk")]
    NoDisk { device: String, file: String },
}

impl ImportError {
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Call(source) => source.remedy(),
            Self::Refused(_) | Self::NoVm | Self::NoDisk { .. } => Remedy::GiveUp,
        }
    }
}

impl Observer {
    /// The VM that the server would make of a descriptor, in a pool and on a datastore. Nothing is made.
    pub async fn import_spec(
        &self,
        descriptor: &str,
        name: &str,
        pool: &MoRef,
        datastore: &MoRef,
    ) -> Result<ImportSpec, ImportError> {
        let manager = self.content().ovf_manager.clone();
        let this = manager.ok_or(CallError::NoManager { manager: "OVF manager" })?;
        let cisp = Element::new("cisp")
            .typed("OvfCreateImportSpecParams")
            .with(Element::leaf("locale", ""))
            .with(Element::leaf("deploymentOption", ""))
            .with(Element::leaf("entityName", name))
            .with(Element::leaf("diskProvisioning", "thin"));
        let call = CreateImportSpec {
            this,
            ovf_descriptor: descriptor.to_owned(),
            resource_pool: pool.clone(),
            datastore: datastore.clone(),
            cisp,
        };
        import_spec(&self.read(&call).await?)
    }
}

fn import_spec(answer: &Element) -> Result<ImportSpec, ImportError> {
    let refused: Vec<LocalizedMethodFault> = answer.get("error");
    let Some(spec) = answer.child("importSpec") else {
        let first = refused.into_iter().next();
        return Err(first.map_or(ImportError::NoVm, |fault| ImportError::Refused(Box::new(fault))));
    };
    let config: VirtualMachineConfigSpec = spec.get("configSpec");
    let mut files = Vec::new();
    // Type 17 is a disk; images for drives and the like are not copied.
    let items = answer.children_named("fileItem");
    for item in items.filter(|item| item.number_of("cimType").is_none_or(|kind| kind == 17)) {
        let device = item.text_of("deviceId").unwrap_or_default();
        let file = item.text_of("path").unwrap_or_default().to_owned();
        match disk_at(&config, device) {
            Some(disk) => files.push((disk.key, file)),
            None => return Err(ImportError::NoDisk { device: device.to_owned(), file }),
        }
    }
    Ok(ImportSpec { config, files })
}

/// The disk that `/name/VirtualLsiLogicController0:1` is: unit 1 of the first controller of that class.
fn disk_at<'a>(config: &'a VirtualMachineConfigSpec, device: &str) -> Option<&'a VirtualDevice> {
    let (controller, unit) = device.rsplit('/').next()?.rsplit_once(':')?;
    let unit: i32 = unit.parse().ok()?;
    let devices = || config.device_change.iter().map(|change| &change.device);
    let is_meant = |at: &&VirtualDevice| {
        format!("{}{}", at.class, at.bus_number.unwrap_or_default()) == controller
    };
    let key = devices().find(is_meant)?.key;
    devices().find(|of| {
        of.is_disk() && of.controller_key == Some(key) && of.unit_number.unwrap_or_default() == unit
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_matched_to_disks_by_controller_and_unit() {
        let device = |key: i32, rest: &str, class: &str| {
            format!(
                "<deviceChange><operation>add</operation><device xsi:type=\"{class}\"><key>{key}</key>{rest}</device></deviceChange>"
            )
        };
        let disk = |key: i32, unit: i32| {
            let at = format!("<controllerKey>-1</controllerKey><unitNumber>{unit}</unitNumber>");
            device(key, &at, "VirtualDisk")
        };
        let controller = device(-1, "<busNumber>0</busNumber>", "ParaVirtualSCSIController");
        let item = |unit: i32, kind: i32| {
            format!(
                "<fileItem><deviceId>/x/ParaVirtualSCSIController0:{unit}</deviceId><path>f{unit}.vmdk</path><cimType>{kind}</cimType></fileItem>"
            )
        };
        let answer = |items: String| {
            let xml = format!(
                "<returnval xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"><importSpec xsi:type=\"VirtualMachineImportSpec\"><configSpec>{controller}{}{}</configSpec></importSpec>{items}</returnval>",
                disk(-2, 0),
                disk(-3, 1)
            );
            import_spec(&Element::parse(xml.as_bytes()).unwrap())
        };
        let found = answer(item(1, 17) + &item(5, 15)).unwrap();
        assert_eq!(found.files, [(-3, "f1.vmdk".to_owned())], "the other disk is blank");
        assert_eq!(found.config.device_change.len(), 3);
        assert!(matches!(answer(item(9, 17)), Err(ImportError::NoDisk { .. })));
        let nothing = import_spec(&Element::new("returnval"));
        assert!(matches!(nothing, Err(ImportError::NoVm)));
    }
}
