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
        // Any JSON object reads as an annotation. One without owner and address says nothing that anybody here asks for.
        if annotation.hatchery_name.is_empty() && annotation.address().is_none() {
            return None;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fleet_learns_owner_job_and_address_and_keeps_the_annotation() {
        let text =
            r#"{"hatchery_name":"h1","job_id":"123","ip_address":"10.0.0.7","flavor":"large"}"#;
        let identity = HatcheryIdentities.read(text).unwrap();
        assert_eq!((&*identity.owner, identity.job.as_deref()), ("h1", Some("123")));
        assert_eq!(identity.address, Some("10.0.0.7".parse().unwrap()));
        assert_eq!(identity.detail::<Annotation>().unwrap().flavor, "large");
        let in_name = HatcheryIdentities.address_in_name("provision-v2-ip-10-0-0-7-keen-bohr");
        assert_eq!(in_name, Some("10.0.0.7".parse().unwrap()));
    }

    #[test]
    fn notes_of_others_are_nobodys() {
        for text in ["", "made by hand", "{}", r#"{"backup":"daily"}"#] {
            assert!(HatcheryIdentities.read(text).is_none(), "{text:?}");
        }
        let nobody = HatcheryIdentities.read(r#"{"ip_address":"10.0.0.7"}"#).unwrap();
        assert_eq!(&*nobody.owner, "", "its address is taken all the same");
    }
}
