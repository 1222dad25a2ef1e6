//! What the descriptor of an OVF template says about the machine in it.

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, escape};

use super::is_system_property;
use crate::api::{
    ImageDisk, KeyValue, OsInfo, OvfProperty, ProductInfo, Quantity, VirtualMachineImageStatus,
};
use crate::class::hardware_version_of;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the descriptor is no XML")]
pub struct DescriptorError;

/// What an image's status says about its hardware, guest, product, disks and properties. The rest is left empty.
pub fn describe(descriptor: &[u8]) -> Result<VirtualMachineImageStatus, DescriptorError> {
    let text = str::from_utf8(descriptor).map_err(|_| DescriptorError)?;
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
    let mut found = Found::default();
    loop {
        match reader.read_event().map_err(|_| DescriptorError)? {
            Event::Start(start) => found.open(&start),
            Event::Empty(start) => {
                found.open(&start);
                found.close();
            }
            Event::End(_) => found.close(),
            Event::Text(text) => found.text.push_str(&text),
            Event::CData(text) => found.text.push_str(&text),
            Event::GeneralRef(name) => {
                if let Ok(text) = escape::unescape(&format!("&{};", &*name)) {
                    found.text.push_str(&text);
                }
            }
            Event::Eof => break,
            _ => {}
        }
    }
    Ok(found.status)
}

#[derive(Default)]
struct Found {
    /// The elements that are open, without their prefixes.
    path: Vec<String>,
    text: String,
    /// The names around the keys of a product's properties.
    product: (String, String),
    status: VirtualMachineImageStatus,
}

impl Found {
    fn is_in(&self, section: &str) -> bool {
        self.path.iter().any(|name| name == section)
    }

    fn open(&mut self, start: &BytesStart<'_>) {
        let local = |name: &str| name.rsplit(':').next().unwrap_or_default().to_owned();
        let of = |wanted: &str| -> Option<String> {
            let mut all = start.attributes().flatten();
            let found = all.find(|attribute| local(attribute.key.as_ref()) == wanted)?;
            let value = escape::unescape(&found.value).map(std::borrow::Cow::into_owned);
            Some(value.unwrap_or_else(|_| found.value.to_string()))
        };
        let text = |wanted: &str| of(wanted).unwrap_or_default();
        let name = local(start.name().as_ref());
        match name.as_str() {
            "OperatingSystemSection" => {
                let (id, type_, version) = (text("id"), text("osType"), text("version"));
                self.status.os_info = OsInfo { id, type_, version };
            }
            "Config" if self.is_in("VirtualHardwareSection") && text("key") == "firmware" => {
                self.status.firmware = text("value");
            }
            "Disk" if self.is_in("DiskSection") => {
                let bytes = capacity(&text("capacity"), &text("capacityAllocationUnits"));
                let limit = bytes.map(|bytes| Quantity::new(&bytes.to_string()));
                self.status.disks.push(ImageDisk {
                    name: text("diskId"),
                    limit,
                    ..ImageDisk::default()
                });
            }
            "ProductSection" => self.product = (text("class"), text("instance")),
            "Property" if self.is_in("ProductSection") => {
                let configurable = text("userConfigurable");
                let is_configurable = configurable == "true" || configurable == "1";
                self.property(&text("key"), text("type"), of("value"), is_configurable);
            }
            _ => {}
        }
        self.path.push(name);
        self.text.clear();
    }

    fn property(&mut self, key: &str, type_: String, value: Option<String>, is_configurable: bool) {
        let (class, instance) = &self.product;
        let parts = [class.as_str(), key, instance.as_str()];
        let id = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".");
        if is_system_property(&id) {
            let value = value.unwrap_or_default();
            self.status.vmware_system_properties.push(KeyValue { key: id, value });
        } else if is_configurable {
            self.status.ovf_properties.push(OvfProperty { key: id, type_, default: value });
        }
    }

    fn close(&mut self) {
        let name = self.path.pop().unwrap_or_default();
        let text = std::mem::take(&mut self.text).trim().to_owned();
        let is_of_product = self.path.last().is_some_and(|parent| parent == "ProductSection");
        let product: &mut ProductInfo = &mut self.status.product_info;
        match name.as_str() {
            // Several may be listed; the newest is the last.
            "VirtualSystemType" => {
                let versions = text.split_whitespace().filter_map(hardware_version_of);
                self.status.hardware_version = versions.max().or(self.status.hardware_version);
            }
            "Product" if is_of_product => product.product = text,
            "Vendor" if is_of_product => product.vendor = text,
            "Version" if is_of_product => product.version = text,
            "FullVersion" if is_of_product => product.full_version = text,
            _ => {}
        }
    }
}

/// `16` in units of `byte * 2^30`.
fn capacity(amount: &str, units: &str) -> Option<u64> {
    let amount: u64 = amount.parse().ok()?;
    let power = units.rsplit_once("2^").map_or(Some(0), |(_, power)| power.trim().parse().ok())?;
    amount.checked_mul(1_u64.checked_shl(power)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DESCRIPTOR: &str = r#"<?xml version="1.0"?><Envelope xmlns:ovf="o" xmlns:vmw="v" xmlns:vssd="s">
<DiskSection><Disk ovf:diskId="d1" ovf:capacity="16" ovf:capacityAllocationUnits="byte * 2^30"/></DiskSection>
<VirtualSystem ovf:id="x">
<OperatingSystemSection ovf:id="94" ovf:version="24" vmw:osType="ubuntu64Guest"><Info>x</Info></OperatingSystemSection>
<VirtualHardwareSection><System><vssd:VirtualSystemType>vmx-15 vmx-19</vssd:VirtualSystemType></System>
<vmw:Config ovf:required="false" vmw:key="firmware" vmw:value="efi"/></VirtualHardwareSection>
<ProductSection ovf:class="app"><Product>Ubuntu &amp; more</Product><Vendor>V</Vendor><Version>24.04</Version>
<Property ovf:key="hostname" ovf:type="string" ovf:userConfigurable="true" ovf:value="x"/>
<Property ovf:key="fixed" ovf:type="string"/></ProductSection>
<ProductSection><Property ovf:key="vmware-system.tkr" ovf:type="string" ovf:value="1"/></ProductSection>
</VirtualSystem></Envelope>"#;

    #[test]
    fn a_descriptor_tells_hardware_guest_product_and_what_can_be_set() {
        let status = describe(DESCRIPTOR.as_bytes()).unwrap();
        assert_eq!((status.hardware_version, status.firmware.as_str()), (Some(19), "efi"));
        let os = &status.os_info;
        assert_eq!((&*os.id, &*os.type_, &*os.version), ("94", "ubuntu64Guest", "24"));
        assert_eq!(status.product_info.product, "Ubuntu & more");
        let properties: Vec<_> = status.ovf_properties.iter().map(|of| &*of.key).collect();
        assert_eq!(properties, ["app.hostname"], "what nobody can set is not offered");
        assert_eq!(status.vmware_system_properties[0].key, "vmware-system.tkr");
        assert_eq!(status.disks[0].limit.as_ref().unwrap().value().unwrap(), 16 << 30);
        assert_eq!(describe(b"<a><b></a>"), Err(DescriptorError));
        assert_eq!(capacity("4", "byte"), Some(4));
        assert_eq!(capacity("4", "byte * 2^99"), None);
    }
}
