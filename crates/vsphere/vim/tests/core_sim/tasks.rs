use std::time::Duration;

use roost_vcenter_sim::{Action, Outage, Rule};
use roost_vim::wire::methods::{CloneVmTask, PowerOffVmTask, PowerOnVmTask, RenameTask};
use roost_vim::wire::types::{TaskInfoState, VirtualMachineCloneSpec};
use roost_vim::wire::{MoRef, MoType};
use roost_vim::{Faulted, Remedy, TaskError};
use tokio::time::{Instant, sleep};

use crate::lab::{Lab, options, vms};

fn vm(lab: &Lab, index: usize) -> MoRef {
    lab.vcenter.find(&format!("/DC0/vm/DC0_C0_RP0_VM{index}")).unwrap()
}

fn rename(lab: &Lab, index: usize) -> RenameTask {
    RenameTask { this: vm(lab, index), new_name: format!("renamed-{index}") }
}

#[tokio::test(start_paused = true)]
async fn a_task_ends_with_its_result_or_its_fault() {
    let lab = Lab::new(options()).await;
    let this = vm(&lab, 0);
    let off = lab.client.submit(&PowerOffVmTask { this: this.clone() }).await.unwrap();
    assert_eq!(off.wait().await.unwrap(), None);
    let again = lab.client.submit(&PowerOffVmTask { this: this.clone() }).await.unwrap();
    let error = again.wait().await.unwrap_err();
    assert!(error.power_state_reached() && error.remedy() == Remedy::Wait, "{error}");
    let datacenter = lab.vcenter.find("/DC0/vm").unwrap();
    let spec = VirtualMachineCloneSpec::default();
    let clone = CloneVmTask { this, folder: datacenter, name: "copy".into(), spec };
    let made = lab.client.submit(&clone).await.unwrap().wait().await.unwrap().unwrap();
    assert_eq!(made.as_ref(), lab.vcenter.find("/DC0/vm/copy").as_ref());
}

