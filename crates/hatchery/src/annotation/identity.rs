use std::net::IpAddr;
use std::sync::Arc;

use roost_fleet::{Identity, ReadIdentity};

use super::Annotation;
use crate::names::VmName;

/// Tells the fleet whose each VM is, in the words that all front doors share. The [`Annotation`] itself comes along as the detail.
///
/// VMs of other hatcheries are read too: their addresses are taken, and nothing else about them is ours to touch.
#[derive(Debug, Clone, Copy, Default)]
pub struct HatcheryIdentities;

impl ReadIdentity for HatcheryIdentities {
    fn read(&self, annotation: &str) -> Option<Identity> {
        let annotation = Annotation::parse(annotation).ok()?;
        Some(Identity {
            owner: annotation.hatchery_name.as_str().into(),
            job: annotation.job().map(|job| job.to_string().into()),
            address: annotation.address(),
            detail: Some(Arc::new(annotation)),
        })
    }

    fn address_in_name(&self, name: &str) -> Option<IpAddr> {
        VmName::of(name).address().map(IpAddr::V4)
    }
}
