#!/usr/bin/env bash
# Makes the images that govc's tests import: tiny ones of our own under the names that the tests use.
set -euo pipefail
cd "$1"
name=ttylinux-pc_i486-16.1

# A VM with one disk on IDE and one card; with an image in its drive, if one is named.
descriptor() { # vm-name disk-size [iso iso-size]
  local file='' item=''
  if [ $# -gt 2 ]; then
    file="    <File ovf:href=\"$3\" ovf:id=\"file2\" ovf:size=\"$4\"/>"
    item='      <Item ovf:required="false"><rasd:AddressOnParent>0</rasd:AddressOnParent><rasd:AutomaticAllocation>true</rasd:AutomaticAllocation><rasd:ElementName>cdrom0</rasd:ElementName><rasd:HostResource>ovf:/file/file2</rasd:HostResource><rasd:InstanceID>7</rasd:InstanceID><rasd:Parent>3</rasd:Parent><rasd:ResourceType>15</rasd:ResourceType></Item>'
  fi
  cat <<OVF
<?xml version="1.0" encoding="UTF-8"?>
<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1" xmlns:rasd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData" xmlns:vssd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_VirtualSystemSettingData" xmlns:vmw="http://www.vmware.com/schema/ovf" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
  <References>
    <File ovf:href="$1-disk1.vmdk" ovf:id="file1" ovf:size="$2"/>
$file
  </References>
  <DiskSection>
    <Info>Virtual disk information</Info>
    <Disk ovf:capacity="30" ovf:capacityAllocationUnits="byte * 2^20" ovf:diskId="vmdisk1" ovf:fileRef="file1" ovf:format="http://www.vmware.com/interfaces/specifications/vmdk.html#streamOptimized"/>
  </DiskSection>
  <NetworkSection>
    <Info>The list of logical networks</Info>
    <Network ovf:name="nat"><Description>The nat network</Description></Network>
  </NetworkSection>
  <VirtualSystem ovf:id="vm">
    <Info>A virtual machine</Info>
    <Name>$1</Name>
    <OperatingSystemSection ovf:id="36" vmw:osType="otherLinuxGuest"><Info>The kind of installed guest operating system</Info></OperatingSystemSection>
    <VirtualHardwareSection>
      <Info>Virtual hardware requirements</Info>
      <System><vssd:ElementName>Virtual Hardware Family</vssd:ElementName><vssd:InstanceID>0</vssd:InstanceID><vssd:VirtualSystemIdentifier>$1</vssd:VirtualSystemIdentifier><vssd:VirtualSystemType>vmx-09</vssd:VirtualSystemType></System>
      <Item><rasd:AllocationUnits>hertz * 10^6</rasd:AllocationUnits><rasd:Description>Number of Virtual CPUs</rasd:Description><rasd:ElementName>1 virtual CPU(s)</rasd:ElementName><rasd:InstanceID>1</rasd:InstanceID><rasd:ResourceType>3</rasd:ResourceType><rasd:VirtualQuantity>1</rasd:VirtualQuantity></Item>
      <Item><rasd:AllocationUnits>byte * 2^20</rasd:AllocationUnits><rasd:Description>Memory Size</rasd:Description><rasd:ElementName>32MB of memory</rasd:ElementName><rasd:InstanceID>2</rasd:InstanceID><rasd:ResourceType>4</rasd:ResourceType><rasd:VirtualQuantity>32</rasd:VirtualQuantity></Item>
      <Item><rasd:Address>1</rasd:Address><rasd:Description>IDE Controller</rasd:Description><rasd:ElementName>ideController1</rasd:ElementName><rasd:InstanceID>3</rasd:InstanceID><rasd:ResourceType>5</rasd:ResourceType></Item>
      <Item><rasd:Address>0</rasd:Address><rasd:Description>IDE Controller</rasd:Description><rasd:ElementName>ideController0</rasd:ElementName><rasd:InstanceID>4</rasd:InstanceID><rasd:ResourceType>5</rasd:ResourceType></Item>
      <Item><rasd:AddressOnParent>0</rasd:AddressOnParent><rasd:ElementName>disk0</rasd:ElementName><rasd:HostResource>ovf:/disk/vmdisk1</rasd:HostResource><rasd:InstanceID>5</rasd:InstanceID><rasd:Parent>4</rasd:Parent><rasd:ResourceType>17</rasd:ResourceType></Item>
      <Item><rasd:AddressOnParent>2</rasd:AddressOnParent><rasd:AutomaticAllocation>true</rasd:AutomaticAllocation><rasd:Connection>nat</rasd:Connection><rasd:Description>E1000 ethernet adapter on "nat"</rasd:Description><rasd:ElementName>ethernet0</rasd:ElementName><rasd:InstanceID>6</rasd:InstanceID><rasd:ResourceSubType>E1000</rasd:ResourceSubType><rasd:ResourceType>10</rasd:ResourceType></Item>
$item
    </VirtualHardwareSection>
  </VirtualSystem>
</Envelope>
OVF
}

manifest() { # file...
  for file in "$@"; do printf 'SHA1(%s)= %s\n' "$file" "$(sha1sum <"$file" | cut -d' ' -f1)"; done
}

# A streamOptimized VMDK of 61440 sectors: a header, a descriptor, and nothing in it.
{
  printf 'KDMV\003\000\000\000\001\000\003\000\000\360\000\000\000\000\000\000'
  head -c 492 /dev/zero
  printf '# Disk DescriptorFile\nversion=1\nCID=7b1f2a30\nparentCID=ffffffff\ncreateType="streamOptimized"\n\nRW 61440 SPARSE "%s"\n\nddb.adapterType = "ide"\n' $name-disk1.vmdk
  head -c 65536 /dev/zero
} | head -c 65536 >$name-disk1.vmdk || true
head -c 32768 /dev/zero >$name.iso
head -c 1474560 /dev/zero >floppybird.img
descriptor $name 65536 >$name.ovf
manifest $name.ovf $name-disk1.vmdk >$name.mf
tar cf $name.ova $name.ovf $name.mf $name-disk1.vmdk
ln -s $name.ova ttylinux-latest.ova

mkdir bad live
cp $name.ovf $name-disk1.vmdk bad
sed 's/=.*$/= 5e82716003a1bff5b1d27bbd7d1e83addc881503/' $name.mf >bad/$name.mf
tar cf $name-bad-checksum.ova -C bad $name.ovf $name.mf $name-disk1.vmdk

cd live
cp ../$name-disk1.vmdk $name-live-disk1.vmdk
cp ../$name.iso _deviceImage0.iso
descriptor $name-live 65536 _deviceImage0.iso 32768 >$name-live.ovf
manifest $name-live.ovf $name-live-disk1.vmdk _deviceImage0.iso >$name-live.mf
tar cf ../$name-live.ova $name-live.ovf $name-live.mf $name-live-disk1.vmdk _deviceImage0.iso
cd ..
rm -r bad live
