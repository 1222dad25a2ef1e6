use std::net::IpAddr;
use std::sync::Arc;

use roost_fleet::{Claim, Marks, Notes, Recognise, Vm};

use super::Annotation;
use crate::door::HATCHERY;
use crate::names::VmName;
use crate::planted::{self, Bug};

/// Tells the fleet whose each VM is. The [`Annotation`] itself is the note; [`Annotation::of`] opens it.
///
/// VMs of other hatcheries are read too: their addresses are taken, and nothing else about them is ours to touch.
#[derive(Debug, Clone, Copy, Default)]
pub struct HatcheryVms;

/// One for the process: a note is never opened as another, whichever hatchery's mirror it is in.
static NOTES: Notes<Annotation> = Notes::new();

impl Annotation {
    /// What the VM says about itself; `None` if it is no hatchery's.
    pub fn of(vm: &Vm) -> Option<Arc<Self>> {
        NOTES.of(vm)
    }
}

impl Recognise for HatcheryVms {
    fn recognise(&self, vm: &Marks<'_>) -> Option<Claim> {
        let annotation = Annotation::parse(vm.annotation?).ok()?;
        // Any JSON object reads as an annotation. One without owner and address says nothing that anybody here asks for.
        if annotation.hatchery_name.is_empty() && annotation.address().is_none() {
            return None;
        }
        Some(Claim {
            door: HATCHERY,
            owner: annotation.hatchery_name.as_str().into(),
            request: annotation.job().map(|job| job.to_string().into()),
            address: annotation.address().filter(|_| !planted::is(Bug::ForgetsAddresses)),
            note: Some(NOTES.keep(annotation)),
        })
    }

    fn address_in_name(&self, name: &str) -> Option<IpAddr> {
        if planted::is(Bug::ForgetsAddresses) {
            return None;
        }
        VmName::of(name).address().map(IpAddr::V4)
    }
}

#[cfg(test)]
mod tests {
    use roost_clock::SimClock;
    use roost_fleet::{Mirror, VmId, Wrote};

    use super::*;

    #[tokio::test]
    async fn the_fleet_learns_owner_job_and_address_and_keeps_the_annotation() {
        let text =
            r#"{"hatchery_name":"h1","job_id":"123","ip_address":"10.0.0.7","flavor":"large"}"#;
        let mirror = Mirror::new(vec![Arc::new(HatcheryVms)], Arc::new(SimClock::new()));
        let id = VmId::new("vm-1");
        mirror.created(&id, Wrote::new().name("w").annotation(text));
        let vm = mirror.vm(&id).unwrap();
        let claim = vm.claim.as_ref().unwrap();
        assert_eq!((&*claim.owner, claim.request.as_deref()), ("h1", Some("123")));
        assert_eq!(claim.address, Some("10.0.0.7".parse().unwrap()));
        assert_eq!(Annotation::of(&vm).unwrap().flavor, "large");
        let in_name = HatcheryVms.address_in_name("provision-v2-ip-10-0-0-7-keen-bohr");
        assert_eq!(in_name, Some("10.0.0.7".parse().unwrap()));
    }

    #[test]
    fn notes_of_others_are_nobodys() {
        let read = |text| HatcheryVms.recognise(&Marks::annotation(text));
        for text in ["", "made by hand", "{}", r#"{"backup":"daily"}"#] {
            assert!(read(text).is_none(), "{text:?}");
        }
        let nobody = read(r#"{"ip_address":"10.0.0.7"}"#).unwrap();
        assert_eq!(&*nobody.owner, "", "its address is taken all the same");
    }
}
