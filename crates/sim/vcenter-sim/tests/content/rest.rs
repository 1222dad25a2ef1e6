//! A REST client that is as plain as can be.

use http::{Method, Request};
use http_body_util::BodyExt as _;
use roost_vcenter_sim::{Options, full_body};
use serde_json::Value;

use crate::lab::Lab;

pub(crate) struct Rest {
    pub(crate) lab: Lab,
    session: String,
}

impl Rest {
    pub(crate) async fn start(options: Options) -> Self {
        let mut rest = Self { lab: Lab::start(options).await, session: String::new() };
        let (status, session) = rest.ask(Method::POST, "/api/session", Value::Null).await;
        assert_eq!(status, 201, "{session}");
        session.as_str().unwrap().clone_into(&mut rest.session);
        rest
    }

    pub(crate) async fn ask(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, bytes) = self.send(method, path, body.into_bytes()).await;
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: Vec<u8>) -> (u16, Vec<u8>) {
        let mut request = Request::builder().method(method).uri(path).header("host", "vc.test");
        if self.session.is_empty() {
            // user:pass
            request = request.header("authorization", "Basic dXNlcjpwYXNz");
        } else {
            request = request.header("vmware-api-session-id", &self.session);
        }
        let request = request.body(full_body(body)).unwrap();
        let response = self.lab.vcenter.handle(request).await.unwrap();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, bytes.to_vec())
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.ask(Method::POST, path, body).await;
        assert!(matches!(status, 200 | 201 | 204), "POST {path}: {status} {answer}");
        answer
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let (status, answer) = self.ask(Method::GET, path, Value::Null).await;
        assert_eq!(status, 200, "GET {path}: {answer}");
        answer
    }
}

/// A package with one disk of a gibibyte, one of two, one card, and a property.
pub(crate) const DESCRIPTOR: &str = r#"<?xml version="1.0"?>
<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1"
  xmlns:rasd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData"
  xmlns:vssd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_VirtualSystemSettingData"
  xmlns:vmw="http://www.vmware.com/schema/ovf">
  <References><File ovf:href="tiny-disk1.vmdk" ovf:id="file1" ovf:size="11"/></References>
  <DiskSection><Info>Disks</Info>
    <Disk ovf:capacity="1" ovf:capacityAllocationUnits="byte * 2^30" ovf:diskId="vmdisk1" ovf:fileRef="file1"/>
    <Disk ovf:capacity="2" ovf:capacityAllocationUnits="byte * 2^30" ovf:diskId="vmdisk2"/></DiskSection>
  <NetworkSection><Info>Networks</Info><Network ovf:name="nat"><Description>The nat network</Description></Network></NetworkSection>
  <VirtualSystem ovf:id="tiny"><Info>A VM</Info><Name>tiny</Name>
    <OperatingSystemSection ovf:id="96" vmw:osType="debian12_64Guest"><Info>OS</Info></OperatingSystemSection>
    <VirtualHardwareSection ovf:transport="com.vmware.guestInfo"><Info>Hardware</Info>
      <System><vssd:ElementName>Family</vssd:ElementName><vssd:InstanceID>0</vssd:InstanceID><vssd:VirtualSystemType>vmx-17</vssd:VirtualSystemType></System>
      <Item><rasd:ElementName>2 CPUs</rasd:ElementName><rasd:InstanceID>1</rasd:InstanceID><rasd:ResourceType>3</rasd:ResourceType><rasd:VirtualQuantity>2</rasd:VirtualQuantity></Item>
      <Item><rasd:AllocationUnits>byte * 2^20</rasd:AllocationUnits><rasd:ElementName>512MB</rasd:ElementName><rasd:InstanceID>2</rasd:InstanceID><rasd:ResourceType>4</rasd:ResourceType><rasd:VirtualQuantity>512</rasd:VirtualQuantity></Item>
      <Item><rasd:Address>0</rasd:Address><rasd:ElementName>SCSI</rasd:ElementName><rasd:InstanceID>3</rasd:InstanceID><rasd:ResourceSubType>VirtualSCSI</rasd:ResourceSubType><rasd:ResourceType>6</rasd:ResourceType></Item>
      <Item><rasd:AddressOnParent>0</rasd:AddressOnParent><rasd:ElementName>disk0</rasd:ElementName><rasd:HostResource>ovf:/disk/vmdisk1</rasd:HostResource><rasd:InstanceID>4</rasd:InstanceID><rasd:Parent>3</rasd:Parent><rasd:ResourceType>17</rasd:ResourceType></Item>
      <Item><rasd:AddressOnParent>1</rasd:AddressOnParent><rasd:ElementName>disk1</rasd:ElementName><rasd:HostResource>ovf:/disk/vmdisk2</rasd:HostResource><rasd:InstanceID>5</rasd:InstanceID><rasd:Parent>3</rasd:Parent><rasd:ResourceType>17</rasd:ResourceType></Item>
      <Item><rasd:AddressOnParent>7</rasd:AddressOnParent><rasd:AutomaticAllocation>true</rasd:AutomaticAllocation><rasd:Connection>nat</rasd:Connection><rasd:ElementName>eth0</rasd:ElementName><rasd:InstanceID>6</rasd:InstanceID><rasd:ResourceSubType>VmxNet3</rasd:ResourceSubType><rasd:ResourceType>10</rasd:ResourceType></Item>
      <vmw:Config ovf:required="false" vmw:key="firmware" vmw:value="efi"/>
      <vmw:ExtraConfig ovf:required="false" vmw:key="disk.enableUUID" vmw:value="TRUE"/>
    </VirtualHardwareSection>
    <ProductSection ovf:class="app"><Info>Product</Info><Product>Tiny</Product>
      <Property ovf:key="hostname" ovf:type="string" ovf:userConfigurable="true" ovf:value="box"><Label>Name</Label></Property></ProductSection>
  </VirtualSystem>
</Envelope>"#;

pub(crate) const DISK: &[u8] = b"KDMVcontent";
