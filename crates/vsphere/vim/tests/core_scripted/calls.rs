use std::sync::{Arc, Mutex};
use std::time::Duration;

use roost_vim::wire::methods::{
    CancelRetrievePropertiesEx, ContinueRetrievePropertiesEx, CurrentTime, ListProcessesInGuest,
    PowerOnVmTask, RetrievePropertiesEx,
};
use roost_vim::wire::types::{
    DynamicProperty, MissingProperty, ObjectContent, PropertyFilterSpec, RetrieveResult,
};
use roost_vim::wire::{Fault, LocalizedMethodFault, MoRef, MoType, Value, encode_reply};
use roost_vim::{CallClass, CallError, CallRecord, Deadlines, Faulted, Hooks, Outcome, Remedy};
use tokio::time::{Instant, sleep, timeout};

use crate::script::{
    Answer, Script, connect, connect_with, fault, logged_in, reply, settings, settle,
};

fn now() -> CurrentTime {
    CurrentTime { this: MoRef::service_instance() }
}

fn power_on() -> PowerOnVmTask {
    PowerOnVmTask { this: MoRef::vm("vm-1"), host: None }
}

#[tokio::test(start_paused = true)]
async fn a_change_is_replayed_only_when_the_server_said_that_it_did_nothing() {
    for (case, answer, sent, outcome_unknown) in [
        ("session gone", (|| fault("NotAuthenticated")) as fn() -> Option<Answer>, 2, None),
        ("connection lost", || Some(Answer::Cut), 1, Some(true)),
        ("gateway trouble", || Some(Answer::Status(502)), 1, Some(true)),
        ("no answer", || Some(Answer::Hang), 1, Some(true)),
        ("never connected", || Some(Answer::Refused), 1, Some(false)),
    ] {
        let script = Script::new(move |incoming| match incoming.method.as_str() {
            "PowerOnVM_Task" if incoming.before == 0 => answer(),
            "PowerOnVM_Task" => reply::<PowerOnVmTask>(&MoRef::new(MoType::Task, "task-1")),
            _ => None,
        });
        let client = connect(&script).await;
        let result = client.submit(&power_on()).await;
        assert_eq!(script.count("PowerOnVM_Task"), sent, "{case}");
        assert_eq!(result.err().map(|error| error.outcome_unknown()), outcome_unknown, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_is_repeated_until_its_deadline() {
    for (case, answer) in [
        ("connection lost", (|| Some(Answer::Cut)) as fn() -> Option<Answer>),
        ("never connected", || Some(Answer::Refused)),
        ("bad gateway", || Some(Answer::Status(502))),
        ("starting", || Some(Answer::Status(503))),
        ("half an answer", || {
            Some(Answer::Body(b"<Envelope><Body><CurrentTimeResponse>".to_vec()))
        }),
    ] {
        let script = Script::new(move |incoming| match incoming.method.as_str() {
            "CurrentTime" if incoming.before < 3 => answer(),
            _ => None,
        });
        let client = connect(&script).await;
        client.read(&now()).await.unwrap();
        assert_eq!(script.count("CurrentTime"), 4, "{case}");

        let script =
            Script::new(move |incoming| (incoming.method == "CurrentTime").then(answer).flatten());
        let client = connect(&script).await;
        let started = Instant::now();
        let error = client.read(&now()).await.unwrap_err();
        assert!(started.elapsed() <= Duration::from_secs(15), "{case}: {:?}", started.elapsed());
        assert!(matches!(error.remedy(), Remedy::Retry | Remedy::Wait), "{case}: {error}");
        assert!(script.count("CurrentTime") < 12, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_fault_is_not_repeated() {
    let script = Script::new(|incoming| {
        (incoming.method == "CurrentTime").then(|| fault("NoPermission")).flatten()
    });
    let client = connect(&script).await;
    let error = client.read(&now()).await.unwrap_err();
    assert!(error.is_fault("SecurityError"), "{error}");
    assert_eq!((script.count("CurrentTime"), script.count("Login")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn each_class_of_call_has_its_own_deadline() {
    let seconds = Duration::from_secs;
    let deadlines = Deadlines {
        login: seconds(3),
        read: seconds(5),
        submit: seconds(7),
        guest: seconds(11),
        ..Deadlines::default()
    };
    let hang = |method: &'static str| {
        Script::new(move |incoming| (incoming.method == method).then_some(Answer::Hang))
    };
    let with = |deadlines: &Deadlines| {
        let mut settings = settings();
        settings.deadlines = deadlines.clone();
        settings
    };
    let late = |error: CallError, wanted: CallClass| {
        assert!(matches!(error, CallError::Deadline { class, .. } if class == wanted), "{error}");
    };
    let started = Instant::now();
    late(connect_with(&hang("Login"), with(&deadlines)).await.unwrap_err(), CallClass::Login);
    assert_eq!(started.elapsed(), seconds(3));

    let client = connect_with(&hang("CurrentTime"), with(&deadlines)).await.unwrap();
    let started = Instant::now();
    late(client.read(&now()).await.unwrap_err(), CallClass::Read);
    assert_eq!(started.elapsed(), seconds(5));

    let client = connect_with(&hang("PowerOnVM_Task"), with(&deadlines)).await.unwrap();
    let started = Instant::now();
    late(client.submit(&power_on()).await.unwrap_err(), CallClass::Submit);
    assert_eq!(started.elapsed(), seconds(7));

    let client = connect_with(&hang("ListProcessesInGuest"), with(&deadlines)).await.unwrap();
    let started = Instant::now();
    let list = ListProcessesInGuest { vm: MoRef::vm("vm-1"), ..Default::default() };
    late(client.read_as(CallClass::Guest, &list).await.unwrap_err(), CallClass::Guest);
    assert_eq!(started.elapsed(), seconds(11));
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_shared_login_does_not_eat_the_deadline_of_the_call() {
    let script = Script::new(|incoming| match incoming.method.as_str() {
        "Login" if incoming.before > 0 => {
            Some(Answer::After(Duration::from_secs(20), Box::new(logged_in("s=2"))))
        }
        "CurrentTime" if incoming.before == 0 => fault("NotAuthenticated"),
        _ => None,
    });
    let client = connect(&script).await;
    client.read(&now()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_answer_has_a_bound() {
    let script = Script::new(|incoming| {
        (incoming.method == "CurrentTime").then(|| Answer::Body(vec![b' '; 4096]))
    });
    let mut settings = settings();
    settings.max_answer_bytes = 2048;
    let client = connect_with(&script, settings).await.unwrap();
    let error = client.read(&now()).await.unwrap_err();
    assert_eq!(error.remedy(), Remedy::GiveUp, "{error}");
}

fn vm(id: &str) -> ObjectContent {
    let name = DynamicProperty { name: "name".into(), val: Value::string(id) };
    ObjectContent { obj: MoRef::vm(id), prop_set: vec![name], missing_set: vec![] }
}

fn unauthenticated(id: &str) -> ObjectContent {
    let fault = LocalizedMethodFault::new(Fault::of("NotAuthenticated"), "");
    let missing = MissingProperty { path: "name".into(), fault };
    ObjectContent { obj: MoRef::vm(id), prop_set: vec![], missing_set: vec![missing] }
}

#[expect(clippy::unnecessary_wraps, reason = "an answer may be empty")]
fn page(token: Option<&str>, objects: Vec<ObjectContent>) -> Option<RetrieveResult> {
    Some(RetrieveResult { token: token.map(Into::into), objects })
}

#[tokio::test(start_paused = true)]
async fn every_token_is_followed() {
    let script = Script::new(|incoming| match incoming.method.as_str() {
        "RetrievePropertiesEx" => {
            reply::<RetrievePropertiesEx>(&page(Some("0"), vec![vm("vm-1"), vm("vm-2")]))
        }
        "ContinueRetrievePropertiesEx" => {
            let token = incoming.decode::<ContinueRetrievePropertiesEx>().token;
            let next = if token == "0" {
                page(Some("1"), vec![vm("vm-3")])
            } else {
                page(None, vec![vm("vm-4")])
            };
            reply::<ContinueRetrievePropertiesEx>(&next)
        }
        _ => None,
    });
    let client = connect(&script).await;
    let objects = client.retrieve(PropertyFilterSpec::default()).await.unwrap();
    let ids: Vec<_> = objects.iter().map(|object| &*object.obj.id).collect();
    assert_eq!(ids, ["vm-1", "vm-2", "vm-3", "vm-4"]);
    settle().await;
    assert_eq!(script.count("CancelRetrievePropertiesEx"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_read_that_is_dropped_gives_back_the_pages_it_was_promised() {
    let script = Script::new(|incoming| match incoming.method.as_str() {
        "RetrievePropertiesEx" => {
            let whole = encode_reply::<RetrievePropertiesEx>(&page(
                Some("next-page"),
                vec![vm("vm-1"), vm("vm-2")],
            ));
            Some(Answer::Beginning(whole[..whole.len() - 200].to_vec()))
        }
        _ => None,
    });
    let client = connect(&script).await;
    let read = timeout(Duration::from_secs(7), client.retrieve(PropertyFilterSpec::default()));
    assert!(read.await.is_err());
    settle().await;
    let cancel = script.log().pop().unwrap();
    assert_eq!(cancel.decode::<CancelRetrievePropertiesEx>().token, "next-page");
}

#[tokio::test(start_paused = true)]
async fn a_page_that_falls_silent_is_given_up() {
    let script = Script::new(|incoming| match incoming.method.as_str() {
        "RetrievePropertiesEx" => Some(Answer::Beginning(b"<Envelope><Body>".to_vec())),
        _ => None,
    });
    let client = connect(&script).await;
    let started = Instant::now();
    let error = client.retrieve(PropertyFilterSpec::default()).await.unwrap_err();
    assert!(matches!(error, CallError::Deadline { class: CallClass::Read, .. }), "{error}");
    assert_eq!(started.elapsed(), Duration::from_secs(15));
}

#[tokio::test(start_paused = true)]
async fn a_dead_session_in_the_missing_set_is_no_empty_inventory() {
    for (case, at_page) in [("first page", 0), ("second page", 1)] {
        let script = Script::new(move |incoming| {
            let dead = incoming.cookie.as_deref() == Some("vmware_soap_session=s=1");
            match incoming.method.as_str() {
                "RetrievePropertiesEx" if dead && at_page == 0 => {
                    reply::<RetrievePropertiesEx>(&page(None, vec![unauthenticated("vm-1")]))
                }
                "RetrievePropertiesEx" => {
                    reply::<RetrievePropertiesEx>(&page(Some("0"), vec![vm("vm-1")]))
                }
                "ContinueRetrievePropertiesEx" if dead => reply::<ContinueRetrievePropertiesEx>(
                    &page(None, vec![unauthenticated("vm-2")]),
                ),
                "ContinueRetrievePropertiesEx" => {
                    reply::<ContinueRetrievePropertiesEx>(&page(None, vec![vm("vm-2")]))
                }
                _ => None,
            }
        });
        let client = connect(&script).await;
        let objects = client.retrieve(PropertyFilterSpec::default()).await.unwrap();
        assert_eq!(objects, [vm("vm-1"), vm("vm-2")], "{case}");
        assert_eq!(script.count("Login"), 2, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn properties_of_one_object_are_typed_and_its_absence_is_a_fault() {
    let script = Script::new(|incoming| match incoming.method.as_str() {
        "RetrievePropertiesEx" if incoming.before == 0 => {
            reply::<RetrievePropertiesEx>(&page(None, vec![vm("vm-1")]))
        }
        "RetrievePropertiesEx" => reply::<RetrievePropertiesEx>(&None),
        _ => None,
    });
    let client = connect(&script).await;
    let found =
        client.properties(&MoRef::vm("vm-1"), &["name", "config.annotation"]).await.unwrap();
    assert_eq!((found.str("name"), found.str("config.annotation")), (Some("vm-1"), None));
    let error = client.properties(&MoRef::vm("vm-1"), &["name"]).await.unwrap_err();
    assert_eq!((error.remedy(), error.missing_object()), (Remedy::Gone, Some(MoRef::vm("vm-1"))));
}

#[derive(Debug, Default)]
struct Records(Mutex<Vec<CallRecord>>, Mutex<Vec<(&'static str, &'static str)>>);

impl Hooks for Records {
    fn call_finished(&self, record: &CallRecord) {
        self.0.lock().unwrap().push(record.clone());
    }

    fn fault(&self, method: &'static str, kind: &'static str) {
        self.1.lock().unwrap().push((method, kind));
    }
}

#[tokio::test(start_paused = true)]
async fn hooks_see_each_request_and_each_fault() {
    let script = Script::new(|incoming| match (incoming.method.as_str(), incoming.before) {
        ("CurrentTime", 0) => Some(Answer::After(
            Duration::from_secs(2),
            Box::new(reply::<CurrentTime>(&roost_clock::SimClock::EPOCH).unwrap()),
        )),
        ("CurrentTime", 1) => fault("TooManyDevices"),
        ("CurrentTime", 2) => Some(Answer::Hang),
        _ => None,
    });
    let (mut settings, records) = (settings(), Arc::new(Records::default()));
    settings.hooks = Arc::clone(&records) as Arc<dyn Hooks>;
    let client = connect_with(&script, settings).await.unwrap();
    records.0.lock().unwrap().clear();
    client.read(&now()).await.unwrap();
    client.read(&now()).await.unwrap_err();
    let dropped = tokio::spawn({
        let client = client.clone();
        async move { client.read(&now()).await }
    });
    sleep(Duration::from_secs(1)).await;
    dropped.abort();
    settle().await;
    let records_seen = records.0.lock().unwrap().clone();
    let outcomes: Vec<_> =
        records_seen.iter().map(|record| (record.method, record.outcome)).collect();
    assert_eq!(
        outcomes,
        [
            ("CurrentTime", Outcome::Done),
            ("CurrentTime", Outcome::Fault),
            ("CurrentTime", Outcome::Dropped)
        ]
    );
    assert_eq!(records_seen[0].took, Duration::from_secs(2));
    assert!(records_seen[0].bytes_sent > 100 && records_seen[0].bytes_received > 100);
    assert_eq!(*records.1.lock().unwrap(), [("CurrentTime", "InvalidVmConfig")]);
}
