use std::fmt;
use std::sync::Arc;

use crate::xml::{Reader, Start, Writer};
use crate::{Field, Value, WireError};

macro_rules! mo_types {
    ($($name:ident)+) => {
        /// The kind of a managed object.
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum MoType {
            $($name,)+
            /// A kind that Roost has no use for, kept as it came.
            Other(Arc<str>),
        }

        impl MoType {
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$name => stringify!($name),)+
                    Self::Other(name) => name,
                }
            }
        }

        impl From<&str> for MoType {
            fn from(name: &str) -> Self {
                match name {
                    $(stringify!($name) => Self::$name,)+
                    _ => Self::Other(name.into()),
                }
            }
        }
    };
}

mo_types! {
    VirtualMachine Task Folder Datacenter ResourcePool VirtualApp ClusterComputeResource ComputeResource HostSystem
    Datastore StoragePod Network DistributedVirtualPortgroup OpaqueNetwork DistributedVirtualSwitch
    VmwareDistributedVirtualSwitch VirtualMachineSnapshot ContainerView ListView PropertyCollector PropertyFilter
    EventHistoryCollector TaskHistoryCollector ServiceInstance SessionManager ViewManager EventManager TaskManager
    SearchIndex FileManager VirtualDiskManager HostDatastoreBrowser StorageResourceManager CustomFieldsManager
    GuestOperationsManager GuestProcessManager GuestFileManager GuestAuthManager OptionManager AuthorizationManager
    EnvironmentBrowser PerformanceManager ExtensionManager LicenseManager ManagedEntity
}

impl MoType {
    /// Whether an object of this kind is also one of `base`: a cluster is a `ComputeResource`.
    pub fn is_a(&self, base: &str) -> bool {
        let own = self.as_str();
        own == base
            || match base {
                "ManagedEntity" => matches!(
                    self,
                    Self::VirtualMachine
                        | Self::Folder
                        | Self::Datacenter
                        | Self::ResourcePool
                        | Self::VirtualApp
                        | Self::ClusterComputeResource
                        | Self::ComputeResource
                        | Self::HostSystem
                        | Self::Datastore
                        | Self::StoragePod
                        | Self::Network
                        | Self::DistributedVirtualPortgroup
                        | Self::OpaqueNetwork
                        | Self::DistributedVirtualSwitch
                        | Self::VmwareDistributedVirtualSwitch
                ),
                "ComputeResource" => matches!(self, Self::ClusterComputeResource),
                "ResourcePool" => matches!(self, Self::VirtualApp),
                "Folder" => matches!(self, Self::StoragePod),
                "Network" => {
                    matches!(self, Self::DistributedVirtualPortgroup | Self::OpaqueNetwork)
                }
                "DistributedVirtualSwitch" => matches!(self, Self::VmwareDistributedVirtualSwitch),
                "View" | "ManagedObjectView" => {
                    matches!(self, Self::ContainerView | Self::ListView)
                }
                "HistoryCollector" => {
                    matches!(self, Self::EventHistoryCollector | Self::TaskHistoryCollector)
                }
                "ManagedObject" => true,
                _ => false,
            }
    }
}

impl fmt::Display for MoType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A managed object reference: the kind and the server's opaque id. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MoRef {
    pub kind: MoType,
    pub id: Arc<str>,
}

impl MoRef {
    pub fn new(kind: MoType, id: impl Into<Arc<str>>) -> Self {
        Self { kind, id: id.into() }
    }

    pub fn vm(id: impl Into<Arc<str>>) -> Self {
        Self::new(MoType::VirtualMachine, id)
    }

    /// The one object whose id is known before anything is asked.
    pub fn service_instance() -> Self {
        Self::new(MoType::ServiceInstance, "ServiceInstance")
    }

    /// The default: a reference that was not there.
    pub fn is_null(&self) -> bool {
        self.id.is_empty()
    }

    pub(crate) fn parse(start: &Start<'_>, id: &str) -> Self {
        Self { kind: MoType::from(start.ref_type.unwrap_or_default()), id: id.trim().into() }
    }
}

impl Default for MoRef {
    fn default() -> Self {
        Self { kind: MoType::ManagedEntity, id: "".into() }
    }
}

impl fmt::Display for MoRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.id)
    }
}

impl fmt::Debug for MoRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Field for MoRef {
    const TYPE: &'static str = "ManagedObjectReference";

    fn write(&self, w: &mut Writer, name: &str) {
        w.open_with(name, None, Some(self.kind.as_str()));
        w.text(&self.id);
        w.close(name);
    }

    fn read(&mut self, r: &mut Reader<'_>, start: &Start<'_>) -> Result<(), WireError> {
        *self = Self::parse(start, &r.text()?);
        Ok(())
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Ref(self.clone()))
    }
}
