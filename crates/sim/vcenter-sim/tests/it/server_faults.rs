//! Faults by rule, seen from the client's side.

use std::io::ErrorKind;
use std::time::Duration;

use crate::lab::{Client, Lab};
use roost_vcenter_sim::{Action, Outage, Rule, When};
use roost_vim_wire::methods::{CreateFolder, CurrentTime, RenameTask, StartProgramInGuest};
use roost_vim_wire::types::{PropertyFilterSpec, PropertySpec};
use roost_vim_wire::{Fault, LocalizedMethodFault, MoRef};
use tokio::time::{Instant, sleep, timeout};

fn ask() -> CurrentTime {
    CurrentTime { this: MoRef::service_instance() }
}

async fn folder_names(client: &Client) -> Vec<String> {
    let view = client.view("Folder").await;
    client.names(&view, "Folder").await
}

#[tokio::test(start_paused = true)]
async fn a_call_is_refused_with_the_fault_of_the_rule() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let fault = Fault::of("NoDiskSpace").with("datastore", &"LocalDS_0".to_owned());
    let rule = Rule::new("CurrentTime", Action::Fault(LocalizedMethodFault::new(fault, "full")))
        .when(When::Nth(2));
    let id = lab.vcenter.faults().add(rule);
    client.call(ask()).await.unwrap();
    let fault = client.call(ask()).await.unwrap_err();
    assert_eq!((fault.class.as_str(), fault.text("datastore")), ("NoDiskSpace", Some("LocalDS_0")));
    client.call(ask()).await.unwrap();
    assert_eq!(lab.vcenter.faults().fired(id), 1);
    assert!(lab.vcenter.faults().remove(id) && !lab.vcenter.faults().remove(id));
}

#[tokio::test(start_paused = true)]
async fn a_rule_can_name_an_object_by_id_name_or_the_name_it_will_have() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    let parent = client.find("/DC0/vm").await;
    let refuse = |object: &str| {
        lab.vcenter.faults().clear();
        lab.vcenter
            .faults()
            .add(Rule::new("*", Action::fault("Timedout", "too slow")).object(object));
    };
    let rename = || RenameTask { this: vm.clone(), new_name: "DC0_H0_VM0".into() };
    for object in [&*vm.id, "DC0_H0_VM?"] {
        refuse(object);
        assert_eq!(client.call(rename()).await.unwrap_err().class, "Timedout", "{object}");
        client.call(ask()).await.unwrap();
    }
    refuse("worker-*");
    let named = |name: &str| CreateFolder { this: parent.clone(), name: name.into() };
    assert_eq!(client.call(named("worker-1")).await.unwrap_err().class, "Timedout");
    client.call(named("other")).await.unwrap();
    refuse("DC0_H0_VM0");
    let start = StartProgramInGuest { this: MoRef::vm("x"), vm, ..StartProgramInGuest::default() };
    assert_eq!(
        client.call(start).await.unwrap_err().class,
        "Timedout",
        "the VM that a guest call is about"
    );
}

