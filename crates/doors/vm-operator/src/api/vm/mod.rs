//! `VirtualMachine`: what is wanted, what is, and what that means.

mod bootstrap;
mod hardware;
mod meaning;
mod network;
mod probe;
mod spec;
mod status;
#[cfg(test)]
mod tests;
mod volume;

pub use bootstrap::{
    Bootstrap, CloudConfig, CloudConfigUser, CloudInit, GuiRunOnce, GuiUnattended, Identification,
    InlineSysprep, LicenseFilePrintData, LinuxPrep, ScriptText, SecretKey, Sysprep,
    SysprepUserData, VAppConfig, VAppProperty, ValueOrSecret, WriteFile,
};
pub use hardware::{
    BootDevice, BootDeviceType, BootOptions, BusController, Cdrom, ControllerSharing,
    ControllerType, Firmware, Hardware, NetworkBootProtocol, NvmeController, ScsiController,
    ScsiType, Switch,
};
pub use meaning::{GuestFamily, PauseState};
pub use network::{Interface, InterfaceNetwork, Network, Route, Vlan};
pub use probe::{
    GuestHeartbeatProbe, GuestInfoProbe, HeartbeatStatus, ReadinessProbe, TcpSocketProbe,
};
pub use spec::{
    Advanced, ClassReference, CpuAdvanced, CpuTopology, Crypto, CryptoVtpmMode, ImageReference,
    LatencySensitivity, MemoryAdvanced, ObjectReference, PowerOpMode, PowerState, PromoteDisksMode,
    ProvisioningMode, Reserved, Resources, VirtualMachineSpec,
};
pub use status::{
    AddressStatus, ControllerDeviceStatus, ControllerDeviceType, ControllerStatus, CpuStatus,
    CryptoStatus, DhcpFamilyStatus, DhcpStatus, DnsStatus, GuestStatus, HardwareStatus,
    InterfaceConfig, InterfaceDnsStatus, InterfaceIpConfig, InterfaceIpStatus, InterfaceStatus,
    IpStackStatus, MemoryStatus, NetworkConfig, NetworkStatus, ProviderStatus, RouteGateway,
    RouteStatus, SnapshotUsage, StorageRequested, StorageStatus, StorageUsage, VgpuStatus,
    VirtualMachineStatus, VolumeCryptoStatus, VolumeStatus, VolumeType,
};
pub use volume::{
    ApplicationType, DiskMode, InstanceVolumeClaim, PersistentVolumeClaim, SharingMode, Volume,
};

kind!(
    VirtualMachine,
    "virtualmachines",
    NamespaceResourceScope,
    VirtualMachineSpec,
    VirtualMachineStatus
);
