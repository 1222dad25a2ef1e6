//! The close-up: everything about a few VMs, where the mirror has little about all.
//!
//! It is a list view with the wide property set, in the same property stream as the mirror. A door asks to look at VMs that it has claimed; nobody
//! else's are in it. What it costs grows with those VMs: adding one brings that one, removing one brings nothing, and the mirror is not told of either.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use roost_vim::wire::types::{
    GuestNicInfo, GuestStackInfo, OptionValue, PropertySpec, VirtualDevice, VirtualHardware,
    VirtualMachineSnapshotInfo,
};
use roost_vim::wire::{MoRef, MoType, Value};
use roost_vim::{
    CallError, Change, Observer, Properties, Subscription, Update, WatchSpec, Watched,
};
use tokio::sync::{Notify, watch};

use crate::{Mirror, StreamState, VmId};

/// What is seen of such a VM beside its row in the mirror. Left out is what changes while a VM just runs: `summary.quickStats`, `summary.storage`,
/// `config.modified`, `guest.disk`.
pub const CLOSE_UP_PATHS: [&str; 28] = [
    "config.hardware",
    "config.extraConfig",
    "config.changeVersion",
    "config.version",
    "config.guestId",
    "config.firmware",
    "config.flags",
    "config.bootOptions",
    "config.managedBy",
    "config.files",
    "config.changeTrackingEnabled",
    "config.cpuHotAddEnabled",
    "config.memoryHotAddEnabled",
    "config.cpuAllocation",
    "config.memoryAllocation",
    "config.vAppConfig",
    "snapshot",
    "layoutEx",
    "guest.net",
    "guest.ipStack",
    "guest.guestState",
    "guest.toolsVersionStatus2",
    "guest.customizationInfo",
    "guestHeartbeatStatus",
    "runtime.host",
    "runtime.question",
    "datastore",
    "recentTask",
];

/// How many VMs that have left are remembered for whoever asks what changed.
const REMEMBERED_DEPARTURES: usize = 1_024;

/// The VM is nobody's, or not known: only what a door has claimed is looked at closely.
#[derive(Debug, thiserror::Error)]
#[error("{vm} is claimed by no door")]
pub struct NotClaimed {
    pub vm: VmId,
}

/// VMs that doors look at closely. A handle; clones share it.
#[derive(Debug, Clone)]
pub struct CloseUp {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    mirror: Mirror,
    state: Mutex<State>,
    /// There is something to look at.
    wanted: Notify,
    generation: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    wanted: BTreeSet<VmId>,
    subscription: Option<Arc<Subscription>>,
    details: BTreeMap<VmId, Arc<Detail>>,
    generation: u64,
    /// When each VM last changed or left, by generation.
    changed: BTreeMap<u64, VmId>,
    changed_at: BTreeMap<VmId, u64>,
    departures: usize,
}

/// One VM as its close-up shows it. It does not change; a change makes a new one.
#[derive(Clone)]
pub struct Detail {
    pub vm: VmId,
    properties: Properties,
}

// Values of `extraConfig` may be secret.
impl fmt::Debug for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Detail").field("vm", &self.vm).finish_non_exhaustive()
    }
}

impl Detail {
    /// Everything, by the paths of [`CLOSE_UP_PATHS`].
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    pub fn devices(&self) -> &[VirtualDevice] {
        let hardware = self.properties.data::<VirtualHardware>("config.hardware");
        hardware.map_or(&[], |hardware| &hardware.device)
    }

    pub fn hardware(&self) -> Option<&VirtualHardware> {
        self.properties.data("config.hardware")
    }

    pub fn extra_config(&self, key: &str) -> Option<&str> {
        self.all_extra_config().find(|(own, _)| *own == key).map(|(_, value)| value)
    }

    pub fn all_extra_config(&self) -> impl Iterator<Item = (&str, &str)> {
        let options = self.properties.get("config.extraConfig").into_iter();
        options
            .flat_map(Value::data_items::<OptionValue>)
            .filter_map(|option| Some((option.key.as_str(), option.value.as_ref()?.as_str()?)))
    }

    pub fn change_version(&self) -> Option<&str> {
        self.properties.str("config.changeVersion")
    }

    pub fn snapshots(&self) -> Option<&VirtualMachineSnapshotInfo> {
        self.properties.data("snapshot")
    }

    pub fn nics(&self) -> impl Iterator<Item = &GuestNicInfo> {
        self.properties.get("guest.net").into_iter().flat_map(Value::data_items)
    }

    pub fn ip_stacks(&self) -> impl Iterator<Item = &GuestStackInfo> {
        self.properties.get("guest.ipStack").into_iter().flat_map(Value::data_items)
    }

    pub fn recent_tasks(&self) -> Vec<MoRef> {
        self.properties.refs("recentTask")
    }
}

