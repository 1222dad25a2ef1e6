//! The roles that are made from needs: enough for the door, and no more than it uses.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use roost_controller::rbac::{Audit, Need, Needs, Verb, Verdict};
use roost_controller::{ControllerSettings, LeaseSettings};
use roost_kube_sim::{Action, Rule, When};
use serde_json::json;
use tokio::time::sleep;

use crate::lab::{Lab, secs};
use crate::toy::{Toy, toy};

/// What the toy door ships.
pub(crate) fn needs() -> Needs {
    Needs::new([
        Need::on::<Toy>(Verb::READ),
        Need::on::<Toy>(&[Verb::Patch]),
        Need::on_status::<Toy>(&[Verb::Patch]),
        Need::on::<Secret>(Verb::READ),
    ])
    .with_runtime("toys")
}

/// The toy door under a role, through everything that it does: objects that come, change and go, also while it is blind.
async fn run(needs: Needs) -> (Option<i64>, Verdict) {
    let lab = Lab::new().await;
    let audit = Audit::grant(&lab.client, needs, "toys", "default").await.unwrap();
    let lease = LeaseSettings::new("default", "toys", "one");
    let replica = lab.replica_with(audit.client(), ControllerSettings::default(), Some(lease));
    let secrets: Api<Secret> = Api::namespaced(lab.client.clone(), "default");
    let metadata = ObjectMeta { name: Some("s".to_owned()), ..ObjectMeta::default() };
    let secret = Secret { metadata, ..Secret::default() };
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    for name in ["a", "b"] {
        lab.create(&toy(name, 3)).await;
    }
    sleep(secs(20)).await;
    lab.patch("a", json!({"spec": {"size": 4}})).await;
    sleep(secs(60)).await;
    // What goes while the watches are cut, and their history with it, is asked for by name.
    lab.sim.add_rule(Rule {
        verb: "watch".to_owned(),
        when: When { times: Some(20), ..When::default() },
        action: Action::WatchGone { after: 0 },
        ..Rule::default()
    });
    lab.sim.cut_watches();
    let uid = lab.get("b").await.metadata.uid.unwrap();
    lab.world.inside().may_delete.insert(uid);
    lab.patch("b", json!({"metadata": {"finalizers": []}})).await;
    lab.toys().delete("b", &DeleteParams::default()).await.unwrap();
    secrets.delete("s", &DeleteParams::default()).await.unwrap();
    sleep(Duration::from_mins(5)).await;
    let size = lab.get("a").await.status.map(|status| status.size);
    replica.stop().await;
    (size, audit.verdict())
}

#[tokio::test(start_paused = true)]
async fn the_role_made_from_needs_is_enough_and_used() {
    let (size, verdict) = run(needs()).await;
    assert_eq!(size, Some(4));
    verdict.assert_exact();
}

#[tokio::test(start_paused = true)]
async fn a_need_that_is_missing_or_too_much_is_told() {
    let watched = [Need::on::<Toy>(Verb::READ), Need::on::<Secret>(Verb::READ)];
    let too_little = Needs::new(watched.clone())
        .and(Needs::new([Need::on::<Toy>(&[Verb::Patch, Verb::Delete])]))
        .with_runtime("toys");
    let (size, verdict) = run(too_little).await;
    assert_eq!(size, None, "the status may not be written");
    assert!(verdict.refused.contains(&"patch toys/status.toys.example.com".to_owned()));
    assert!(verdict.unused.contains(&"delete toys.toys.example.com".to_owned()));
}
