use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use roost_vim::wire::methods::WaitForUpdatesEx;
use roost_vim::wire::{Fault, MoRef, MoType};
use roost_vim::{CallError, Change, Client, Faulted, Hooks, Subscription, WatchSpec};
use tokio::time::{sleep, timeout};

use crate::collector::{Collector, Page, enter, leave, unauthenticated};
use crate::script::{Answer, Script, connect, connect_with, fault, settings, settle};

fn spec() -> WatchSpec {
    WatchSpec::below(MoRef::new(MoType::Folder, "group-v3"), MoType::VirtualMachine, &["name"])
}

fn serve(pages: impl IntoIterator<Item = Page>) -> Arc<Script> {
    let collector = Collector::new(pages);
    Script::new(move |incoming| collector.answer(incoming))
}

/// The objects that a reader knows after the load, and those that it was told to have left.
async fn load(subscription: &mut Subscription) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut known, mut left) = (BTreeSet::new(), BTreeSet::new());
    loop {
        let batch = timeout(Duration::from_mins(10), subscription.next()).await.unwrap().unwrap();
        for update in batch.updates {
            let id = update.obj.id.to_string();
            match update.change {
                Change::Enter(_) | Change::Modify(_) => known.insert(id),
                Change::Leave => left.insert(id),
            };
        }
        if batch.synced {
            return (known, left);
        }
    }
}

fn ids<const N: usize>(ids: [&str; N]) -> BTreeSet<String> {
    ids.map(String::from).into()
}

fn versions(script: &Script) -> Vec<(Option<String>, i32)> {
    let waits = script.log().into_iter().filter(|incoming| incoming.method == "WaitForUpdatesEx");
    let calls = waits.map(|incoming| incoming.decode::<WaitForUpdatesEx>());
    calls.map(|call| (call.version, call.options.unwrap().max_wait_seconds.unwrap())).collect()
}

