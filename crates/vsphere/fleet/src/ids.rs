use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use roost_vim::wire::{MoRef, MoType};
use serde::Serialize;

macro_rules! ids {
    ($($(#[$meta:meta])* $name:ident = $kind:ident;)+) => {$(
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn new(id: impl Into<Arc<str>>) -> Self {
                Self(id.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }

            pub fn moref(&self) -> MoRef {
                MoRef::new(MoType::$kind, Arc::clone(&self.0))
            }
        }

        impl From<&MoRef> for $name {
            fn from(moref: &MoRef) -> Self {
                Self(Arc::clone(&moref.id))
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )+};
}

ids! {
    /// A VM's managed object id, `vm-62`: given once by the server and never given again.
    VmId = VirtualMachine;
    /// A resource pool's managed object id.
    PoolId = ResourcePool;
}

/// The front door that wants a machine: `vm-operator`, `agent-forge`. A closed set, because it becomes a metric label.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct DoorName(&'static str);

impl DoorName {
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    pub fn as_str(self) -> &'static str {
        self.0
    }

    /// A request of this door.
    pub fn request(self, id: impl Into<Arc<str>>) -> RequestId {
        RequestId { door: self, id: id.into() }
    }
}

impl fmt::Display for DoorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for DoorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// What a door wants a machine for. Ids are the door's own: number 42 of one door and an object called 42 of another are
/// two requests. One request has at most one VM.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct RequestId {
    pub door: DoorName,
    pub id: Arc<str>,
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.door, self.id)
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