impl CloseUp {
    pub(crate) fn new(mirror: Mirror) -> Self {
        let shared = Shared {
            mirror,
            state: Mutex::default(),
            wanted: Notify::new(),
            generation: watch::Sender::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a VM. It is shown some time later, by [`of`](Self::of). Asking again changes nothing, so a reconciler may ask in every pass.
    pub fn look_at(&self, vm: &VmId) -> Result<(), NotClaimed> {
        if self.state().wanted.contains(vm) {
            return Ok(());
        }
        if self.shared.mirror.vm(vm).is_none_or(|row| row.claim.is_none()) {
            return Err(NotClaimed { vm: vm.clone() });
        }
        let mut state = self.state();
        if state.wanted.insert(vm.clone()) {
            match &state.subscription {
                Some(subscription) => subscription.change_objects(vec![vm.moref()], Vec::new()),
                None => self.shared.wanted.notify_one(),
            }
        }
        Ok(())
    }

    /// The VM is not looked at any more. One that is destroyed goes by itself.
    pub fn look_away(&self, vm: &VmId) {
        let mut state = self.state();
        if state.wanted.remove(vm)
            && let Some(subscription) = &state.subscription
        {
            subscription.change_objects(Vec::new(), vec![vm.moref()]);
        }
    }

    /// A VM as it is known now; `None` until it has been shown. What a task of ours changed is in it when the end of that task has been told, as far as the
    /// server keeps the order.
    pub fn of(&self, vm: &VmId) -> Option<Arc<Detail>> {
        let mut state = self.state();
        self.take_news(&mut state);
        state.details.get(vm).cloned()
    }

    /// How many are shown.
    pub fn len(&self) -> usize {
        self.state().details.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How the stream is doing; nothing while nobody looks at anything.
    pub fn stream(&self) -> Option<StreamState> {
        let state = self.state();
        state.subscription.as_ref().map(|subscription| (&subscription.status()).into())
    }

    /// Changes when there is something new to see; the value is a generation for [`changed_since`](Self::changed_since).
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.generation.subscribe()
    }

    /// VMs that were shown, changed or left after this generation, in that order, each once, and the generation now.
    pub fn changed_since(&self, generation: u64) -> (Vec<VmId>, u64) {
        let state = self.state();
        let changed = state.changed.range(generation + 1..).map(|(_, vm)| vm.clone()).collect();
        (changed, state.generation)
    }

    /// Keeps the close-up up to date until the client is shut down. It may be called again after it has ended or was dropped.
    pub(crate) async fn follow(&self, observer: &Observer) -> Result<(), CallError> {
        let known = self.state().subscription.clone();
        let subscription = match known {
            Some(subscription) => subscription,
            None => self.subscribe(observer).await?,
        };
        while subscription.has_more().await {
            self.take_news(&mut self.state());
        }
        self.state().subscription = None;
        Ok(())
    }

    async fn subscribe(&self, observer: &Observer) -> Result<Arc<Subscription>, CallError> {
        let first = loop {
            let wanted = self.state().wanted.clone();
            if !wanted.is_empty() {
                break wanted;
            }
            self.shared.wanted.notified().await;
        };
        let subscription = Arc::new(observer.watch(watch_spec(&first)).await?);
        let mut state = self.state();
        let list = |vms: &mut dyn Iterator<Item = &VmId>| vms.map(VmId::moref).collect::<Vec<_>>();
        let add = list(&mut state.wanted.difference(&first));
        let remove = list(&mut first.difference(&state.wanted));
        if !add.is_empty() || !remove.is_empty() {
            subscription.change_objects(add, remove);
        }
        state.subscription = Some(Arc::clone(&subscription));
        Ok(subscription)
    }

    /// Takes over what the stream has brought. Under the lock, so batches are taken over in their order whoever takes them.
    fn take_news(&self, state: &mut State) {
        let Some(subscription) = state.subscription.clone() else { return };
        let before = state.generation;
        while let Some(batch) = subscription.take() {
            for update in batch.updates {
                state.apply(update);
            }
            // Whoever looks at one in the next pass asks anew: a VM may have been shown to us again since.
            for missing in batch.missing {
                state.wanted.remove(&VmId::from(&missing));
            }
        }
        if state.generation > before {
            self.shared.generation.send_replace(state.generation);
        }
    }
}

impl State {
    fn apply(&mut self, update: Update) {
        let vm = VmId::from(&update.obj);
        match update.change {
            Change::Enter(properties) => {
                // After a break everything enters once more.
                if self.details.get(&vm).is_some_and(|before| before.properties == properties) {
                    return;
                }
                self.show(Detail { vm: vm.clone(), properties });
            }
            Change::Modify(changes) => {
                let before = self.details.get(&vm).map(|detail| detail.properties.clone());
                let mut properties = before.unwrap_or_default();
                for change in changes {
                    properties.apply(change);
                }
                self.show(Detail { vm: vm.clone(), properties });
            }
            Change::Leave => {
                // Whoever still wants it asks again; it is told that the VM has changed.
                self.wanted.remove(&vm);
                if self.details.remove(&vm).is_none() {
                    return;
                }
                self.departures += 1;
            }
        }
        self.note(vm);
        self.forget_departures();
    }

    fn show(&mut self, detail: Detail) {
        let is_back =
            !self.details.contains_key(&detail.vm) && self.changed_at.contains_key(&detail.vm);
        self.departures -= usize::from(is_back);
        self.details.insert(detail.vm.clone(), Arc::new(detail));
    }

    fn note(&mut self, vm: VmId) {
        self.generation += 1;
        if let Some(before) = self.changed_at.insert(vm.clone(), self.generation) {
            self.changed.remove(&before);
        }
        self.changed.insert(self.generation, vm);
    }

    fn forget_departures(&mut self) {
        if self.departures <= 2 * REMEMBERED_DEPARTURES {
            return;
        }
        let gone = self.changed.iter().filter(|(_, vm)| !self.details.contains_key(*vm));
        let forgotten: Vec<(u64, VmId)> = gone
            .take(self.departures - REMEMBERED_DEPARTURES)
            .map(|(at, vm)| (*at, vm.clone()))
            .collect();
        for (at, vm) in forgotten {
            self.changed.remove(&at);
            self.changed_at.remove(&vm);
            self.departures -= 1;
        }
    }
}

fn watch_spec(vms: &BTreeSet<VmId>) -> WatchSpec {
    WatchSpec {
        objects: Watched::Objects(vms.iter().map(VmId::moref).collect()),
        properties: vec![PropertySpec::new(MoType::VirtualMachine.as_str(), &CLOSE_UP_PATHS)],
    }
}
