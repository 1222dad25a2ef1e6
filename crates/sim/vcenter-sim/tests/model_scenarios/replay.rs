use roost_vcenter_sim::Options;
use roost_vim_wire::types::VirtualMachineCloneSpec;

use crate::story::{Story, customization, options};

/// Three clones at once, then what follows, as one text per event.
async fn run(seed: u64) -> Vec<String> {
    let story = Story::start(Options { seed, ..options() }).await;
    let mut tasks = Vec::new();
    for index in 0..3 {
        let spec = VirtualMachineCloneSpec {
            customization: Some(customization(None)),
            power_on: true,
            ..story.linked().await
        };
        tasks.push(story.clone_task("debian12", &format!("worker-{index}"), spec).await.unwrap());
    }
    for task in &tasks {
        story.client.finish(task).await.unwrap();
    }
    for index in 0..3 {
        story.until_ready(&format!("worker-{index}")).await;
    }
    let vm = story.vm_ref("worker-1").await;
    story.client.rename(&vm, "worker-9").await;
    story.power_off(&vm).await.unwrap();
    story.destroy(&vm).await.unwrap();
    let events = story.lab.vcenter.events();
    let line = |event: &roost_vim_wire::types::Event| {
        let message = event.full_formatted_message.as_deref().unwrap_or_default();
        format!("{} {} {} {message}", event.key, event.created_time, event.class)
    };
    let mut lines: Vec<String> = events.iter().map(line).collect();
    lines.extend(story.lab.vcenter.vm("worker-0").map(|vm| format!("{vm:?}")));
    lines
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_and_calls_are_the_same_run() {
    let first = run(7).await;
    assert_eq!(first, run(7).await);
    assert_ne!(first, run(8).await);
}