async fn watch(client: &Client) -> Subscription {
    client.watch(spec()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn truncated_pages_are_followed_before_anything_counts_as_loaded() {
    let script = serve([
        Page::Set("1", true, vec![enter("vm-1")]),
        Page::Set("2", true, vec![enter("vm-2")]),
        Page::Set("3", false, vec![enter("vm-3")]),
    ]);
    let client = connect(&script).await;
    let mut vms = watch(&client).await;
    assert!(!vms.status().synced);
    assert_eq!(load(&mut vms).await, (ids(["vm-1", "vm-2", "vm-3"]), ids([])));
    assert!(vms.status().synced && vms.status().last_contact.is_some());
    settle().await;
    let version = |text: &str| Some(text.to_owned());
    assert_eq!(
        versions(&script),
        [(None, 0), (version("1"), 0), (version("2"), 0), (version("3"), 60)]
    );
}

#[tokio::test(start_paused = true)]
async fn at_rest_the_stream_costs_little() {
    let script = serve([Page::Set("1", false, vec![enter("vm-1")])]);
    let client = connect(&script).await;
    let mut vms = watch(&client).await;
    load(&mut vms).await;
    script.forget();
    sleep(Duration::from_hours(1)).await;
    let calls = script.methods().len();
    assert!((60..=73).contains(&calls), "{calls} calls in an hour");
    assert!(vms.status().synced);
}

#[tokio::test(start_paused = true)]
async fn what_the_server_forgot_is_built_anew_and_only_what_is_missing_leaves() {
    for (case, lost) in [
        ("stale version", fault("InvalidCollectorVersion")),
        (
            "collector",
            Some(Answer::Fault(
                Fault::of("ManagedObjectNotFound")
                    .with("obj", &MoRef::new(MoType::PropertyCollector, "session[x]1")),
            )),
        ),
        (
            "view",
            Some(Answer::Fault(
                Fault::of("ManagedObjectNotFound")
                    .with("obj", &MoRef::new(MoType::ContainerView, "session[x]2")),
            )),
        ),
        ("session", fault("NotAuthenticated")),
        ("session, in the missing set", None),
    ] {
        let lost = match lost {
            Some(answer) => Page::Answer(Answer::After(Duration::from_secs(1), Box::new(answer))),
            None => Page::Set("9", false, vec![unauthenticated("vm-1")]),
        };
        let script = serve([
            Page::Set("1", false, vec![enter("vm-1"), enter("vm-2")]),
            lost,
            Page::Set("1", true, vec![enter("vm-2")]),
            Page::Set("2", false, vec![enter("vm-3")]),
        ]);
        let client = connect(&script).await;
        let mut vms = watch(&client).await;
        assert_eq!(load(&mut vms).await, (ids(["vm-1", "vm-2"]), ids([])), "{case}");
        let broken = vms.next().await.unwrap();
        assert!(!broken.synced && broken.updates.is_empty(), "{case}: the break is told at once");
        let batch = vms.next().await.unwrap();
        assert!(!batch.synced, "{case}: half a load is no load");
        assert!(batch.updates.iter().all(|update| update.change != Change::Leave), "{case}");
        assert_eq!(load(&mut vms).await, (ids(["vm-3"]), ids(["vm-1"])), "{case}");
        assert_eq!(vms.status().resyncs, 1, "{case}");
        assert_eq!(
            script.count("Login"),
            if case.starts_with("session") { 2 } else { 1 },
            "{case}"
        );
        assert_eq!(script.count("CreatePropertyCollector"), 2, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_asked_again_with_the_same_version() {
    let script = serve([
        Page::Set("7", false, vec![enter("vm-1"), enter("vm-2")]),
        Page::Answer(Answer::Cut),
        Page::Set("8", false, vec![leave("vm-1")]),
    ]);
    let client = connect(&script).await;
    let mut vms = watch(&client).await;
    load(&mut vms).await;
    let batch = vms.next().await.unwrap();
    assert_eq!((batch.updates.len(), batch.synced, batch.resynced), (1, true, false));
    assert_eq!(script.count("CreatePropertyCollector"), 1);
    assert_eq!(script.count("CancelWaitForUpdates"), 1, "the server may still hold the lost wait");
    let asked: Vec<_> =
        versions(&script).into_iter().map(|(version, _)| version.unwrap_or_default()).collect();
    assert_eq!(asked[..3], ["", "7", "7"]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_without_a_real_version_or_in_the_middle_of_pages_starts_over() {
    for (case, first) in [
        ("vcsim", Page::Set("-", false, vec![enter("vm-1")])),
        ("pages", Page::Set("5", true, vec![enter("vm-1")])),
    ] {
        let script =
            serve([first, Page::Answer(Answer::Cut), Page::Set("6", false, vec![enter("vm-2")])]);
        let client = connect(&script).await;
        let mut vms = watch(&client).await;
        let mut left = BTreeSet::new();
        while left.is_empty() {
            left = load(&mut vms).await.1;
        }
        assert_eq!(left, ids(["vm-1"]), "{case}");
        assert_eq!(script.count("CreatePropertyCollector"), 2, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_keeps_breaking_is_not_stormed() {
    let script = serve(
        (0..10_000).map(|_| Page::Answer(Answer::Fault(Fault::of("InvalidCollectorVersion")))),
    );
    let client = connect(&script).await;
    let vms = watch(&client).await;
    sleep(Duration::from_hours(1)).await;
    let builds = script.count("CreatePropertyCollector");
    assert!((100..200).contains(&builds), "{builds} in an hour");
    assert!(vms.status().trouble.is_some() && !vms.status().synced);
}

#[derive(Debug, Default)]
struct Seen(Mutex<(Vec<&'static str>, u32)>, Mutex<Vec<&'static str>>);

impl Hooks for Seen {
    fn fault(&self, method: &'static str, _: &'static str) {
        self.0.lock().unwrap().0.push(method);
    }

    fn stream_resynced(&self) {
        self.0.lock().unwrap().1 += 1;
    }

    fn background_panicked(&self, what: &'static str) {
        self.1.lock().unwrap().push(what);
    }
}

#[tokio::test(start_paused = true)]
async fn interrupting_the_own_wait_is_no_fault_and_no_break() {
    let script = serve([
        Page::Set("1", false, vec![enter("vm-1")]),
        // The wait that is interrupted when the second watch comes.
        Page::Answer(Answer::After(
            Duration::from_secs(5),
            Box::new(Answer::Fault(Fault::of("RequestCanceled"))),
        )),
        Page::Set("2", false, vec![enter("vm-1")]),
    ]);
    let (mut settings, seen) = (settings(), Arc::new(Seen::default()));
    settings.hooks = Arc::clone(&seen) as Arc<dyn Hooks>;
    let client = connect_with(&script, settings).await.unwrap();
    let mut first = watch(&client).await;
    load(&mut first).await;
    settle().await;
    let mut second = watch(&client).await;
    load(&mut second).await;
    assert_eq!(script.count("CancelWaitForUpdates"), 1);
    assert_eq!(
        versions(&script)[2],
        (Some("1".into()), 0),
        "the version goes on, and the load does not wait"
    );
    assert_eq!(*seen.0.lock().unwrap(), (vec![], 0));
    assert_eq!(script.count("CreatePropertyCollector"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_the_server_refuses_says_why() {
    let collector = Collector::new([]);
    let script = Script::new(move |incoming| match incoming.method.as_str() {
        "CreateFilter" => {
            Some(Answer::Fault(Fault::of("InvalidProperty").with("name", &"no.such".to_owned())))
        }
        _ => collector.answer(incoming),
    });
    let client = connect(&script).await;
    let error = client.watch(spec()).await.unwrap_err();
    assert_eq!(error.invalid_property(), Some("no.such"));
    settle().await;
    assert_eq!(script.count("DestroyView"), 1, "the view that was made for it is gone");
}

#[tokio::test(start_paused = true)]
async fn a_watch_on_a_server_that_is_away_ends_with_an_error() {
    let script = Script::new(|incoming| {
        (incoming.method == "CreatePropertyCollector").then_some(Answer::Refused)
    });
    let client = connect(&script).await;
    let error = timeout(Duration::from_mins(1), client.watch(spec())).await.unwrap().unwrap_err();
    assert!(matches!(error, CallError::Connection { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_dropped_half_way_leaves_nothing() {
    for slow in ["CreatePropertyCollector", "CreateContainerView", "CreateFilter"] {
        let collector = Collector::new([]);
        let script = Script::new(move |incoming| {
            let answer = collector.answer(incoming);
            if incoming.method != slow {
                return answer;
            }
            answer.map(|answer| Answer::After(Duration::from_secs(5), Box::new(answer)))
        });
        let client = connect(&script).await;
        assert!(timeout(Duration::from_secs(1), client.watch(spec())).await.is_err());
        sleep(Duration::from_mins(3)).await;
        let count = |method| script.count(method);
        assert_eq!(count("CreateContainerView"), count("DestroyView"), "{slow}");
        assert_eq!(count("CreatePropertyCollector"), count("DestroyPropertyCollector"), "{slow}");
        assert!(
            count("DestroyPropertyCollector") + count("DestroyPropertyFilter")
                >= count("CreateFilter"),
            "{slow}"
        );
        script.forget();
        sleep(Duration::from_mins(10)).await;
        assert_eq!(script.count("WaitForUpdatesEx"), 0, "nobody watches");
    }
}

#[tokio::test(start_paused = true)]
async fn shutdown_takes_the_stream_down_in_order() {
    let script = serve([Page::Set("1", false, vec![enter("vm-1")])]);
    let client = connect(&script).await;
    let mut vms = watch(&client).await;
    load(&mut vms).await;
    settle().await;
    script.forget();
    client.shutdown().await;
    assert_eq!(vms.next().await, None);
    let methods = script.methods();
    assert_eq!(methods[0], "CancelWaitForUpdates");
    assert_eq!(methods.last().unwrap(), "Logout");
    assert!(
        methods.contains(&"DestroyPropertyCollector".to_owned())
            && methods.contains(&"DestroyView".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_panics_ends_is_counted_and_starts_again() {
    let script = serve([
        Page::Set("1", false, vec![enter("vm-1")]),
        Page::Answer(Answer::Panic),
        Page::Set("1", false, vec![enter("vm-2")]),
    ]);
    let (mut settings, seen) = (settings(), Arc::new(Seen::default()));
    settings.hooks = Arc::clone(&seen) as Arc<dyn Hooks>;
    let client = connect_with(&script, settings).await.unwrap();
    let mut vms = watch(&client).await;
    while vms.next().await.is_some() {}
    assert!(!vms.status().synced);
    assert_eq!(*seen.1.lock().unwrap(), ["property stream"]);
    let mut again = watch(&client).await;
    assert_eq!(load(&mut again).await.0, ids(["vm-2"]));
}
