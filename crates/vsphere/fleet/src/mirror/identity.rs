use std::any::Any;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// What a VM says about itself in its annotation, in the words that all front doors share.
#[derive(Clone)]
pub struct Identity {
    /// Who made it and may change or delete it: the hatchery's name.
    pub owner: Arc<str>,
    /// The request that it serves.
    pub job: Option<Arc<str>>,
    /// The address that it was given.
    pub address: Option<IpAddr>,
    /// The annotation in the front door's own type.
    pub detail: Option<Arc<dyn Any + Send + Sync>>,
}

impl Identity {
    pub fn of(owner: impl Into<Arc<str>>) -> Self {
        Self { owner: owner.into(), job: None, address: None, detail: None }
    }

    /// The front door's own reading of the annotation, if it is of this type.
    pub fn detail<T: 'static>(&self) -> Option<&T> {
        self.detail.as_ref()?.downcast_ref()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("owner", &self.owner)
            .field("job", &self.job)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// How annotations and names are understood. Called once for each that changes; the result is kept with the VM.
pub trait ReadIdentity: fmt::Debug + Send + Sync + 'static {
    /// `None` when the annotation is nobody's that Roost knows.
    fn read(&self, annotation: &str) -> Option<Identity>;

    /// An address that stands in a VM's name. Such a name holds its address also while the VM has no annotation yet.
    fn address_in_name(&self, name: &str) -> Option<IpAddr> {
        let _ = name;
        None
    }
}
