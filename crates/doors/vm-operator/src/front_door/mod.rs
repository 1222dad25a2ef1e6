//! The door as the house shows it: objects on their way, VMs, create slots, the queue by level, the image cache; and what persons may tell it.

mod course;
mod needs;
mod shown;
pub(crate) mod trail;

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use roost_controller::{Key, Status, Trigger};
use roost_door::{
    Acting, Action, DoorWords, FrontDoor, Order, Refused, Steer, Summary, api_server_outage,
};
use roost_fleet::{Decided, Draft, Snapshot, Vm};
use roost_views::{
    CheckView, DecisionView, OutageView, RequestDetail, RequestView, VmDetail, VmView,
};
use serde_json::json;

use self::course::Seen;
use crate::api::VirtualMachine;
use crate::api::names::{annotation, extra_config, label};
use crate::flow::Context;
use crate::priority::PrioritySettings;
use crate::provider::{CREATES, DOOR, find};

/// What the door and its requests are called.
pub const WORDS: DoorWords = DoorWords {
    name: "vm-operator",
    noun: "VirtualMachine",
    nouns: "VirtualMachines",
    group: "namespace",
    about: "Each VirtualMachine object gets a VM that is what the object says: class, image, networks, disks, power. The VM goes when its object goes.",
};

/// A running door as the house sees it.
pub struct VmDoor {
    cx: Arc<Context>,
    client: Client,
    status: Status,
    trigger: Trigger,
    priority: PrioritySettings,
    can_act: bool,
}

impl fmt::Debug for VmDoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VmDoor").field("status", &self.status).finish_non_exhaustive()
    }
}

/// One object with what hangs on it.
struct Joined {
    vm: Arc<VirtualMachine>,
    row: Option<Arc<Vm>>,
    passes: trail::Record,
    course: roost_door::Course,
}

impl VmDoor {
    pub(crate) fn new(
        cx: Arc<Context>,
        client: Client,
        status: Status,
        trigger: Trigger,
        priority: PrioritySettings,
    ) -> Self {
        Self { cx, client, status, trigger, priority, can_act: true }
    }

    /// For a service that changes nothing.
    #[must_use]
    pub fn only_shown(mut self) -> Self {
        self.can_act = false;
        self
    }

    fn join(&self, vm: Arc<VirtualMachine>, seen: &Snapshot) -> Joined {
        let (cx, key) = (&self.cx, Key::of(vm.as_ref()));
        let row = find(&vm, seen).ok().flatten();
        let passes = cx.passes.of(&key);
        let cache = kube::ResourceExt::labels(vm.as_ref()).get(label::IMAGE_CACHE_NAME);
        let cache = cache.map(|name| Key::new(&cx.settings.pod_namespace, name));
        let cache = cache.and_then(|key| cx.stores.caches.get(&key));
        let pause = row.as_ref().and_then(|row| row.extra_config(extra_config::PAUSE));
        let course = course::course(&Seen {
            vm: &vm,
            running: cx.provider.steps.running(&key),
            passes: &passes,
            cache: cache.as_deref(),
            is_paused_in_vcenter: pause.is_some_and(extra_config::is_true),
            creates: self.creates(),
        });
        Joined { vm, row, passes, course }
    }

    /// VMs that are being made, and how many may be at once.
    fn creates(&self) -> (u64, u64) {
        let (fleet, most) = (&self.cx.provider.fleet, self.cx.provider.settings.max_creates.max(1));
        let taken = fleet.ledger().taken(DOOR, fleet.now());
        (taken.promised.of(CREATES) + taken.by_vms.of(CREATES), most)
    }

    fn snapshot(&self) -> Snapshot {
        self.cx.provider.fleet.mirror().snapshot()
    }

    fn get(&self, id: &str) -> Option<Arc<VirtualMachine>> {
        let (namespace, name) = id.split_once('/')?;
        self.cx.stores.vms.get(&Key::new(namespace, name))
    }

    fn shown(&self, joined: &Joined, now: Timestamp) -> RequestView {
        let running = self.cx.provider.steps.running(&Key::of(joined.vm.as_ref()));
        shown::request(joined, running, now, &self.priority)
    }

    fn detail(&self, joined: &Joined) -> Option<VmDetail> {
        let vm = shown::vm(joined, self.cx.provider.steps.running(&Key::of(joined.vm.as_ref())))?;
        let timeline = self.cx.provider.fleet.timelines().of(&vm.name);
        let timeline = timeline.map(|timeline| timeline.steps).unwrap_or_default();
        let timeline = shown::timeline(&timeline, joined);
        Some(VmDetail { vm, annotation: None, timeline, decisions: Vec::new() })
    }
}

impl FrontDoor for VmDoor {
    fn words(&self) -> DoorWords {
        WORDS
    }

    fn title(&self) -> String {
        WORDS.name.to_owned()
    }

    fn liveness(&self) -> Vec<CheckView> {
        Vec::new()
    }

    fn readiness(&self) -> Vec<CheckView> {
        let is_synced = self.status.is_synced();
        let watches = if is_synced { "every kind is listed" } else { "kinds are still listed" };
        let has_view = self.cx.provider.check_view().is_ok();
        let view =
            if has_view { "the inventory is shown" } else { "vCenter has shown nothing yet" };
        vec![
            CheckView::new("watches", is_synced, watches),
            CheckView::new("inventory", has_view, view),
        ]
    }