#[tokio::test(start_paused = true)]
async fn many_tasks_are_followed_at_once_over_few_calls() {
    let lab = Lab::new(vms(100)).await;
    // One goes first, so that the list is there.
    lab.client.submit(&rename(&lab, 0)).await.unwrap().wait().await.unwrap();
    lab.vcenter.reset_counters();
    let tasks = (1..100).map(|index| {
        let (client, call) = (lab.client.clone(), rename(&lab, index));
        tokio::spawn(async move { client.submit(&call).await.unwrap().wait().await })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap().unwrap();
    }
    let counters = lab.vcenter.counters();
    assert_eq!(counters.calls_of("Rename_Task"), 99);
    assert!(counters.calls_of("ModifyListView") <= 3, "{:?}", counters.calls);
    assert_eq!(counters.calls_of("RetrievePropertiesEx"), 0, "nothing is polled");
    assert_eq!(counters.open_collectors, 1);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_has_ended_before_anyone_follows_it_is_known() {
    let lab = Lab::new(options()).await;
    let task = lab.client.submit(&rename(&lab, 0)).await.unwrap();
    sleep(Duration::from_mins(1)).await;
    let started = Instant::now();
    task.wait().await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn several_may_follow_one_task() {
    let lab = Lab::new(options()).await;
    let task = lab.client.submit(&rename(&lab, 0)).await.unwrap();
    let others: Vec<_> = (0..3).map(|_| lab.client.observer().task(task.moref().clone())).collect();
    task.wait().await.unwrap();
    for other in others {
        other.wait().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn progress_is_visible() {
    let lab = Lab::new(options()).await;
    let folder = lab.vcenter.find("/DC0/vm").unwrap();
    let clone = CloneVmTask {
        this: vm(&lab, 0),
        folder,
        name: "copy".into(),
        spec: VirtualMachineCloneSpec::default(),
    };
    let task = lab.client.submit(&clone).await.unwrap();
    let mut progress = task.progress();
    let watcher = tokio::spawn(async move {
        let mut seen = Vec::new();
        while progress.changed().await.is_ok() {
            seen.push(progress.borrow_and_update().clone());
        }
        seen
    });
    task.wait().await.unwrap();
    let seen = watcher.await.unwrap();
    let percents: Vec<_> = seen.iter().filter_map(|progress| progress.percent).collect();
    assert!(percents.len() >= 2 && percents.is_sorted(), "{seen:?}");
    assert!(seen.iter().any(|progress| progress.state == Some(TaskInfoState::Running)), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_task_can_be_cancelled_if_the_server_lets_it() {
    let lab = Lab::new(options()).await;
    let folder = lab.vcenter.find("/DC0/vm").unwrap();
    let clone = CloneVmTask {
        this: vm(&lab, 0),
        folder,
        name: "copy".into(),
        spec: VirtualMachineCloneSpec::default(),
    };
    let task = lab.client.submit(&clone).await.unwrap();
    task.cancel(&lab.client).await.unwrap();
    let error = task.wait().await.unwrap_err();
    assert!(error.is_cancelled() && error.remedy() == Remedy::GiveUp, "{error}");

    let task = lab.client.submit(&rename(&lab, 1)).await.unwrap();
    let refused = task.cancel(&lab.client).await.unwrap_err();
    assert!(refused.fault().is_some(), "{refused}");
    task.wait().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_task_that_never_ends_is_given_up_at_its_deadline() {
    let lab = Lab::new(options()).await;
    lab.vcenter.faults().add(Rule::new("Rename_Task", Action::HangTask));
    let started = Instant::now();
    let error = lab.client.submit(&rename(&lab, 0)).await.unwrap().wait().await.unwrap_err();
    assert!(matches!(error, TaskError::Deadline { .. }) && error.outcome_unknown(), "{error}");
    assert_eq!(started.elapsed().as_secs(), 600);
    let task =
        lab.client.submit(&rename(&lab, 1)).await.unwrap().with_deadline(Duration::from_secs(5));
    let started = Instant::now();
    task.wait().await.unwrap_err();
    assert_eq!(started.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_does_not_exist_has_vanished() {
    let lab = Lab::new(options()).await;
    let task = lab.client.task(MoRef::new(MoType::Task, "task-404"));
    let error = task.wait().await.unwrap_err();
    assert!(matches!(error, TaskError::Vanished { .. }), "{error}");
    assert_eq!(error.remedy(), Remedy::Gone);
    // And when the list is there already.
    let running = lab.client.submit(&rename(&lab, 0)).await.unwrap();
    let error = lab.client.task(MoRef::new(MoType::Task, "task-405")).wait().await.unwrap_err();
    assert!(matches!(error, TaskError::Vanished { .. }), "{error}");
    running.wait().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn tasks_are_not_lost_with_the_session() {
    let lab = Lab::new(vms(20)).await;
    lab.vcenter
        .faults()
        .add(Rule::new("PowerOffVM_Task", Action::DelayTask(Duration::from_mins(2))));
    let tasks = (0..20).map(|index| {
        let (client, this) = (lab.client.clone(), vm(&lab, index));
        tokio::spawn(
            async move { client.submit(&PowerOffVmTask { this }).await.unwrap().wait().await },
        )
    });
    let tasks: Vec<_> = tasks.collect();
    for _ in 0..3 {
        sleep(Duration::from_secs(20)).await;
        lab.vcenter.expire_sessions();
    }
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert!((2..=4).contains(&lab.vcenter.counters().logins));
}

#[tokio::test(start_paused = true)]
async fn tasks_that_outlive_a_restart_are_followed_to_an_end() {
    let lab = Lab::new(vms(5)).await;
    lab.vcenter
        .faults()
        .add(Rule::new("PowerOffVM_Task", Action::DelayTask(Duration::from_mins(1))));
    let task = lab.client.submit(&PowerOffVmTask { this: vm(&lab, 0) }).await.unwrap();
    let waiting = tokio::spawn(task.wait());
    sleep(Duration::from_secs(5)).await;
    lab.vcenter.restart(Outage { lasts: Duration::from_secs(30), refuses: true });
    let started = Instant::now();
    // Whether the server finishes, fails or forgets it is the server's affair; the waiter hears of it.
    match waiting.await.unwrap() {
        Ok(_) | Err(TaskError::Failed { .. } | TaskError::Vanished { .. }) => {}
        Err(other) => panic!("{other}"),
    }
    assert!(started.elapsed() < Duration::from_mins(4), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_list_view_that_is_not_announced_is_read() {
    let lab = Lab::new(options()).await;
    lab.client.submit(&rename(&lab, 0)).await.unwrap().wait().await.unwrap();
    // The stream hears nothing for a while: each wait hangs.
    lab.vcenter.faults().add(Rule::new("WaitForUpdatesEx", Action::Hang).times(3));
    let off = PowerOffVmTask { this: vm(&lab, 1) };
    lab.client.submit(&off).await.unwrap().wait().await.unwrap();
    let on = PowerOnVmTask { this: vm(&lab, 1), host: None };
    let started = Instant::now();
    lab.client.submit(&on).await.unwrap().wait().await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
}
