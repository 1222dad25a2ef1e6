use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use super::Note;
use crate::{DoorName, RequestId};

/// Whose a VM is, in the words that all doors share.
#[derive(Debug, Clone)]
pub struct Claim {
    pub door: DoorName,
    /// Which instance of the door made it and may change or delete it.
    pub owner: Arc<str>,
    /// The request that it serves, by the door's own id.
    pub request: Option<Arc<str>>,
    /// The address that it was given.
    pub address: Option<IpAddr>,
    /// What else the door read of it; see [`Notes`](super::Notes).
    pub note: Option<Note>,
}

impl Claim {
    pub fn of(door: DoorName, owner: impl Into<Arc<str>>) -> Self {
        Self { door, owner: owner.into(), request: None, address: None, note: None }
    }

    pub fn request_id(&self) -> Option<RequestId> {
        self.request.as_ref().map(|id| self.door.request(Arc::clone(id)))
    }
}

/// How a door recognises its own VMs. Asked when something of [`Marks`] has changed; the answer is kept with the VM. It must
/// depend on the marks alone.
pub trait Recognise: fmt::Debug + Send + Sync + 'static {
    /// What it looks at beside name, annotation, folder and BIOS uuid, which are read anyway.
    fn needs(&self) -> &[Need] {
        &[]
    }

    /// `None` when it is not this door's, as far as this door can tell. The first door that claims a VM has it.
    fn recognise(&self, vm: &Marks<'_>) -> Option<Claim>;

    /// An address that stands in a VM's name. Such a name holds its address also while the VM is nobody's yet.
    fn address_in_name(&self, name: &str) -> Option<IpAddr> {
        let _ = name;
        None
    }
}

/// A property that is read of every VM because a door recognises its own by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    InstanceUuid,
    /// This key of `extraConfig`.
    ExtraConfig(&'static str),
}

impl Need {
    pub(crate) fn path(self) -> String {
        match self {
            Self::InstanceUuid => "config.instanceUuid".to_owned(),
            Self::ExtraConfig(key) => format!("config.extraConfig[\"{key}\"]"),
        }
    }
}

/// Values of `extraConfig` that a door needs, by key.
pub(crate) type ExtraConfig = BTreeMap<&'static str, Arc<str>>;

/// What a VM can be recognised by.
#[derive(Debug, Clone, Copy)]
pub struct Marks<'a> {
    pub name: &'a str,
    /// Of a VM that nobody claims it is at hand only when it has just been read, because other people's notes can be long.
    pub annotation: Option<&'a str>,
    /// The folder's id.
    pub folder: Option<&'a str>,
    /// The BIOS uuid.
    pub uuid: Option<&'a str>,
    pub instance_uuid: Option<&'a str>,
    pub template: bool,
    pub(crate) extra_config: Option<&'a ExtraConfig>,
}

impl<'a> Marks<'a> {
    /// A value of `extraConfig`, for a key that the door said it needs.
    pub fn extra_config(&self, key: &str) -> Option<&'a str> {
        self.extra_config?.get(key).map(|value| &**value)
    }

    /// A VM of which only the annotation is known.
    pub fn annotation(annotation: &'a str) -> Self {
        Self {
            name: "",
            annotation: Some(annotation),
            folder: None,
            uuid: None,
            instance_uuid: None,
            template: false,
            extra_config: None,
        }
    }
}
