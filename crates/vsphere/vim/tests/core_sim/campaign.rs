//! Random trouble from a seed: whatever happens to the connection, a mirror that says that it is synced is right, and nothing
//! that exists was ever told to have left.

use std::collections::BTreeSet;
use std::time::Duration;

use roost_clock::Random;
use roost_vcenter_sim::{Action, Outage, Rule};
use roost_vim::wire::MoRef;
use roost_vim::wire::methods::{DestroyTask, PowerOffVmTask, PowerOnVmTask, RenameTask};
use roost_vim::{Client, TaskError};
use tokio::task::JoinSet;

use crate::lab::{Lab, vms};

/// One thing that happens to the server.
fn trouble(lab: &Lab, random: &mut Random) {
    let seconds = Duration::from_secs(random.below(90));
    let refuses = random.chance(0.5);
    let methods =
        ["WaitForUpdatesEx", "Create*", "ModifyListView", "CancelWaitForUpdates", "Login", "*"];
    let method = random.pick(&methods).copied().unwrap_or("*");
    let action = match random.below(10) {
        0 => return lab.vcenter.expire_sessions(),
        1 => return lab.vcenter.restart(Outage { lasts: seconds, refuses }),
        2 => Action::LoseSession,
        3 => Action::CutBefore,
        4 => Action::CutAfter,
        5 => Action::Hang,
        6 => Action::Delay(seconds),
        7 => Action::LateAnswer(seconds),
        8 => Action::Status(503),
        _ => Action::fault("InvalidCollectorVersion", ""),
    };
    lab.vcenter.faults().add(Rule::new(method, action).times(1 + random.below(2)));
}

/// One thing that someone does to a VM, and waits for. Whether it succeeds does not matter here.
async fn change(client: Client, roll: u64, this: MoRef, number: u64) {
    let submitted = match roll {
        0 => {
            if let Ok(off) = client.submit(&PowerOffVmTask { this: this.clone() }).await {
                let _ = off.wait().await;
            }
            client.submit(&DestroyTask { this }).await
        }
        1..=3 => client.submit(&PowerOffVmTask { this }).await,
        4..=6 => client.submit(&PowerOnVmTask { this, host: None }).await,
        _ => client.submit(&RenameTask { this, new_name: format!("renamed-{number}") }).await,
    };
    if let Ok(task) = submitted
        && let Err(error @ TaskError::Deadline { .. }) = task.wait().await
    {
        panic!("a task was lost sight of: {error}");
    }
}

async fn run(seed: u64) {
    let mut random = Random::from_seed(seed);
    let lab = Lab::new(vms(130)).await;
    let mut mirror = lab.watch().await;
    let mut maybe_destroyed = BTreeSet::new();
    let mut changes = JoinSet::new();
    for step in 0..60 {
        if random.chance(0.25) {
            trouble(&lab, &mut random);
        }
        let known: Vec<_> = mirror.objects.keys().cloned().collect();
        if let Some(vm) = random.pick(&known) {
            let roll = random.below(10);
            maybe_destroyed.extend((roll == 0).then(|| vm.clone()));
            changes.spawn(change(lab.client.clone(), roll, vm.clone(), step));
        }
        mirror.follow(Duration::from_secs(random.below(40))).await;
    }
    lab.vcenter.faults().clear();
    mirror.follow(Duration::from_mins(20)).await;
    while let Some(ended) = changes.try_join_next() {
        ended.unwrap();
    }
    assert!(changes.is_empty(), "{} callers still wait", changes.len());
    assert!(
        mirror.synced && mirror.subscription.status().synced,
        "{:?}",
        mirror.subscription.status()
    );
    assert_eq!(mirror.plain(), lab.read_vms().await);
    let false_leaves: Vec<_> = mirror.left.difference(&maybe_destroyed).collect();
    assert!(false_leaves.is_empty(), "{false_leaves:?}");

    // What was made by a call whose answer was lost, nobody can name; it ends with its session, and a session at its idle limit.
    drop((mirror, lab.client));
    tokio::time::sleep(Duration::from_mins(45)).await;
    let open = lab.vcenter.counters();
    assert_eq!(
        (open.open_sessions, open.open_collectors, open.open_views),
        (0, 0, 0),
        "left behind"
    );
}

#[tokio::test(start_paused = true)]
async fn a_synced_mirror_is_right_whatever_happened() {
    for seed in 0..24 {
        println!("seed {seed}");
        run(seed).await;
    }
}