    fn summary(&self) -> Summary {
        let mut summary = Summary::of(&self.requests(), &self.vms(), self.status.is_synced());
        let (used, most) = self.creates();
        summary.gauges.add("creates", shown::creates(used, most));
        summary.tiles = shown::tiles(
            &self.trigger.depths(),
            &self.cx.stores.caches.objects(),
            self.cx.provider.has_signals(),
        );
        summary
    }

    fn requests(&self) -> Vec<RequestView> {
        let (seen, now) = (self.snapshot(), self.cx.now());
        let vms = self.cx.stores.vms.objects().into_iter();
        let mut all: Vec<_> = vms
            .map(|vm| self.shown(&self.join(vm, &seen), now))
            .map(|request| RequestView {
                verdict: request.verdict.map(DecisionView::brief),
                ..request
            })
            .collect();
        all.sort_by_key(|request| (request.state, request.queued, request.id.clone()));
        all
    }

    fn request(&self, id: &str) -> Option<RequestDetail> {
        let joined = self.join(self.get(id)?, &self.snapshot());
        let request = self.shown(&joined, self.cx.now());
        let mut decisions = shown::passed(&joined, id);
        decisions.extend(request.verdict.clone());
        let vm = self.detail(&joined);
        let verdict = request.verdict.clone().map(DecisionView::brief);
        Some(RequestDetail::new(RequestView { verdict, ..request }, decisions, vm))
    }

    fn vms(&self) -> Vec<VmView> {
        let seen = self.snapshot();
        let steps = &self.cx.provider.steps;
        let vms = self.cx.stores.vms.objects().into_iter();
        let mut all: Vec<_> = vms
            .filter_map(|vm| {
                let running = steps.running(&Key::of(vm.as_ref()));
                shown::vm(&self.join(vm, &seen), running)
            })
            .collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    fn vm(&self, name_or_id: &str) -> Option<VmDetail> {
        let seen = self.snapshot();
        let is_meant = |vm: &Arc<VirtualMachine>| {
            let id = vm.status.as_ref().map(|status| status.unique_id.as_str());
            kube::ResourceExt::name_any(vm.as_ref()) == name_or_id
                || id == Some(name_or_id)
                || vm.namespaced_name() == name_or_id
        };
        let mut vms = self.cx.stores.vms.objects().into_iter().filter(is_meant);
        vms.find_map(|vm| self.detail(&self.join(vm, &seen)))
    }

    fn forgets_ended(&self) -> bool {
        true
    }

    fn advice(&self, gate: &str) -> Option<&'static str> {
        needs::advice(gate)
    }

    fn runbook(&self) -> Option<&'static str> {
        Some("reconcile-fails")
    }

    fn outages(&self) -> Vec<OutageView> {
        let lost = self.status.server_trouble().into_iter();
        lost.map(|it| api_server_outage(it.since, it.words, WORDS.nouns)).collect()
    }

    fn steer(&self) -> Option<&dyn Steer> {
        self.can_act.then_some(self as &dyn Steer)
    }

    fn pauses_requests(&self) -> bool {
        true
    }
}

impl Steer for VmDoor {
    fn act(&self, order: Order) -> Acting<'_> {
        Box::pin(async move {
            match &order.action {
                Action::Recheck { request } => {
                    let key = self.known(&request.id)?;
                    self.trigger.signal(key);
                    let words = format!("VirtualMachine {} is looked at now", request.id);
                    self.enter(&order, &request.id, &words);
                    Ok(words)
                }
                Action::PauseRequest { request } => self.pause(&order, &request.id, true).await,
                Action::ResumeRequest { request } => self.pause(&order, &request.id, false).await,
                _ => Err(Refused::NotNow {
                    why: "one VirtualMachine is paused by roost pause vm NAMESPACE/NAME, and goes when its object is deleted".to_owned(),
                }),
            }
        })
    }
}

impl VmDoor {
    fn known(&self, id: &str) -> Result<Key, Refused> {
        let vm = self.get(id);
        let unknown = || Refused::Unknown { what: format!("VirtualMachine {id}") };
        Ok(Key::of(vm.ok_or_else(unknown)?.as_ref()))
    }

    /// By the annotation that anybody may set with kubectl, so that there is one truth about it.
    async fn pause(&self, order: &Order, id: &str, is_paused: bool) -> Result<String, Refused> {
        let key = self.known(id)?;
        let vms: Api<VirtualMachine> =
            Api::namespaced(self.client.clone(), key.namespace().unwrap_or_default());
        let value = is_paused.then_some("true");
        let patch = json!({"metadata": {"annotations": {annotation::PAUSED: value}}});
        let asked = vms.patch(key.name(), &PatchParams::default(), &Patch::Merge(patch)).await;
        let failed = |error: kube::Error| Refused::NotNow {
            why: format!("the API server did not take it: {}", roost_supervise::Chain(&error)),
        };
        asked.map_err(failed)?;
        let words = if is_paused {
            format!("VirtualMachine {id} is paused: its VM stays as it is")
        } else {
            format!("VirtualMachine {id} is worked at again")
        };
        self.enter(order, id, &words);
        Ok(words)
    }

    /// Into the journal: who, and what came of it.
    fn enter(&self, order: &Order, id: &str, words: &str) {
        let fleet = &self.cx.provider.fleet;
        let said = format!("{words}, by {order}");
        let draft = Draft::new(DOOR.about_request(id), Decided::Steered, said);
        fleet.journal().record(draft, fleet.now());
    }
}
