//! What a descriptor says, as far as a VM can be made of it.

use super::OvfError;
use super::node::Node;

#[derive(Debug, Clone, Default)]
pub(crate) struct Envelope {
    pub files: Vec<FileRef>,
    pub disks: Vec<DiskInfo>,
    pub networks: Vec<(String, String)>,
    pub options: Vec<DeploymentOption>,
    pub eulas: Vec<String>,
    pub id: String,
    pub name: String,
    pub annotation: String,
    /// vSphere's own word for the guest, such as `ubuntu64Guest`.
    pub guest_id: Option<String>,
    pub version: Option<String>,
    pub items: Vec<HardwareItem>,
    /// `vmw:Config`: settings of the VM by key.
    pub config: Vec<(String, String)>,
    pub extra_config: Vec<(String, String)>,
    pub products: Vec<Product>,
    pub properties: Vec<Property>,
    pub transport: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct FileRef {
    pub id: String,
    pub href: String,
    pub size: i64,
}

#[derive(Debug, Clone)]
pub(crate) struct DiskInfo {
    pub id: String,
    pub file: Option<String>,
    pub capacity: i64,
    pub populated: Option<i64>,
}

#[derive(Debug, Clone)]
pub(crate) struct DeploymentOption {
    pub id: String,
    pub label: String,
    pub description: String,
    pub is_default: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct HardwareItem {
    pub kind: i64,
    pub sub_kind: String,
    pub instance: String,
    pub parent: Option<String>,
    pub address_on_parent: Option<i32>,
    pub bus: Option<i32>,
    pub host_resource: Vec<String>,
    pub connection: Option<String>,
    pub quantity: i64,
    pub units: i64,
    /// The deployment option that it is for.
    pub option: Option<String>,
    pub connects: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Product {
    pub class: String,
    pub instance: String,
    pub name: String,
    pub vendor: String,
    pub version: String,
    pub full_version: String,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Property {
    pub class: String,
    pub instance: String,
    pub id: String,
    pub category: String,
    pub label: String,
    pub description: String,
    pub kind: String,
    pub value: String,
    pub user_configurable: bool,
    pub is_password: bool,
}

impl Envelope {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, OvfError> {
        let root = Node::parse(bytes)?;
        if root.name != "Envelope" {
            return Err(OvfError::Lacks { what: "envelope" });
        }
        let system = root
            .child("VirtualSystem")
            .or_else(|| root.child("VirtualSystemCollection")?.child("VirtualSystem"))
            .ok_or(OvfError::Lacks { what: "virtual system" })?;
        let mut envelope = Self {
            files: files(&root),
            disks: disks(&root),
            networks: networks(&root),
            options: options(&root),
            id: system.attribute("id").unwrap_or_default().into(),
            ..Self::default()
        };
        system.text_of("Name").unwrap_or(&envelope.id).clone_into(&mut envelope.name);
        let annotation = system.child("AnnotationSection");
        let annotation = annotation.and_then(|section| section.text_of("Annotation"));
        annotation.unwrap_or_default().clone_into(&mut envelope.annotation);
        let eulas = system.named("EulaSection").chain(root.named("EulaSection"));
        envelope.eulas =
            eulas.filter_map(|section| section.text_of("License")).map(Into::into).collect();
        let os = system.child("OperatingSystemSection");
        envelope.guest_id = os.and_then(|os| os.attribute("osType")).map(Into::into);
        for section in system.named("ProductSection").chain(root.named("ProductSection")) {
            envelope.product(section);
        }
        if let Some(hardware) = system.child("VirtualHardwareSection") {
            envelope.hardware(hardware);
        }
        Ok(envelope)
    }

    pub(crate) fn file(&self, id: &str) -> Option<&FileRef> {
        self.files.iter().find(|file| file.id == id)
    }

    /// The option that is taken when nobody chooses.
    pub(crate) fn default_option(&self) -> Option<&str> {
        let default = self.options.iter().find(|option| option.is_default);
        default.or_else(|| self.options.first()).map(|option| option.id.as_str())
    }

    fn hardware(&mut self, section: &Node) {
        let transport = section.attribute("transport").unwrap_or_default();
        self.transport = transport.split_whitespace().map(ToOwned::to_owned).collect();
        let system = section.child("System");
        let versions = system.and_then(|system| system.text_of("VirtualSystemType"));
        let known = versions.into_iter().flat_map(|text| text.split([' ', ',']));
        self.version = known.filter(|word| word.starts_with("vmx-")).max().map(Into::into);
        for child in &section.children {
            match child.name.as_str() {
                "Item" | "StorageItem" | "EthernetPortItem" => self.items.push(item(child)),
                "Config" => self.config.extend(pair(child)),
                "ExtraConfig" => self.extra_config.extend(pair(child)),
                _ => {}
            }
        }
    }

    fn product(&mut self, section: &Node) {
        let class = section.attribute("class").unwrap_or_default().to_owned();
        let instance = section.attribute("instance").unwrap_or_default().to_owned();
        let text = |name: &str| section.text_of(name).unwrap_or_default().to_owned();
        self.products.push(Product {
            class: class.clone(),
            instance: instance.clone(),
            name: text("Product"),
            vendor: text("Vendor"),
            version: text("Version"),
            full_version: text("FullVersion"),
        });
        let mut category = String::new();
        for child in &section.children {
            if child.name == "Category" {
                child.text.trim().clone_into(&mut category);
            }
            if child.name != "Property" {
                continue;
            }
            let attribute = |name: &str| child.attribute(name).unwrap_or_default().to_owned();
            let is_set = |name: &str| child.attribute(name) == Some("true");
            self.properties.push(Property {
                class: class.clone(),
                instance: instance.clone(),
                id: attribute("key"),
                category: category.clone(),
                label: child.text_of("Label").unwrap_or_default().into(),
                description: child.text_of("Description").unwrap_or_default().into(),
                kind: Some(attribute("type"))
                    .filter(|kind| !kind.is_empty())
                    .unwrap_or("string".into()),
                value: attribute("value"),
                user_configurable: is_set("userConfigurable"),
                is_password: is_set("password"),
            });
        }
    }
}

impl Property {
    /// The name under which a deployment sets it: class, id and instance, as far as there are any.
    pub(crate) fn key(&self) -> String {
        let parts = [&self.class, &self.id, &self.instance];
        let given: Vec<&str> =
            parts.into_iter().filter(|part| !part.is_empty()).map(String::as_str).collect();
        given.join(".")
    }
}

fn files(root: &Node) -> Vec<FileRef> {
    let files = root.child("References").into_iter().flat_map(|section| section.named("File"));
    let row = |file: &Node| {
        Some(FileRef {
            id: file.attribute("id")?.into(),
            href: file.attribute("href")?.into(),
            size: file.attribute("size").and_then(|size| size.parse().ok()).unwrap_or(0),
        })
    };
    files.filter_map(row).collect()
}

fn disks(root: &Node) -> Vec<DiskInfo> {
    let disks = root.child("DiskSection").into_iter().flat_map(|section| section.named("Disk"));
    let row = |disk: &Node| {
        let number = |name: &str| disk.attribute(name).and_then(|text| text.parse::<i64>().ok());
        let unit = units(disk.attribute("capacityAllocationUnits").unwrap_or("byte"));
        Some(DiskInfo {
            id: disk.attribute("diskId")?.into(),
            file: disk.attribute("fileRef").filter(|id| !id.is_empty()).map(Into::into),
            capacity: number("capacity").unwrap_or(0).saturating_mul(unit),
            populated: number("populatedSize"),
        })
    };
    disks.filter_map(row).collect()
}

fn networks(root: &Node) -> Vec<(String, String)> {
    let all = root.child("NetworkSection").into_iter().flat_map(|section| section.named("Network"));
    let row = |network: &Node| {
        let description = network.text_of("Description").unwrap_or_default();
        Some((network.attribute("name")?.to_owned(), description.to_owned()))
    };
    all.filter_map(row).collect()
}

fn options(root: &Node) -> Vec<DeploymentOption> {
    let section = root.child("DeploymentOptionSection");
    let all = section.into_iter().flat_map(|section| section.named("Configuration"));
    let row = |option: &Node| {
        Some(DeploymentOption {
            id: option.attribute("id")?.into(),
            label: option.text_of("Label").unwrap_or_default().into(),
            description: option.text_of("Description").unwrap_or_default().into(),
            is_default: option.attribute("default") == Some("true"),
        })
    };
    all.filter_map(row).collect()
}

fn pair(node: &Node) -> Option<(String, String)> {
    Some((node.attribute("key")?.to_owned(), node.attribute("value")?.to_owned()))
}

fn item(node: &Node) -> HardwareItem {
    let text = |name: &str| node.text_of(name).unwrap_or_default().to_owned();
    HardwareItem {
        kind: node.number_of("ResourceType").unwrap_or(0),
        sub_kind: text("ResourceSubType"),
        instance: text("InstanceID"),
        parent: node.text_of("Parent").map(Into::into),
        address_on_parent: node.text_of("AddressOnParent").and_then(|text| text.parse().ok()),
        bus: node.text_of("Address").and_then(|text| text.parse().ok()),
        host_resource: node.named("HostResource").map(|node| node.text.trim().into()).collect(),
        connection: node.text_of("Connection").map(Into::into),
        quantity: node.number_of("VirtualQuantity").unwrap_or(0),
        units: units(node.text_of("AllocationUnits").unwrap_or("byte")),
        option: node.attribute("configuration").map(Into::into),
        connects: node.text_of("AutomaticAllocation") != Some("false"),
    }
}

/// How many bytes a unit is: `byte * 2^20`, `MegaBytes`, `GB`. What is no unit of size counts as one.
fn units(text: &str) -> i64 {
    let text = text.trim().to_ascii_lowercase();
    if let Some((_, power)) = text.split_once("2^")
        && let Ok(power) = power.trim().parse::<u32>()
    {
        return 1_i64.checked_shl(power).unwrap_or(1);
    }
    match text.chars().next() {
        Some('k') => 1 << 10,
        Some('m') if !text.starts_with("mhz") => 1 << 20,
        Some('g') if !text.starts_with("ghz") => 1 << 30,
        Some('t') => 1 << 40,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) const SAMPLE: &str = r#"<?xml version="1.0"?>
<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1"
  xmlns:rasd="r" xmlns:vssd="v" xmlns:vmw="http://www.vmware.com/schema/ovf">
  <References><File ovf:id="file1" ovf:href="disk-0.vmdk" ovf:size="12345"/></References>
  <DiskSection><Info>d</Info>
    <Disk ovf:diskId="vmdisk1" ovf:fileRef="file1" ovf:capacity="8" ovf:capacityAllocationUnits="byte * 2^30"/>
    <Disk ovf:diskId="vmdisk2" ovf:capacity="1048576"/></DiskSection>
  <NetworkSection><Network ovf:name="nat"><Description>out &amp; in</Description></Network></NetworkSection>
  <DeploymentOptionSection><Configuration ovf:id="small"><Label>S</Label></Configuration>
    <Configuration ovf:id="large" ovf:default="true"><Label>L</Label></Configuration></DeploymentOptionSection>
  <VirtualSystem ovf:id="tiny"><Name>tiny linux</Name>
    <OperatingSystemSection ovf:id="101" vmw:osType="debian12_64Guest"/>
    <VirtualHardwareSection ovf:transport="iso com.vmware.guestInfo">
      <System><vssd:VirtualSystemType>vmx-13 vmx-19</vssd:VirtualSystemType></System>
      <Item><rasd:AllocationUnits>byte * 2^20</rasd:AllocationUnits><rasd:InstanceID>2</rasd:InstanceID>
        <rasd:ResourceType>4</rasd:ResourceType><rasd:VirtualQuantity>512</rasd:VirtualQuantity></Item>
      <vmw:Config ovf:required="false" vmw:key="firmware" vmw:value="efi"/>
      <vmw:ExtraConfig vmw:key="disk.enableUUID" vmw:value="TRUE"/>
    </VirtualHardwareSection>
    <ProductSection ovf:class="app" ovf:instance="0"><Product>Tiny</Product><Category>Net</Category>
      <Property ovf:key="hostname" ovf:type="string" ovf:userConfigurable="true" ovf:value="box"><Label>Name</Label></Property>
    </ProductSection>
  </VirtualSystem>
</Envelope>"#;

    #[test]
    fn a_descriptor_is_read_with_units_options_and_properties() {
        let envelope = Envelope::parse(SAMPLE.as_bytes()).unwrap();
        assert_eq!((envelope.id.as_str(), envelope.name.as_str()), ("tiny", "tiny linux"));
        assert_eq!(envelope.guest_id.as_deref(), Some("debian12_64Guest"));
        assert_eq!(envelope.version.as_deref(), Some("vmx-19"));
        let capacities: Vec<i64> = envelope.disks.iter().map(|disk| disk.capacity).collect();
        assert_eq!(capacities, [8 << 30, 1 << 20]);
        assert_eq!(envelope.networks, [("nat".to_owned(), "out & in".to_owned())]);
        assert_eq!(envelope.default_option(), Some("large"));
        assert_eq!(envelope.properties[0].key(), "app.hostname.0");
        assert_eq!(envelope.properties[0].category, "Net");
        assert_eq!(envelope.config, [("firmware".to_owned(), "efi".to_owned())]);
        assert_eq!(envelope.transport, ["iso", "com.vmware.guestInfo"]);
        assert_eq!((envelope.items[0].quantity, envelope.items[0].units), (512, 1 << 20));
    }

    #[test]
    fn what_is_no_descriptor_is_refused() {
        for text in
            ["", "no xml", "<a>", "<Envelope></Envelope>", "<Other><VirtualSystem/></Other>"]
        {
            assert!(Envelope::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
