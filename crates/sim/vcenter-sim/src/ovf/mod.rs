//! OVF: reading descriptors, making VMs of them, and writing them.

mod descriptor;
mod envelope;
mod hardware;
mod node;
mod properties;

pub(crate) use descriptor::{DiskRef, describe};
pub(crate) use envelope::{Envelope, Property};
pub(crate) use hardware::{Choices, Provisioning, config_spec};

/// Why a descriptor cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OvfError {
    #[error("The OVF descriptor is not well-formed XML.")]
    NotXml,
    #[error("The OVF descriptor has no {what}.")]
    Lacks { what: &'static str },
}
