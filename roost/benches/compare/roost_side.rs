//! Roost's side of the measurements.

use std::collections::HashMap;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use roost_clock::SystemClock;
use roost_vim::{
    Change, Client, Credentials, HttpTransport, Properties, Settings, Subscription, TlsTrust,
    WatchSpec, Watched,
};
use roost_vim_wire::types::PropertySpec;
use roost_vim_wire::{Item, MoRef, MoType, PageDecoder, methods};
use tokio::runtime::Runtime;

use crate::servers::{CHANGED_VM, median, now};

/// What a fleet controller needs to know of every VM, and nothing else.
const NARROW: &[&str] = &[
    "name",
    "config.annotation",
    "config.template",
    "config.uuid",
    "summary.config.numCpu",
    "summary.config.memorySizeMB",
    "runtime.powerState",
    "guest.ipAddress",
    "guest.net",
    "guest.guestOperationsReady",
    "guest.toolsRunningStatus",
    "resourcePool",
    "parent",
];

pub(crate) struct Synced {
    pub(crate) seconds: Duration,
    pub(crate) resident_bytes: u64,
}

/// From asking for the stream until all of the inventory is here, login excluded as on govmomi's side.
pub(crate) fn first_sync(url: &str, repeat: usize) -> Synced {
    let runtime = runtime();
    let mut resident_bytes = 0;
    let times = (0..repeat).map(|_| {
        runtime.block_on(async {
            let client = connect(url).await;
            let started = now();
            let (_stream, rows) = watch(&client).await;
            let taken = started.elapsed();
            resident_bytes = resident();
            black_box(rows);
            client.shutdown().await;
            taken
        })
    });
    let seconds = median(times.collect());
    Synced { seconds, resident_bytes }
}

/// From just before a power call until the stream has delivered the new state.
pub(crate) fn changes(url: &str, repeat: usize) -> Vec<Duration> {
    runtime().block_on(async {
        let client = connect(url).await;
        let (mut stream, rows) = watch(&client).await;
        let named = |row: &Properties| row.str("name") == Some(CHANGED_VM);
        let vm = rows
            .iter()
            .find(|(_, row)| named(row))
            .map(|(vm, _)| vm.clone())
            .expect("the VM of that name");
        let mut on = rows[&vm].str("runtime.powerState") == Some("poweredOn");
        let mut taken = Vec::new();
        for _ in 0..repeat {
            let started = now();
            let task = if on {
                client.submit(&methods::PowerOffVmTask { this: vm.clone() }).await
            } else {
                client.submit(&methods::PowerOnVmTask { this: vm.clone(), host: None }).await
            };
            on = !on;
            let wanted = if on { "poweredOn" } else { "poweredOff" };
            until_state(&mut stream, &vm, wanted).await;
            taken.push(started.elapsed());
            task.expect("a task").wait().await.expect("a change of power");
        }
        client.shutdown().await;
        taken
    })
}

async fn until_state(stream: &mut Subscription, vm: &MoRef, wanted: &str) {
    loop {
        let batch = stream.next().await.expect("the stream goes on");
        let seen = batch.updates.iter().filter(|update| update.obj == *vm).any(|update| {
            match &update.change {
                Change::Modify(changes) => changes.iter().any(|change| {
                    change.name == "runtime.powerState"
                        && change.val.as_ref().and_then(|val| val.as_str()) == Some(wanted)
                }),
                Change::Enter(row) => row.str("runtime.powerState") == Some(wanted),
                Change::Leave => false,
            }
        });
        if seen {
            return;
        }
    }
}

pub(crate) struct Decoded {
    pub(crate) seconds: Duration,
    pub(crate) bytes: u64,
}

/// A recorded answer, in chunks as from a socket, into typed objects.
pub(crate) fn decode(file: &Path, repeat: usize) -> Decoded {
    let body = std::fs::read(file).expect("the recorded answer");
    let times = (0..repeat).map(|_| {
        let started = now();
        let (mut decoder, mut objects) = (PageDecoder::new(), Vec::new());
        let mut keep = |item| {
            if let Item::Object(object) = item {
                objects.push(object);
            }
        };
        for chunk in body.chunks(64 << 10) {
            decoder.feed(chunk, &mut keep).expect("a well-formed answer");
        }
        decoder.finish(&mut keep).expect("a whole answer");
        let taken = started.elapsed();
        assert!(!black_box(objects).is_empty());
        taken
    });
    Decoded { seconds: median(times.collect()), bytes: body.len() as u64 }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime")
}

async fn connect(url: &str) -> Client {
    let (scheme, rest) = url.split_once("://").expect("a URL");
    let (login, host) = rest.split_once('@').expect("a login in it");
    let (user, password) = login.split_once(':').expect("a password in it");
    let settings = Settings::new(&format!("{scheme}://{host}"), Credentials::new(user, password))
        .expect("an address");
    let transport = HttpTransport::new(&TlsTrust::Insecure).expect("a transport");
    Client::connect(settings, Arc::new(transport), Arc::new(SystemClock)).await.expect("a login")
}

async fn watch(client: &Client) -> (Subscription, HashMap<MoRef, Properties>) {
    let container = client.content().root_folder.clone();
    let spec = WatchSpec {
        objects: Watched::Container {
            container,
            kinds: vec![MoType::VirtualMachine],
            recursive: true,
        },
        properties: vec![PropertySpec::new("VirtualMachine", NARROW)],
    };
    let mut stream = client.watch(spec).await.expect("a stream");
    let mut rows = HashMap::new();
    loop {
        let batch = stream.next().await.expect("the stream goes on");
        for update in batch.updates {
            if let Change::Enter(row) = update.change {
                rows.insert(update.obj, row);
            }
        }
        if batch.synced {
            return (stream, rows);
        }
    }
}

/// Of this process, with everything it holds; 0 where the system does not say.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok())
        .map_or(0, |kib| kib * 1024)
}
