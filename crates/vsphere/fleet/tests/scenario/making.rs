//! A VM is made by its door's own spec, and once, whatever becomes of the answer.

use std::sync::Arc;

use roost_fleet::{
    AddressNeed, AddressPlan, Amounts, Ask, Claim, Fleet, FleetRules, Limits, Machine,
    MachineError, MakeBy, Marks, Need, NewMachine, NotMade, Owner, Power, Recognise, Reservation,
    Wrote,
};
use roost_vcenter_sim::{Action, Rule};
use roost_vim::wire::methods::CreateVmTask;
use roost_vim::wire::types::{OptionValue, VirtualMachineConfigSpec, VirtualMachineFileInfo};

use crate::lab::{LAB, Lab, MINUTE};

const OWNER: &str = "lab.owner";
const UUID: &str = "50000000-0000-4000-8000-000000000001";

#[derive(Debug)]
struct ByExtraConfig;

impl Recognise for ByExtraConfig {
    fn needs(&self) -> &[Need] {
        &[Need::InstanceUuid, Need::ExtraConfig(OWNER)]
    }

    fn recognise(&self, vm: &Marks<'_>) -> Option<Claim> {
        Some(Claim::of(LAB, vm.extra_config(OWNER)?))
    }
}

async fn fleet(lab: &Lab) -> Fleet {
    let doors: Vec<Arc<dyn Recognise>> = vec![Arc::new(ByExtraConfig)];
    let rules = FleetRules::default();
    let fleet = Fleet::over(lab.client.clone(), lab.clock.clone(), doors, None, rules);
    fleet.open_account(LAB, Limits::default(), AddressPlan::default());
    fleet.cover(&lab.find("/DC0"));
    let following = fleet.clone();
    tokio::spawn(async move { following.follow().await });
    assert!(fleet.mirror().wait_complete(MINUTE).await);
    fleet
}

fn reserve(fleet: &Fleet) -> Reservation {
    let ask = Ask {
        request: LAB.request("a"),
        name: Some("web-0".into()),
        amounts: Amounts::default(),
        pool: None,
        machine: Machine::Fresh { address: AddressNeed::Dhcp },
    };
    fleet.ledger().reserve(ask, fleet.now()).unwrap()
}

fn new(lab: &Lab) -> NewMachine<'static> {
    let files = VirtualMachineFileInfo {
        vm_path_name: Some("[LocalDS_0]".into()),
        ..VirtualMachineFileInfo::default()
    };
    let config = VirtualMachineConfigSpec {
        name: Some("web-0".into()),
        instance_uuid: Some(UUID.into()),
        guest_id: Some("otherGuest".into()),
        files: Some(files),
        num_cpus: Some(2),
        memory_mb: Some(512),
        extra_config: vec![OptionValue::text(OWNER, "us")],
        ..VirtualMachineConfigSpec::default()
    };
    let (this, pool) = (lab.find("/DC0/vm"), lab.find("/DC0/host/DC0_C0/Resources"));
    let by = MakeBy::Create(Box::new(CreateVmTask { this, config, pool, host: None }));
    let wrote = Wrote::new().extra_config(OWNER, "us").cpus(2).memory_mb(512).power(Power::Off);
    NewMachine {
        owner: Owner { door: LAB, name: "us" },
        name: "web-0",
        instance_uuid: UUID,
        by,
        wrote,
    }
}

#[tokio::test(start_paused = true)]
async fn a_vm_made_by_a_spec_is_seen_at_once_and_held() {
    let lab = Lab::new(0).await;
    let fleet = fleet(&lab).await;
    let mut reservation = reserve(&fleet);
    let hold = fleet.machines().make_vm(new(&lab), &mut reservation).await.unwrap();
    let row = fleet.mirror().vm(hold.vm()).unwrap();
    assert_eq!((&*row.name, row.instance_uuid.as_deref()), ("web-0", Some(UUID)));
    assert!(row.claim.is_some() && fleet.machines().is_held(hold.vm()));
    reservation.commit();
}

#[tokio::test(start_paused = true)]
async fn a_vm_whose_answer_was_lost_is_found_by_its_uuid_and_a_second_request_makes_no_second() {
    let lab = Lab::new(0).await;
    let fleet = fleet(&lab).await;
    let mut reservation = reserve(&fleet);
    let first = fleet.machines().make_vm(new(&lab), &mut reservation).await.unwrap();
    let vm = first.vm().clone();
    drop(first);
    // The name is taken, and by the VM of this very request.
    let again = fleet.machines().make_vm(new(&lab), &mut reservation).await.unwrap();
    assert_eq!(*again.vm(), vm);
    drop(again);
    lab.vcenter.faults().add(Rule::new("CreateVM_Task", Action::CutBefore).once());
    let after = fleet.machines().make_vm(new(&lab), &mut reservation).await.unwrap();
    assert_eq!(*after.vm(), vm);
    assert_eq!(lab.vcenter.vm_names().iter().filter(|name| *name == "web-0").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_has_surely_made_nothing() {
    let lab = Lab::new(0).await;
    let fleet = fleet(&lab).await;
    let rule = Rule::new("CreateVM_Task", Action::fail_task("NoDiskSpace", "full"));
    lab.vcenter.faults().add(rule.once());
    let mut reservation = reserve(&fleet);
    let failed = fleet.machines().make_vm(new(&lab), &mut reservation).await.unwrap_err();
    let NotMade { error, left } = failed;
    assert!(matches!(error, MachineError::NotMade(_)) && left.is_none(), "{error}");
    reservation.release();
}
