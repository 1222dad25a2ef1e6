//! The kubelet as the house shows it: pods on their way, VMs, decisions, and how persons steer it.

mod needs;
mod shown;
mod steer;
mod way;

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use roost_controller::{Key, Status, Store};
use roost_door::{Core, CoreView, DoorWords, FrontDoor, Steer, Summary, api_server_outage};
use roost_views::{
    CheckView, DecisionQuery, DecisionView, GaugeView, Gauges, LimitView, LinkView, NeedView,
    OutageView, RequestDetail, RequestState, RequestView, SteeringView, StepView, Unit, VmDetail,
    VmView,
};

use self::way::Seen;
use crate::contract::VmSpec;
use crate::node::Trouble;
use crate::pods::{DOOR, Journal, NOUN, PodTable, PodWork, Tracked};
use crate::settings::Settings;

/// What the door and its requests are called.
pub const WORDS: DoorWords = DoorWords {
    name: DOOR,
    noun: NOUN,
    nouns: "pods",
    group: "namespace",
    about: "Each pod that is bound to this node gets a microVM on this host. The VM goes when its pod is deleted, and sleeps while its pod is to hibernate.",
};

/// A running kubelet as the house sees it.
#[derive(Debug)]
pub struct KubeletDoor {
    pub(crate) settings: Arc<Settings>,
    pub(crate) work: PodWork,
    pub(crate) pods: Store<Pod>,
    pub(crate) status: Status,
    pub(crate) trouble: Trouble,
}

impl KubeletDoor {
    fn view(&self, pod: &Pod, tracked: Option<&Tracked>) -> RequestView {
        let spec = VmSpec::of(pod);
        let held = self.work.steering.held();
        let seen = Seen { pod, spec: spec.as_ref(), tracked, held };
        shown::request(&seen, &self.work.host, self.work.host.clock.now())
    }

    fn detail(&self, key: &Key, tracked: &Tracked) -> Option<VmDetail> {
        let pod = self.pods.get(key);
        let vm = shown::vm(key, pod.as_deref(), tracked)?;
        Some(VmDetail {
            annotation: None,
            timeline: shown::timeline(tracked, pod.as_deref()),
            decisions: self.work.host.journal.of(&vm.name),
            vm,
        })
    }

    fn gauges(&self) -> Gauges {
        let mut gauges = Gauges::default();
        let mut add = |name: &str, words: &str, used: usize, limit: u64| {
            let (used, limit) = (used as u64, LimitView::At(limit));
            let (words, brief) = (words.to_owned(), name.to_owned());
            gauges.add(name, GaugeView { words, brief, used, limit, ..GaugeView::default() });
        };
        add("pods", "Pods of this node", self.pods.len(), self.settings.pods);
        let limits = &self.work.host.limits;
        for (name, words, limit) in [
            ("pulls", "Snapshots and images being fetched", &limits.pulls),
            ("clones", "microVMs being made", &limits.clones),
            ("saves", "Snapshots being saved", &limits.saves),
        ] {
            add(name, words, limit.used(), limit.most());
        }
        let cache = &self.work.host.cache;
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        gauges.add(
            "snapshot_cache",
            GaugeView {
                words: "Disk of pulled snapshots".to_owned(),
                brief: "cache".to_owned(),
                unit: Unit::Mebibytes,
                used: mib(cache.used()),
                limit: LimitView::At(mib(cache.limit)),
                ..GaugeView::default()
            },
        );
        gauges
    }
}

impl FrontDoor for KubeletDoor {
    fn words(&self) -> DoorWords {
        WORDS
    }

    fn title(&self) -> String {
        format!("node {}", self.settings.node_name)
    }

    fn liveness(&self) -> Vec<CheckView> {
        Vec::new()
    }

    fn readiness(&self) -> Vec<CheckView> {
        let is_synced = self.status.is_synced();
        let words = if is_synced { "pods are listed" } else { "pods are still being listed" };
        let runtime = self.trouble.last();
        let said = runtime.trouble.as_deref().unwrap_or("the runtime answers");
        vec![
            CheckView::new("pods", is_synced, words),
            CheckView::new("runtime", runtime.trouble.is_none(), said),
        ]
    }

