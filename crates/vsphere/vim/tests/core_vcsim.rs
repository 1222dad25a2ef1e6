//! The core of the client against a server that we did not write.

#![expect(clippy::unwrap_used, reason = "a test may")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use roost_clock::SystemClock;
use roost_oracle::{Vcsim, VcsimOptions};
use roost_vim::wire::methods::{PowerOffVmTask, PowerOnVmTask, RenameTask, TerminateSession};
use roost_vim::wire::types::UserSession;
use roost_vim::wire::{MoRef, MoType};
use roost_vim::{
    Batch, CallClass, Change, Client, Credentials, Faulted, HttpTransport, Settings, Subscription,
    TlsTrust, WatchSpec,
};
use tokio::time::timeout;

/// The certificate that vcsim brings along.
const VCSIM_THUMBPRINT: &str = "4C:3D:58:C2:80:EA:08:A0:67:53:79:A8:D5:3B:7C:77:6A:8A:40:EE:D1:80:4E:17:26:39:5B:D7:07:23:D4:D8";

async fn start(options: VcsimOptions) -> Option<Vcsim> {
    tokio::task::spawn_blocking(|| Vcsim::start(options)).await.unwrap()
}

async fn connect(vcsim: &Vcsim, trust: TlsTrust) -> Client {
    let credentials = Credentials::new(vcsim.username(), vcsim.password());
    let settings = Settings::new(&vcsim.endpoint(), credentials).unwrap();
    let transport = Arc::new(HttpTransport::new(&trust).unwrap());
    Client::connect(settings, transport, Arc::new(SystemClock)).await.unwrap()
}

async fn next(subscription: &mut Subscription) -> Batch {
    timeout(Duration::from_secs(30), subscription.next())
        .await
        .expect("a batch in time")
        .expect("the stream goes on")
}

/// What enters until the load is complete.
async fn load(subscription: &mut Subscription) -> BTreeSet<MoRef> {
    let mut objects = BTreeSet::new();
    loop {
        let batch = next(subscription).await;
        for update in batch.updates {
            assert!(matches!(update.change, Change::Enter(_)), "{update:?}");
            objects.insert(update.obj);
        }
        if batch.synced {
            return objects;
        }
    }
}

async fn name_of(subscription: &mut Subscription, vm: &MoRef, wanted: &str) {
    loop {
        for update in
            next(subscription).await.updates.into_iter().filter(|update| update.obj == *vm)
        {
            let changes = match update.change {
                Change::Modify(changes) => changes,
                Change::Enter(properties) if properties.str("name") == Some(wanted) => return,
                Change::Enter(_) | Change::Leave => continue,
            };
            let named = |value: &roost_vim::wire::Value| value.as_str() == Some(wanted);
            if changes
                .iter()
                .any(|change| change.name == "name" && change.val.as_ref().is_some_and(named))
            {
                return;
            }
        }
    }
}

async fn follow_vms_and_tasks(options: VcsimOptions) {
    let vms = options.vms;
    let Some(vcsim) = start(options).await else { return };
    let client = connect(&vcsim, TlsTrust::System).await;
    let root = client.content().root_folder.clone();
    let paths = ["name", "runtime.powerState"];
    let mut stream =
        client.watch(WatchSpec::below(root.clone(), MoType::VirtualMachine, &paths)).await.unwrap();
    let known = load(&mut stream).await;
    assert!(known.len() >= vms as usize, "{} VMs", known.len());

    // A second watch, while the wait for the first is out.
    let mut pools =
        client.watch(WatchSpec::below(root, MoType::ResourcePool, &["name"])).await.unwrap();
    assert!(!load(&mut pools).await.is_empty());

    let vm = known.first().unwrap();
    // Not more: vcsim looks at every object of every filter for each change.
    let all_at_once = known.iter().take(6).map(|vm| async {
        let off = client.submit(&PowerOffVmTask { this: vm.clone() }).await.unwrap();
        off.wait().await.unwrap();
        let again = client.submit(&PowerOffVmTask { this: vm.clone() }).await.unwrap();
        assert!(again.wait().await.unwrap_err().power_state_reached());
        let on = client.submit(&PowerOnVmTask { this: vm.clone(), host: None }).await.unwrap();
        on.wait().await.unwrap();
    });
    timeout(Duration::from_mins(2), futures_util::future::join_all(all_at_once)).await.unwrap();

    let rename = RenameTask { this: vm.clone(), new_name: "renamed".into() };
    client.submit(&rename).await.unwrap().wait().await.unwrap();
    name_of(&mut stream, vm, "renamed").await;
    client.shutdown().await;
    while stream.next().await.is_some() {}
}