#[tokio::test(start_paused = true)]
async fn a_status_comes_without_a_vim25_body() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    lab.vcenter.faults().add(Rule::new("CurrentTime", Action::Status(502)).once());
    assert_eq!(client.call(ask()).await.unwrap_err().class, "Http502");
    client.call(ask()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_hung_call_never_answers_and_is_never_carried_out() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let parent = client.find("/DC0/vm").await;
    lab.vcenter.faults().add(Rule::new("CreateFolder", Action::Hang).once());
    let call = client.call(CreateFolder { this: parent, name: "hung".into() });
    assert!(timeout(Duration::from_hours(10), call).await.is_err());
    assert!(!folder_names(&lab.login().await).await.contains(&"hung".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_cut_connection_leaves_open_whether_the_call_was_carried_out() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let parent = client.find("/DC0/vm").await;
    for (action, name, is_done) in
        [(Action::CutBefore, "before", false), (Action::CutAfter, "after", true)]
    {
        lab.vcenter.faults().add(Rule::new("CreateFolder", action).once());
        let call = CreateFolder { this: parent.clone(), name: name.into() };
        assert_eq!(client.try_call(call).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert_eq!(folder_names(&client).await.contains(&name.to_owned()), is_done, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_delayed_call_is_carried_out_late_and_a_late_answer_was_carried_out_at_once() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let parent = client.find("/DC0/vm").await;
    let minute = Duration::from_mins(1);
    for (action, name, is_there_meanwhile) in
        [(Action::Delay(minute), "delayed", false), (Action::LateAnswer(minute), "late", true)]
    {
        lab.vcenter.faults().add(Rule::new("CreateFolder", action).once());
        let start = Instant::now();
        let call = tokio::spawn({
            let (client, call) =
                (client.clone(), CreateFolder { this: parent.clone(), name: name.into() });
            async move { client.call(call).await }
        });
        sleep(minute / 2).await;
        assert_eq!(
            folder_names(&client).await.contains(&name.to_owned()),
            is_there_meanwhile,
            "{name}"
        );
        call.await.unwrap().unwrap();
        assert_eq!(start.elapsed(), minute);
        assert!(folder_names(&client).await.contains(&name.to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_session_is_lost_before_the_call() {
    let lab = Lab::default().await;
    let (client, other) = (lab.login().await, lab.login().await);
    lab.vcenter.faults().add(Rule::new("CurrentTime", Action::LoseSession).once());
    assert_eq!(client.call(ask()).await.unwrap_err().class, "NotAuthenticated");
    other.call(ask()).await.unwrap();
    assert_eq!(lab.vcenter.counters().open_sessions, 1);
}

#[tokio::test(start_paused = true)]
async fn a_restart_cuts_everybody_off_and_keeps_the_inventory() {
    let lab = Lab::default().await;
    let (client, mut other) = (lab.login().await, lab.login().await);
    let parent = client.find("/DC0/vm").await;
    client.create_folder(&parent, "kept").await;
    let waiting = tokio::spawn({
        let client = other.clone();
        let this = client.collector();
        async move {
            client
                .try_call(roost_vim_wire::methods::WaitForUpdatesEx {
                    this,
                    version: None,
                    options: None,
                })
                .await
        }
    });
    sleep(Duration::from_secs(1)).await;
    let outage = Outage { lasts: Duration::from_mins(2), refuses: true };
    lab.vcenter.faults().add(Rule::new("CurrentTime", Action::Restart(outage)).once());
    assert_eq!(client.try_call(ask()).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(waiting.await.unwrap().unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(client.try_call(ask()).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    sleep(Duration::from_mins(2)).await;
    assert_eq!(client.call(ask()).await.unwrap_err().class, "NotAuthenticated");
    other.cookie = None;
    other.log_in("user", "pass").await.unwrap();
    assert!(folder_names(&other).await.contains(&"kept".to_owned()));
    lab.vcenter.restart(Outage { lasts: Duration::from_secs(5), refuses: false });
    assert_eq!(lab.anonymous().log_in("user", "pass").await.unwrap_err().fault.class, "Http503");
    sleep(Duration::from_secs(5)).await;
    lab.login().await;
}

#[tokio::test(start_paused = true)]
async fn lists_can_be_empty_or_of_earlier() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let parent = client.find("/DC0/vm").await;
    let stale = lab.vcenter.faults().add(Rule::new("RetrieveProperties*", Action::StaleList));
    let added = client.create_folder(&parent, "new").await;
    let view = client.view("Folder").await;
    assert!(
        !client.names(&view, "Folder").await.contains(&"new".to_owned()),
        "as it was when the rule was made"
    );
    let direct = PropertyFilterSpec {
        prop_set: vec![PropertySpec::new("Folder", &["name"])],
        ..crate::lab::of_object(&added, &[])
    };
    assert_eq!(client.read_all(direct).await.unwrap_err().class, "ManagedObjectNotFound");
    lab.vcenter.faults().remove(stale);
    assert!(client.names(&view, "Folder").await.contains(&"new".to_owned()));
    lab.vcenter.faults().add(Rule::new("RetrieveProperties*", Action::EmptyList).once());
    assert_eq!(client.names(&view, "Folder").await, [""; 0]);
    assert!(client.names(&view, "Folder").await.contains(&"new".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_task_fails_while_its_call_succeeds() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    lab.vcenter.faults().add(
        Rule::new("Rename_Task", Action::fail_task("InsufficientResourcesFault", "full")).once(),
    );
    let rename = || RenameTask { this: vm.clone(), new_name: "renamed".into() };
    let task = client.call(rename()).await.unwrap();
    assert_eq!(client.finish(&task).await.unwrap_err().class, "InsufficientResourcesFault");
    let task = client.call(rename()).await.unwrap();
    client.finish(&task).await.unwrap();
    assert_eq!(client.find("/DC0/vm/renamed").await, vm);
}

#[tokio::test(start_paused = true)]
async fn transfers_are_calls_too() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let path = "/folder/iso/boot.iso?dcPath=DC0&dsName=LocalDS_0";
    lab.vcenter.faults().add(Rule::new("PUT /folder", Action::CutBefore).object("iso/*").once());
    assert_eq!(client.http("PUT", path, "x").await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    lab.vcenter.faults().add(Rule::new("* /folder", Action::Status(507)).once());
    assert_eq!(client.http("PUT", path, "x").await.unwrap().0, 507);
    assert_eq!(lab.vcenter.counters().calls_of("PUT /folder"), 2);
}