    fn summary(&self) -> Summary {
        let is_ready = self.status.is_synced() && self.trouble.last().trouble.is_none();
        let summary = Summary::of(&self.requests(), &self.vms(), is_ready);
        Summary { gauges: self.gauges(), ..summary }
    }

    fn requests(&self) -> Vec<RequestView> {
        let pods = self.pods.objects();
        let view = |pod: &Arc<Pod>| {
            let tracked = self.work.table.get(&Key::of(pod.as_ref()));
            self.view(pod, tracked.as_ref())
        };
        let mut all: Vec<_> = pods.iter().map(view).collect();
        all.sort_by_key(|request| (request.state, request.queued, request.id.clone()));
        all
    }

    fn request(&self, id: &str) -> Option<RequestDetail> {
        let (namespace, name) = id.split_once('/')?;
        let key = Key::new(namespace, name);
        let pod = self.pods.get(&key)?;
        let tracked = self.work.table.get(&key);
        let mut request = self.view(&pod, tracked.as_ref());
        let mut decisions = self.work.host.journal.of(id);
        // How it stands now comes last, with every step as a gate; what is over is a record.
        if request.state != RequestState::Ended {
            decisions.extend(request.verdict.clone());
        }
        request.verdict = request.verdict.map(DecisionView::brief);
        let vm = tracked.and_then(|tracked| self.detail(&key, &tracked));
        Some(RequestDetail::new(request, decisions, vm))
    }

    fn vms(&self) -> Vec<VmView> {
        let pods = self.work.table.all();
        let view =
            |(key, seen): &(Key, Tracked)| shown::vm(key, self.pods.get(key).as_deref(), seen);
        let mut all: Vec<_> = pods.iter().filter_map(view).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    fn vm(&self, name_or_id: &str) -> Option<VmDetail> {
        let key = self.work.table.of_vm(name_or_id, name_or_id)?;
        let tracked = self.work.table.get(&key)?;
        self.detail(&key, &tracked)
    }

    fn forgets_ended(&self) -> bool {
        true
    }

    fn advice(&self, gate: &str) -> Option<&'static str> {
        needs::advice(gate)
    }

    fn runbook(&self) -> Option<&'static str> {
        Some("kubelet-pods-fail")
    }

    fn needs(&self) -> Vec<NeedView> {
        needs::failing(&self.work.table.all())
    }

    fn outages(&self) -> Vec<OutageView> {
        let lost = self.status.server_trouble().into_iter();
        lost.map(|it| api_server_outage(it.since, it.words, WORDS.nouns)).collect()
    }

    fn steering(&self) -> SteeringView {
        self.work.steering.view()
    }

    fn steer(&self) -> Option<&dyn Steer> {
        Some(self)
    }
}

/// The kubelet's own records and its runtime. There is no vCenter behind it: the link is the one to the runtime.
#[derive(Debug)]
pub struct KubeletCore {
    pub(crate) journal: Journal,
    pub(crate) table: PodTable,
    pub(crate) trouble: Trouble,
}

impl Core for KubeletCore {
    fn decisions(&self, query: &DecisionQuery) -> Vec<DecisionView> {
        self.journal.find(query)
    }

    fn overview(&self) -> CoreView {
        let runtime = self.trouble.last();
        let is_well = runtime.trouble.is_none();
        let link = LinkView {
            server: "microVM runtime".to_owned(),
            connected: is_well,
            synced: is_well,
            last_contact: runtime.at,
            trouble: runtime.trouble,
            vms_seen: runtime.vms as u64,
            ..LinkView::default()
        };
        CoreView { link, ..CoreView::default() }
    }

    fn timeline(&self, vm: &str) -> Vec<StepView> {
        let found = self.table.of_vm(vm, vm).and_then(|key| self.table.get(&key));
        found.map(|seen| shown::timeline(&seen, None)).unwrap_or_default()
    }
}
