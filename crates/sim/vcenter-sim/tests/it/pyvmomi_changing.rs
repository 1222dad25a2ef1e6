//! pyVmomi makes VMs, changes them, works inside them and watches what becomes of it.

use roost_vcenter_sim::Options;

use crate::pyvmomi::run;
use crate::wire_door::{WireDoor, instant, quick};

#[test]
fn a_loop_of_updates_follows_the_life_of_a_vm() {
    let door = WireDoor::open(quick());
    door.vcenter.put_file("[LocalDS_0] boot.iso", "image").unwrap();
    let Some(seen) = run(&door, "watch", &[]) else { return };
    let want = "\
first sync 5 {'enter'}
created poweredOff ['enter']
renamed newer {'modify'}
annotated mine 2 {'modify'}
powered on poweredOn {'modify'}
ready True {'modify'}
snapshot base
powered off poweredOff {'modify'}
destroyed ['leave']
versions differ True
an invented version is refused
nothing new None
";
    assert_eq!(seen, want);
    let left = door.vcenter.counters();
    assert_eq!((left.open_collectors, left.open_filters, left.open_views), (0, 0, 0));
}

#[test]
fn a_clone_carries_all_that_the_hatchery_asks_for() {
    let Some(seen) = run(&WireDoor::open_tls(quick()), "clone", &[]) else { return };
    let want = "\
task success VirtualMachine.clone debian12 TaskReasonUser
times True
result vim.VirtualMachine worker-1
config {\"hatchery_name\":\"h1\"} 2 4096
extra h1
power poweredOn DC0_C0
linked True
card True True True
address 10.0.0.10 10.0.0.10 worker-1
events VmBeingDeployedEvent VmDeployedEvent VmStartingEvent DrsVmPoweredOnEvent CustomizationStartedEvent \
CustomizationSucceeded
";
    assert_eq!(seen, want);
}

#[test]
fn what_is_refused_is_a_fault_of_its_own_type() {
    let Some(seen) = run(&WireDoor::open(instant()), "power", &[]) else { return };
    let want = "\
on twice InvalidPowerState poweredOn poweredOn
destroyed while on InvalidPowerState poweredOff poweredOn
template while on InvalidPowerState poweredOn
CPU while on CpuHotPlugNotSupported
taken name DuplicateName DC0_H0_VM1 DC0_H0_VM1
bad name InvalidName
off poweredOff None guestToolsNotRunning
off twice InvalidPowerState poweredOff poweredOff
shut down while off InvalidPowerState poweredOff
reconfigured 'first\\nsecond <&>' 4 128
summary 4 128
version moved True
stale version ConcurrentAccess
cleared ''
on poweredOn True
suspended suspended
reset poweredOn
renamed renamed
gone ManagedObjectNotFound
template on NotSupported
clone without pool InvalidArgument spec.location.pool
clone of a taken name DuplicateName DC0_H0_VM0 DC0_H0_VM0
folder of a taken name DuplicateName DC0_H0_VM0 DC0_H0_VM0
no such object ManagedObjectNotFound
";
    assert_eq!(seen, want);
}

#[test]
fn snapshots_form_a_tree_that_is_gone_back_in() {
    let Some(seen) = run(&WireDoor::open(instant()), "snapshots", &[]) else { return };
    let want = "\
made vim.vm.Snapshot True
reverted 1 True
tree [('base', [('tuned', []), ('other', [])])]
root as installed poweredOff False True True
then 4
disk has a parent True
without root [('tuned', []), ('other', [])]
none None
gone True
";
    assert_eq!(seen, want);
}

#[test]
fn programs_and_files_inside_a_guest() {
    for door in [WireDoor::open(instant()), WireDoor::open_tls(instant())] {
        let Some(seen) = run(&door, "guest", &[]) else { return };
        let want = "\
exit 3 ci True True
success 0
running None None
terminated True
environment HOME=/home/ci
transfer 256000 True
listed ('run.sh', 'file', 256000, '0o755')
taken /home/ci/in/run.sh
deleted /home/ci/in/run.sh
script 4
output b'for 42\\n'
bad login InvalidGuestLogin
no such process GuestProcessNotFound
off poweredOff
";
        assert_eq!(seen, want);
    }
}

#[test]
fn files_of_a_datastore() {
    for door in [WireDoor::open(instant()), WireDoor::open_tls(instant())] {
        let Some(seen) = run(&door, "files", &[]) else { return };
        let want = "\
uploaded True
found ('IsoImageInfo', 'boot.iso', 1280000)
by pattern ('IsoImageInfo', 'boot.iso', 1280000)
the same True
moved ('FolderInfo', 'a', 0) ('IsoImageInfo', 'b.iso', 1280000)
folders [LocalDS_0] iso [LocalDS_0] iso/a
made twice FileAlreadyExists [LocalDS_0] iso/a
no parent FileNotFound [LocalDS_0] x/y
no such folder FileNotFound [LocalDS_0] nowhere
no such file FileNotFound [LocalDS_0] iso/a/boot.iso
no such store InvalidDatastore elsewhere
download of nothing 404
deleted True
";
        assert_eq!(seen, want);
    }
}

#[test]
fn hosts_clusters_vapps_switches_and_roles() {
    let options = Options { apps: 1, ..instant() };
    let Some(seen) = run(&WireDoor::open(options), "places", &[]) else { return };
    let want = "\
datacenter DC9 vm ['ComputeResource', 'Folder']
cluster edge True True
host 10.0.0.42 connected edge
maintenance True
hosts left 0
datacenters ['DC0']
rule ClusterAntiAffinityRuleSpec apart ['DC0_C0_RP0_VM0', 'DC0_C0_RP0_VM1']
group ClusterVmGroup web ['DC0_C0_RP0_VM0']
cut off disconnected disconnected
off while cut off HostNotConnected
back connected connected
moved True connected
app VirtualAppSummary started Resources vm
its VMs ['DC0_C0_APP0_VM0', 'DC0_C0_APP0_VM1'] True True
order [('DC0_C0_APP0_VM0', 1), ('DC0_C0_APP0_VM1', 2)]
stopped stopped {'poweredOff'}
stopped twice InvalidPowerState poweredOff
started started {'poweredOn'}
destroyed while on InvalidPowerState poweredOn
made Shop mine vm
child till shop
same name DuplicateName shop
changed yours Shop
renamed till
gone None None
switch 9000 16 7
networks ['DC0_DVPG0', 'DVS0', 'VM Network']
not granted NoPermission VirtualMachine.Interact.PowerOn
granted again poweredOn
the administrator's role InvalidArgument
";
    assert_eq!(seen, want);
}

#[test]
fn ways_to_a_vm_and_to_its_disks() {
    let options = Options { datastores: 3, ..instant() };
    let Some(seen) = run(&WireDoor::open(options), "provision", &[]) else { return };
    let want = "\
basic 201 b'hello' 401
nowhere 404
nobody 401
heard out /nfc/none/disk.vmdk 404
heard out /nfc/none 404
heard out /cls/data/none/disk.vmdk 404
heard out /cls/data/none 404
heard out /guestFile?id=1&token=none 401
heard out /folder/no/folder/x.iso?dcPath=DC0&dsName=LocalDS_0 404
heard out /folder/x.iso?dcPath=DC0&dsName=none 404
capability True True
layout ['DC0_H0_VM0.vmx'] ['DC0_H0_VM0.vmdk']
layoutEx ['config', 'diskDescriptor', 'diskExtent']
storage LocalDS_0 True
unset None None 0
devices
  CD/DVD drive 1: Remote device
  Hard disk 1: 10,485,760 KB
  IDE 0: IDE 0
  IDE 1: IDE 1
  Keyboard: Keyboard
  Network adapter 1: DVSwitch: be d7 68 ca e1 64 49 c9-81 9f 08 1f 13 51 03 ca
  PCI controller 0: PCI controller 0
  PS2 controller 0: PS2 controller 0
  Pointing device: Pointing device; Device
  SCSI controller 0: VMware paravirtual SCSI
  SIO controller 0: SIO controller 0
  VMCI device: Device on the virtual machine PCI bus that provides support for the virtual machine communication interface
  Video card: Video card
managers True True
an alarm NotSupported
a view of no entity InvalidArgument
connected [('VirtualSerialPort', True), ('VirtualCdrom', True)]
added
  Floppy drive 1: Remote
  NVME controller 0: NVME controller 0
  Parallel port 1: File [LocalDS_0] empty/lpt.log
  Serial port 1: Remote telnet://:9001
  Serial port 2: File [LocalDS_0] empty/com2.log
  Sound card: Auto detect
  USB xHCI controller: USB xHCI controller
  Virtual TPM: Trusted Platform Module
numbered ['Serial port 1', 'Serial port 2']
empty toolsNotInstalled None unknown
newest hardware AlreadyUpgraded
registered empty
address True
linked [True]
promoted [False]
fork poweredOn
ticket True
made twice FileAlreadyExists [LocalDS_0] blank.vmdk
disk True
object data 10 True
objects 0
pod ['LocalDS_1', 'LocalDS_2'] True
recommended True
specification True
checked ['NotEnoughCpus']
placed DC0_C0
";
    assert_eq!(seen, want);
}