#[tokio::test]
async fn a_vcenter_is_watched_and_its_tasks_are_followed() {
    follow_vms_and_tasks(VcsimOptions { vms: 60, ..VcsimOptions::default() }).await;
}

#[tokio::test]
async fn a_host_is_watched_and_its_tasks_are_followed() {
    follow_vms_and_tasks(VcsimOptions { esx: true, vms: 3, ..VcsimOptions::default() }).await;
}

/// Waits until the watch shows exactly these.
async fn shown(subscription: &mut Subscription, known: &mut BTreeSet<MoRef>, wanted: &[&MoRef]) {
    let wanted: BTreeSet<MoRef> = wanted.iter().map(|vm| (*vm).clone()).collect();
    while *known != wanted {
        for update in next(subscription).await.updates {
            match update.change {
                Change::Enter(_) => drop(known.insert(update.obj)),
                Change::Leave => drop(known.remove(&update.obj)),
                Change::Modify(_) => {}
            }
        }
    }
}

/// vcsim does not tell what enters a list view, and counts no versions.
#[tokio::test]
async fn a_watch_of_single_objects_gains_and_loses_some() {
    let Some(vcsim) = start(VcsimOptions { vms: 6, ..VcsimOptions::default() }).await else {
        return;
    };
    let client = connect(&vcsim, TlsTrust::System).await;
    let root = client.content().root_folder.clone();
    let all = WatchSpec::below(root, MoType::VirtualMachine, &["name"]);
    let mut all = client.watch(all).await.unwrap();
    let vms: Vec<MoRef> = load(&mut all).await.into_iter().collect();
    let [a, b, c, ..] = &vms[..] else { panic!("{vms:?}") };

    let mut some = client.watch(WatchSpec::object(a.clone(), &["name"])).await.unwrap();
    let mut known = BTreeSet::new();
    shown(&mut some, &mut known, &[a]).await;
    some.change_objects(vec![b.clone(), MoRef::vm("vm-nowhere")], vec![]);
    shown(&mut some, &mut known, &[a, b]).await;
    some.change_objects(vec![c.clone()], vec![a.clone()]);
    shown(&mut some, &mut known, &[b, c]).await;
    let rename = RenameTask { this: b.clone(), new_name: "renamed".into() };
    client.submit(&rename).await.unwrap().wait().await.unwrap();
    name_of(&mut some, b, "renamed").await;
    assert!(some.status().synced);
}

#[tokio::test]
async fn the_stream_survives_the_end_of_its_session() {
    let Some(vcsim) = start(VcsimOptions { tls: true, ..VcsimOptions::default() }).await else {
        return;
    };
    let trust = TlsTrust::Thumbprint(VCSIM_THUMBPRINT.parse().unwrap());
    let client = connect(&vcsim, trust.clone()).await;
    let root = client.content().root_folder.clone();
    let mut stream =
        client.watch(WatchSpec::below(root, MoType::VirtualMachine, &["name"])).await.unwrap();
    let known = load(&mut stream).await;

    let manager = client.content().session_manager.clone().unwrap();
    let current = client.properties(&manager, &["currentSession"]).await.unwrap();
    let key = current.data::<UserSession>("currentSession").unwrap().key.clone();
    let other = connect(&vcsim, trust).await;
    other
        .change(CallClass::Read, &TerminateSession { this: manager, session_id: vec![key] })
        .await
        .unwrap();

    let vm = known.first().unwrap();
    let rename = RenameTask { this: vm.clone(), new_name: "after".into() };
    client.submit(&rename).await.unwrap().wait().await.unwrap();
    let mut entered = BTreeSet::new();
    while !stream.status().synced || entered.len() < known.len() {
        for update in next(&mut stream).await.updates {
            assert!(!matches!(update.change, Change::Leave), "nothing left: {update:?}");
            entered.insert(update.obj);
        }
    }
    assert_eq!((entered, stream.status().resyncs), (known, 1));
}
