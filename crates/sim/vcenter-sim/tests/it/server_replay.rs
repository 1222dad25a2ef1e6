//! The same seed and the same calls are the same run, to the byte.

use std::time::Duration;

use crate::lab::Lab;
use http_body_util::BodyExt as _;
use roost_vcenter_sim::{Action, Options, Rule, When};
use roost_vim_wire::methods::{
    CreateFilter, CreateFolder, QueryEvents, RenameTask, WaitForUpdatesEx,
};
use roost_vim_wire::types::{EventFilterSpec, PropertyFilterSpec, PropertySpec};
use roost_vim_wire::{Method, encode_request};

/// Every answer of a run with faults, power changes and a watcher.
async fn transcript(seed: u64) -> Vec<String> {
    let lab = Lab::start(Options { seed, ..Options::default() }).await;
    let client = lab.login().await;
    let chance = Rule::new("CreateFolder", Action::fault("Timedout", "")).when(When::Chance(0.5));
    lab.vcenter.faults().add(chance);
    let view = client.view("ManagedEntity").await;
    let spec =
        PropertyFilterSpec::of_view(&view, vec![PropertySpec::new("ManagedEntity", &["name"])]);
    let filter = CreateFilter { this: client.collector(), spec, partial_updates: false };
    client.call(filter).await.unwrap();
    let mut answers = Vec::new();
    let parent = client.find("/DC0/vm").await;
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    let mut version = None;
    for step in 0..10 {
        let name = format!("step-{step}");
        answers
            .push(raw(&client, &CreateFolder { this: parent.clone(), name: name.clone() }).await);
        answers.push(raw(&client, &RenameTask { this: vm.clone(), new_name: name }).await);
        tokio::time::sleep(Duration::from_secs(30)).await;
        let wait =
            WaitForUpdatesEx { this: client.collector(), version: version.clone(), options: None };
        version = Some(client.call(wait.clone()).await.unwrap().unwrap().version);
        answers.push(
            raw(
                &client,
                &QueryEvents {
                    this: client.content.event_manager.clone().unwrap(),
                    filter: EventFilterSpec::default(),
                },
            )
            .await,
        );
    }
    answers.push(
        raw(&client, &WaitForUpdatesEx { this: client.collector(), version: None, options: None })
            .await,
    );
    answers
}

async fn raw<M: Method>(client: &crate::lab::Client, call: &M) -> String {
    let response = client.send(encode_request(call, None)).await.unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8_lossy(&body).into_owned()
}

#[tokio::test(start_paused = true)]
async fn one_seed_replays_exactly_and_another_differs() {
    let first = transcript(11).await;
    let again = transcript(11).await;
    for (number, (one, two)) in first.iter().zip(&again).enumerate() {
        assert_eq!(one, two, "answer {number}");
    }
    assert_ne!(first, transcript(12).await);
}
