//! Work that is cut short when the lease goes to somebody else.

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Patch, PatchParams};
use roost_clock::Clock as _;
use roost_controller::LeaseSettings;
use roost_vcenter_sim::{Action, Rule};
use serde_json::json;
use tokio::time::sleep;

use crate::lab::{Lab, NAMESPACE, secs, vm};

const LEASE: &str = "vmoperator-controller-manager-runtime";

/// The request may or may not have been taken. A step that counted as running for ever would keep the VM from every other one.
#[tokio::test(start_paused = true)]
async fn a_lease_that_is_lost_in_the_middle_of_a_request_leaves_nothing_running() {
    let mut lab = Lab::idle().await;
    lab.settings.lease = Some(LeaseSettings::new(NAMESPACE, LEASE, "one"));
    lab.start();
    let rule = Rule::new("PowerOnVM_Task", Action::Delay(secs(60)));
    lab.site.vcenter.faults().add(rule.once());
    lab.apply(&vm("web-0")).await;
    let asked = || lab.site.vcenter.counters().calls_of("PowerOnVM_Task") > 0;
    for _ in 0..6_000 {
        if asked() {
            break;
        }
        sleep(secs(1) / 10).await;
    }
    assert!(asked(), "the request is under way");
    let taken = json!({ "spec": { "holderIdentity": "two", "renewTime": lab.site.clock.now(), "leaseDurationSeconds": 15 } });
    let leases = lab.api::<Lease>();
    leases.patch(LEASE, &PatchParams::default(), &Patch::Merge(taken)).await.unwrap();
    // The other one does nothing and does not renew it.
    lab.until_on("web-0").await;
    let holder = leases.get(LEASE).await.unwrap().spec.unwrap().holder_identity;
    assert_eq!(holder.as_deref(), Some("one"), "it has the lease again");
}
