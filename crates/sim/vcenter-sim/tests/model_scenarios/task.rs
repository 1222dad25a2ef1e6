use std::time::Duration;

use roost_vcenter_sim::{Action, Options, Rule, Timings};
use roost_vim_wire::methods::{
    CancelTask, CreateCollectorForTasks, PowerOffVmTask, ReadNextTasks, ReconfigVmTask,
};
use roost_vim_wire::types::{TaskInfo, VirtualMachineConfigSpec};
use roost_vim_wire::{Element, MoRef};

use crate::story::{Story, instant, options};

fn note(vm: &MoRef, text: &str) -> ReconfigVmTask {
    let spec = VirtualMachineConfigSpec { annotation: Some(text.into()), ..Default::default() };
    ReconfigVmTask { this: vm.clone(), spec }
}

async fn info(story: &Story, task: &MoRef) -> TaskInfo {
    story.property(task, "info").await.unwrap().as_data::<TaskInfo>().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn a_task_tells_its_story() {
    let story = Story::start(options()).await;
    let task = story.clone_task("flat", "worker-1", story.linked().await).await.unwrap();
    let running = info(&story, &task).await;
    assert_eq!(running.state.as_str(), "running");
    assert_eq!(running.name.as_deref(), Some("CloneVM_Task"));
    assert_eq!(running.description_id, "VirtualMachine.clone");
    assert_eq!(running.entity_name.as_deref(), Some("flat"));
    assert_eq!(
        (running.reason.class.as_str(), running.reason.user_name.as_deref()),
        ("TaskReasonUser", Some("user"))
    );
    assert!(running.cancelable && running.start_time.is_some() && running.complete_time.is_none());
    let mut progress = Vec::new();
    while info(&story, &task).await.state.as_str() == "running" {
        progress.extend(info(&story, &task).await.progress);
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert!(
        progress.len() > 3 && progress.is_sorted() && progress.iter().all(|percent| *percent < 100),
        "{progress:?}"
    );
    let done = info(&story, &task).await;
    assert_eq!(done.result.unwrap().as_ref(), Some(&story.vm("worker-1").moref));
    assert!(done.complete_time > done.start_time && !done.cancelable && done.error.is_none());
    let events = story.lab.vcenter.events();
    let deployed = events.iter().find(|event| event.class == "VmDeployedEvent").unwrap();
    assert_eq!(deployed.chain_id, done.event_chain_id, "its events refer to it");
}

#[tokio::test(start_paused = true)]
async fn a_vm_is_worked_on_by_one_task_at_a_time() {
    let story = Story::start(options()).await;
    let vm = story.worker("worker-1").await;
    let first = story.client.call(note(&vm, "a")).await.unwrap();
    let second = story.client.call(PowerOffVmTask { this: vm.clone() }).await.unwrap();
    let refused = story.client.finish(&second).await.unwrap_err();
    assert_eq!(
        (refused.class.as_str(), refused.object("task").as_ref()),
        ("TaskInProgress", Some(&first))
    );
    story.client.finish(&first).await.unwrap();
    story.power_off(&vm).await.unwrap();
    let clone = story.clone_task("debian12", "worker-2", story.linked().await).await.unwrap();
    let template = story.vm_ref("debian12").await;
    assert_eq!(story.destroy(&template).await.unwrap_err().object("task").as_ref(), Some(&clone));
}

#[tokio::test(start_paused = true)]
async fn finished_tasks_fade_by_age_and_by_number() {
    let story = Story::start(instant()).await;
    let vm = story.clone_vm("debian12", "worker-1", story.linked().await).await.unwrap();
    let first = story.client.call(note(&vm, "first")).await.unwrap();
    story.client.finish(&first).await.unwrap();
    let recent = async || {
        let list = story.property(&vm, "recentTask").await.unwrap();
        list.refs().cloned().collect::<Vec<_>>()
    };
    assert_eq!(recent().await, std::slice::from_ref(&first));
    for index in 0..200 {
        let task = story.client.call(note(&vm, &index.to_string())).await.unwrap();
        story.client.finish(&task).await.unwrap();
    }
    assert_eq!(recent().await.len(), 200);
    assert!(!recent().await.contains(&first));
    let gone = story.client.call(CancelTask { this: first }).await.unwrap_err();
    assert_eq!(gone.class, "ManagedObjectNotFound");
    tokio::time::sleep(Duration::from_mins(9)).await;
    assert_eq!(recent().await.len(), 200);
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(recent().await, []);
    assert!(story.lab.vcenter.tasks().is_empty());
}

#[tokio::test(start_paused = true)]
async fn only_what_says_so_can_be_cancelled() {
    let story = Story::start(options()).await;
    let vm = story.worker("worker-1").await;
    let task = story.client.call(note(&vm, "a")).await.unwrap();
    assert_eq!(
        story.client.call(CancelTask { this: task.clone() }).await.unwrap_err().class,
        "NotSupported"
    );
    story.client.finish(&task).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_rule_makes_a_task_fail_after_its_time_without_a_trace() {
    let story = Story::start(Options { timings: Timings::realistic(), ..options() }).await;
    let rule =
        Rule::new("CloneVM_Task", Action::fail_task("SystemError", "the disk array hiccuped"))
            .once();
    story.lab.vcenter.faults().add(rule);
    let start = tokio::time::Instant::now();
    let refused = story.clone_vm("debian12", "worker-1", story.linked().await).await.unwrap_err();
    assert_eq!(refused.class, "SystemError");
    assert!(start.elapsed() >= Duration::from_secs(4));
    assert!(!story.has_vm("worker-1"));
    story.worker("worker-1").await;
}

#[tokio::test(start_paused = true)]
async fn a_collector_reads_tasks_by_entity_and_state() {
    let story = Story::start(instant()).await;
    let vm = story.worker("worker-1").await;
    assert!(story.power_on(&vm).await.is_err());
    let by_vm =
        Element::new("entity").with_field("entity", &vm).with(Element::leaf("recursion", "self"));
    let filter = Element::new("filter").with(by_vm).with(Element::leaf("state", "error"));
    let this = story.client.content.task_manager.clone().unwrap();
    let collector = story.client.call(CreateCollectorForTasks { this, filter }).await.unwrap();
    let read = || story.client.call(ReadNextTasks { this: collector.clone(), max_count: 10 });
    let found = read().await.unwrap();
    assert_eq!(
        found.iter().filter_map(|task| task.name.as_deref()).collect::<Vec<_>>(),
        ["PowerOnVM_Task"]
    );
    assert!(read().await.unwrap().is_empty());
    let page = story.property(&collector, "latestPage").await.unwrap();
    assert_eq!(page.data_items::<TaskInfo>().count(), 1);
}
