//! The kinds of the group `vmoperator.vmware.com` as data, and beside them what they mean.
//!
//! A type holds the fields that are acted on. Objects are written as differences, so fields that a type does not know survive; an entry of a list is replaced as
//! a whole and therefore keeps what it does not know in `rest`.

#[macro_use]
mod data;
#[macro_use]
mod kind;

mod attachment;
mod cache;
mod class;
pub mod condition;
mod console;
mod definition;
mod duration;
mod group;
mod image;
pub mod names;
mod policy;
mod quantity;
mod replica_set;
mod service;
mod snapshot;
pub mod vm;

pub use attachment::{CnsNodeVmAttachment, CnsNodeVmAttachmentSpec, CnsNodeVmAttachmentStatus};
pub use cache::{
    CacheFile, CacheFileType, CacheLocation, CacheLocationStatus, CacheOvf, CachedDiskType,
    VirtualMachineImageCache, VirtualMachineImageCacheSpec, VirtualMachineImageCacheStatus,
};
pub use class::{
    ClassDevices, ClassHardware, ClassPolicies, ClassResources, CpuMemory, DynamicDirectPathDevice,
    InstanceStorage, InstanceVolume, VgpuDevice, VirtualMachineClass, VirtualMachineClassInstance,
    VirtualMachineClassSpec, VirtualMachineClassStatus,
};
pub use console::{
    VirtualMachineWebConsoleRequest, VirtualMachineWebConsoleRequestSpec,
    VirtualMachineWebConsoleRequestStatus,
};
pub use data::Rest;
pub use definition::{DefinitionError, definitions};
pub use duration::{GoDuration, GoDurationError};
pub use group::{
    BootOrderGroup, GroupMember, GroupMemberStatus, GroupPlacement, MemberKind, PlacedDatastore,
    VirtualMachineGroup, VirtualMachineGroupSpec, VirtualMachineGroupStatus,
};
pub use image::{
    ClusterVirtualMachineImage, ImageDisk, ImageType, KeyValue, OsInfo, OvfProperty, ProductInfo,
    VirtualMachineImage, VirtualMachineImageSpec, VirtualMachineImageStatus,
};
pub use kind::{GROUP, OLDER_VERSION, VERSION};
pub use policy::{
    ClusterModuleStatus, ResourcePoolPolicy, ResourcePoolStatus, VirtualMachineSetResourcePolicy,
    VirtualMachineSetResourcePolicySpec, VirtualMachineSetResourcePolicyStatus,
};
pub use quantity::{Quantity, QuantityError};
pub use replica_set::{
    VirtualMachineReplicaSet, VirtualMachineReplicaSetSpec, VirtualMachineReplicaSetStatus,
    VirtualMachineTemplate,
};
pub use service::{
    LoadBalancerIngress, LoadBalancerStatus, ServicePort, VirtualMachineService,
    VirtualMachineServiceSpec, VirtualMachineServiceStatus,
};
pub use snapshot::{
    QuiesceSpec, SnapshotReference, SnapshotReferenceType, SnapshotStorage, StorageClassTotal,
    VirtualMachineSnapshot, VirtualMachineSnapshotSpec, VirtualMachineSnapshotStatus,
};
pub use vm::{PowerState, VirtualMachine, VirtualMachineSpec, VirtualMachineStatus};
