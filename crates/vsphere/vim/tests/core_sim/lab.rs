use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use roost_clock::SimClock;
use roost_vcenter_sim::{Options, Vcenter};
use roost_vim::wire::types::PropertyFilterSpec;
use roost_vim::wire::types::{ObjectSpec, PropertySpec, SelectionSpec};
use roost_vim::wire::{MoRef, MoType, Value};
use roost_vim::{
    Batch, Body, CallError, Change, Client, Credentials, Properties, SendFuture, Settings,
    Subscription, Transport, WatchSpec,
};

/// The simulated server's front door.
#[derive(Debug)]
pub(crate) struct Door(pub(crate) Vcenter);

impl Transport for Door {
    fn send(&self, request: Request<Body>) -> SendFuture {
        let vcenter = self.0.clone();
        Box::pin(async move { vcenter.handle(request).await })
    }
}

/// A client and its server.
pub(crate) struct Lab {
    pub(crate) vcenter: Vcenter,
    pub(crate) client: Client,
}

pub(crate) const PATHS: [&str; 4] =
    ["name", "runtime.powerState", "config.annotation", "summary.config.numCpu"];

pub(crate) fn options() -> Options {
    Options::default()
}

pub(crate) fn vms(count: usize) -> Options {
    Options { clusters: 1, standalone_hosts: 0, vms: count, ..Options::default() }
}

pub(crate) fn settings() -> Settings {
    Settings::new("vc.test", Credentials::new("roost", "correct-horse")).unwrap()
}

impl Lab {
    pub(crate) async fn new(options: Options) -> Self {
        Self::with(options, settings()).await.unwrap()
    }

    pub(crate) async fn with(options: Options, settings: Settings) -> Result<Self, CallError> {
        let clock = Arc::new(SimClock::new());
        let vcenter = Vcenter::start(options, clock.clone());
        let client = Client::connect(settings, Arc::new(Door(vcenter.clone())), clock).await?;
        Ok(Self { vcenter, client })
    }

    /// Someone else who uses the same server.
    pub(crate) async fn another_client(&self) -> Client {
        let transport = Arc::new(Door(self.vcenter.clone()));
        Client::connect(settings(), transport, Arc::new(SimClock::new())).await.unwrap()
    }

    pub(crate) fn root(&self) -> MoRef {
        self.client.content().root_folder.clone()
    }

    pub(crate) fn all_vms(&self) -> WatchSpec {
        WatchSpec::below(self.root(), MoType::VirtualMachine, &PATHS)
    }

    pub(crate) async fn watch(&self) -> Mirror {
        Mirror::new(self.client.watch(self.all_vms()).await.unwrap())
    }

    /// All VMs as a plain read shows them.
    pub(crate) async fn read_vms(&self) -> BTreeMap<MoRef, BTreeMap<String, Value>> {
        let datacenters = MoRef::new(MoType::Folder, self.root().id);
        let walk = |name: &str, kind: &str, path: &str, next: &[&str]| SelectionSpec {
            name: Some(name.into()),
            select_set: next.iter().map(|next| SelectionSpec::named(next)).collect(),
            ..SelectionSpec::traverse(kind, path)
        };
        let spec = PropertyFilterSpec {
            prop_set: vec![PropertySpec::new("VirtualMachine", &PATHS)],
            object_set: vec![ObjectSpec {
                obj: datacenters,
                skip: Some(true),
                select_set: vec![
                    walk("folder", "Folder", "childEntity", &["folder", "datacenter"]),
                    walk("datacenter", "Datacenter", "vmFolder", &["folder"]),
                ],
            }],
            report_missing_objects_in_results: None,
        };
        let objects = self.client.retrieve(spec).await.unwrap();
        objects.into_iter().map(|object| (object.obj.clone(), plain(&object.into()))).collect()
    }
}

pub(crate) fn plain(properties: &Properties) -> BTreeMap<String, Value> {
    properties.iter().map(|(path, value)| (path.to_owned(), value.clone())).collect()
}

/// What a subscriber knows, and what it was told on the way.
pub(crate) struct Mirror {
    pub(crate) subscription: Subscription,
    pub(crate) objects: BTreeMap<MoRef, Properties>,
    pub(crate) entered: BTreeSet<MoRef>,
    pub(crate) left: BTreeSet<MoRef>,
    pub(crate) missing: Vec<MoRef>,
    pub(crate) synced: bool,
    pub(crate) resyncs: u32,
}

impl Mirror {
    pub(crate) fn new(subscription: Subscription) -> Self {
        Self {
            subscription,
            objects: BTreeMap::new(),
            entered: BTreeSet::new(),
            left: BTreeSet::new(),
            missing: Vec::new(),
            synced: false,
            resyncs: 0,
        }
    }

    pub(crate) fn apply(&mut self, batch: Batch) {
        for update in batch.updates {
            match update.change {
                Change::Enter(properties) => {
                    self.entered.insert(update.obj.clone());
                    self.objects.insert(update.obj, properties);
                }
                Change::Modify(changes) => {
                    let object =
                        self.objects.get_mut(&update.obj).expect("only what has entered changes");
                    for change in changes {
                        object.apply(change);
                    }
                }
                Change::Leave => {
                    self.objects.remove(&update.obj).expect("only what has entered leaves");
                    self.left.insert(update.obj);
                }
            }
        }
        self.missing.extend(batch.missing);
        self.synced = batch.synced;
        self.resyncs += u32::from(batch.resynced);
    }

    /// Takes in what comes within this time.
    pub(crate) async fn follow(&mut self, time: Duration) {
        let end = tokio::time::Instant::now() + time;
        while let Ok(batch) = tokio::time::timeout_at(end, self.subscription.next()).await {
            match batch {
                Some(batch) => self.apply(batch),
                None => return,
            }
        }
    }

    /// Until everything that the server shows has been told.
    pub(crate) async fn sync(&mut self) {
        while !self.synced {
            let batch =
                tokio::time::timeout(Duration::from_mins(30), self.subscription.next()).await;
            self.apply(batch.expect("the stream does not stall").expect("the stream goes on"));
        }
    }

    pub(crate) fn plain(&self) -> BTreeMap<MoRef, BTreeMap<String, Value>> {
        self.objects.iter().map(|(obj, properties)| (obj.clone(), plain(properties))).collect()
    }
}
