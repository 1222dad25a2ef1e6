use std::time::Duration;

use roost_vim::wire::MoRef;
use roost_vim::wire::methods::CurrentTime;
use roost_vim::{CallError, WatchSpec};
use tokio::time::{sleep, timeout};

use crate::script::{Answer, Script, connect, connect_with, fault, logged_in, settings, settle};

fn now() -> CurrentTime {
    CurrentTime { this: MoRef::service_instance() }
}

#[tokio::test(start_paused = true)]
async fn shutdown_logs_out_and_other_handles_refuse_to_work() {
    let script = Script::new(|_| None);
    let client = connect(&script).await;
    let (observer, other) = (client.observer(), client.clone());
    client.shutdown().await;
    assert_eq!(script.count("Logout"), 1);
    assert!(matches!(observer.read(&now()).await, Err(CallError::ShuttingDown)));
    let spec = WatchSpec::object(MoRef::vm("vm-1"), &["name"]);
    assert!(matches!(observer.watch(spec).await, Err(CallError::ShuttingDown)));
    other.shutdown().await;
    drop(observer);
    sleep(Duration::from_hours(1)).await;
    assert_eq!(
        (script.count("Logout"), script.count("Login"), script.count("CurrentTime")),
        (1, 1, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_logs_out() {
    let script = Script::new(|_| None);
    let client = connect(&script).await;
    let observer = client.observer();
    drop(client);
    settle().await;
    assert_eq!(script.count("Logout"), 0, "a handle is left");
    drop(observer);
    settle().await;
    let logout = script.log().pop().unwrap();
    assert_eq!(
        (logout.method.as_str(), logout.cookie.as_deref()),
        ("Logout", Some("vmware_soap_session=s=1"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_connect_that_is_dropped_while_it_logs_in_leaves_no_session() {
    let script = Script::new(|incoming| match incoming.method.as_str() {
        "Login" => Some(Answer::After(Duration::from_secs(5), Box::new(logged_in("late")))),
        _ => None,
    });
    let connecting = connect_with(&script, settings());
    assert!(timeout(Duration::from_secs(1), connecting).await.is_err());
    sleep(Duration::from_secs(30)).await;
    let logout = script.log().into_iter().find(|incoming| incoming.method == "Logout").unwrap();
    assert_eq!(logout.cookie.as_deref(), Some("vmware_soap_session=late"));
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_is_dropped_while_all_log_in_again_leaves_one_session() {
    let script = Script::new(|incoming| match incoming.method.as_str() {
        "Login" if incoming.before > 0 => {
            Some(Answer::After(Duration::from_secs(5), Box::new(logged_in("s=2"))))
        }
        "CurrentTime" if incoming.cookie.as_deref() == Some("vmware_soap_session=s=1") => {
            fault("NotAuthenticated")
        }
        _ => None,
    });
    let client = connect(&script).await;
    assert!(timeout(Duration::from_secs(1), client.read(&now())).await.is_err());
    sleep(Duration::from_secs(10)).await;
    client.read(&now()).await.unwrap();
    assert_eq!(script.count("Login"), 2, "the second caller uses the session of the first");
    client.shutdown().await;
    let mut ended: Vec<_> = script
        .log()
        .into_iter()
        .filter(|it| it.method == "Logout")
        .map(|it| it.cookie.unwrap())
        .collect();
    ended.sort();
    assert_eq!(ended, ["vmware_soap_session=s=1", "vmware_soap_session=s=2"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_the_logout_does_not_hold_the_shutdown() {
    let script = Script::new(|incoming| (incoming.method == "Logout").then_some(Answer::Hang));
    let client = connect(&script).await;
    timeout(Duration::from_secs(11), client.shutdown()).await.unwrap();
}
