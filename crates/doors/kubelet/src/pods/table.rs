//! What the kubelet knows of its pods. The pods and the runtime hold the truth; this is rebuilt at every start.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use roost_controller::Key;
use roost_microvm::{Progress, VmRecord};

use super::checks::Checks;
use super::history::History;
use crate::contract::{Intent, VmSpec};

/// Between attempts at what failed: from the first to the longest, doubled.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// All pods of this node.
#[derive(Debug, Clone, Default)]
pub(crate) struct PodTable {
    pods: Arc<Mutex<BTreeMap<Key, Tracked>>>,
}

/// One pod with what backs it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tracked {
    /// Of the pod object that this is about: a new pod of the same name is another one.
    pub(crate) uid: String,
    /// As it was when the VM was made: it also says how the VM goes when the pod object is gone.
    pub(crate) spec: Option<VmSpec>,
    pub(crate) vm: Option<VmRecord>,
    pub(crate) address: Option<IpAddr>,
    pub(crate) started: Option<Timestamp>,
    pub(crate) activity: Option<Activity>,
    pub(crate) failure: Option<Failure>,
    pub(crate) ready: bool,
    pub(crate) probed: String,
    /// The probes that the pod itself asks for.
    pub(crate) checks: Option<Arc<Checks>>,
    /// Why the VM is to be started anew although it runs.
    pub(crate) unhealthy: Option<String>,
    pub(crate) restarts: i32,
    pub(crate) restarted: Option<Timestamp>,
    pub(crate) ending: Option<Ending>,
    pub(crate) intent: Option<Intent>,
    /// Base64 is made when it is written.
    pub(crate) hint: Option<String>,
    pub(crate) post_clone: Option<PostCloneState>,
    pub(crate) debt: Debt,
    /// What the pod calls its VM, by id and by name: nobody else may take it for an orphan.
    pub(crate) named: Vec<String>,
    /// What was asked of the pod when it was last looked at.
    pub(crate) asked: Option<u64>,
    /// Its VM was removed because the pod is to go.
    pub(crate) is_removed: bool,
    /// Found at the start, with its guest running since then.
    pub(crate) adopted: Option<Timestamp>,
    /// It hibernates and is about to go, so that nobody may take it for awake.
    pub(crate) is_leaving: bool,
    /// What was saved of it lies in the registry although it runs.
    pub(crate) has_stale_tag: bool,
    /// What is being fetched or sent for it.
    pub(crate) transfer: Option<Progress>,
    pub(crate) history: History,
}

impl Tracked {
    pub(crate) fn enter(&mut self, activity: Activity, now: Timestamp) {
        self.activity = Some(activity);
        self.history.enter(activity, now);
    }

    /// The step is over, well or not.
    fn leave(&mut self, now: Timestamp) {
        (self.activity, self.transfer) = (None, None);
        self.history.leave(now, self.failure.is_none());
    }
}

/// How far the network of a copied guest is its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PostCloneState {
    Running,
    Done,
    Failed,
}

impl PostCloneState {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::Running, Self::Done, Self::Failed].into_iter().find(|it| it.as_str() == text)
    }
}

/// Whether a kubelet that died still owed the guest a network of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Debt {
    #[default]
    None,
    /// To be looked at.
    Open,
    /// Somebody finds out.
    Checked,
}

/// What is being done, from its start to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    Creating(Waiting),
    Restarting,
    Hibernating,
    Waking(Waiting),
    Deleting,
    Evicting,
    /// What was saved for a hibernation that did not come about is removed.
    DroppingTag,
}

/// Why a container waits, as its status says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    Queued,
    PullingImage,
    PullingSnapshot,
    Cloning,
    Booting,
}

impl Waiting {
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Queued => "Queued",
            Self::PullingImage => "PullingImage",
            Self::PullingSnapshot => "PullingSnapshot",
            Self::Cloning => "Cloning",
            Self::Booting => "Booting",
        }
    }
}

/// Something did not work and is tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) attempts: u32,
    pub(crate) retry: Timestamp,
}

impl Failure {
    /// After one more attempt.
    pub(crate) fn again(
        before: Option<&Self>,
        reason: &'static str,
        message: String,
        now: Timestamp,
    ) -> Self {
        let attempts = before.map_or(1, |before| before.attempts.saturating_add(1));
        let factor = 1_u32.checked_shl(attempts - 1).unwrap_or(u32::MAX);
        let pause = FIRST_PAUSE.saturating_mul(factor).min(LONGEST_PAUSE);
        Self { reason, message, attempts, retry: now + pause }
    }
}

/// The VM is lost and the pod goes with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// The pod object is deleted already.
    pub(crate) told: bool,
}

impl PodTable {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Tracked>> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Tracked> {
        self.lock().get(key).cloned()
    }

    pub(crate) fn all(&self) -> Vec<(Key, Tracked)> {
        self.lock().iter().map(|(key, pod)| (key.clone(), pod.clone())).collect()
    }

    pub(crate) fn put(&self, key: Key, pod: Tracked) {
        self.lock().insert(key, pod);
    }

    pub(crate) fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    /// Changes a pod that is known; nothing if it is not.
    pub(crate) fn change<T>(&self, key: &Key, change: impl FnOnce(&mut Tracked) -> T) -> Option<T> {
        self.lock().get_mut(key).map(change)
    }

    /// A step is over.
    pub(crate) fn leave(&self, key: &Key, now: Timestamp) {
        self.change(key, |pod| pod.leave(now));
    }

    /// The ids of all VMs, and the names that pods have or will have for theirs.
    pub(crate) fn claims(&self) -> BTreeSet<String> {
        let pods = self.lock();
        let ids = pods.values().filter_map(|pod| Some(pod.vm.as_ref()?.id.clone()));
        let names = pods.values().filter_map(|pod| Some(pod.spec.as_ref()?.name.clone()));
        let named = pods.values().flat_map(|pod| pod.named.iter().cloned());
        ids.chain(names).chain(named).collect()
    }

    /// Makes the VM's name this pod's. `Err`: it is that of another pod, which comes first. VMs of others may be shown by several pods.
    pub(crate) fn claim(&self, key: &Key, spec: &VmSpec) -> Result<(), Key> {
        let mut pods = self.lock();
        let has = |pod: &Tracked| {
            pod.spec.as_ref().is_some_and(|other| other.managed && other.name == spec.name)
        };
        let holder = pods.iter().find(|(other, pod)| *other != key && has(pod));
        if let (true, Some((other, _))) = (spec.managed, holder) {
            return Err(other.clone());
        }
        if let Some(pod) = pods.get_mut(key) {
            pod.spec = Some(spec.clone());
        }
        Ok(())
    }

    /// Annotations may change while the VM runs: the policy that it is saved by, whether its snapshot is kept. Whose VM it is stays.
    pub(crate) fn follow(&self, key: &Key, uid: &str, spec: &VmSpec) {
        self.change(key, |pod| {
            let Some(known) = pod.spec.as_mut().filter(|_| pod.uid == uid) else { return };
            if known.name == spec.name && known.managed == spec.managed && known != spec {
                *known = spec.clone();
            }
        });
    }

    /// How many pods have a VM.
    pub(crate) fn vms(&self) -> usize {
        self.lock().values().filter(|pod| pod.vm.is_some()).count()
    }

    /// By the id or name of its VM.
    pub(crate) fn of_vm(&self, id: &str, name: &str) -> Option<Key> {
        let pods = self.lock();
        let is_it = |pod: &Tracked| {
            pod.vm.as_ref().is_some_and(|vm| vm.id == id || (!name.is_empty() && vm.name() == name))
        };
        pods.iter().find(|(_, pod)| is_it(pod)).map(|(key, _)| key.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::key;
    use crate::testing::pod;

    fn spec(annotations: &[(&str, &str)]) -> VmSpec {
        let mut all = vec![(key::VM_NAME, "x"), (key::MANAGED, "true")];
        all.extend(annotations);
        VmSpec::of(&pod("a", &all)).unwrap()
    }

    #[test]
    fn a_name_belongs_to_the_first_pod_that_asks_until_it_is_forgotten() {
        let table = PodTable::default();
        let [a, b] = ["a", "b"].map(|name| Key::of(&pod(name, &[])));
        for key in [&a, &b] {
            table.put(key.clone(), Tracked::default());
        }
        assert_eq!(table.claim(&a, &spec(&[])), Ok(()));
        assert_eq!(table.claim(&a, &spec(&[])), Ok(()), "it is its own");
        assert_eq!(table.claim(&b, &spec(&[])), Err(a.clone()));
        assert_eq!(table.claim(&b, &spec(&[(key::VM_NAME, "y")])), Ok(()));
        table.forget(&a);
        assert_eq!(table.claim(&b, &spec(&[])), Ok(()));
    }

    #[test]
    fn annotations_that_change_are_followed_and_vms_do_not_change_hands() {
        let table = PodTable::default();
        let key = Key::of(&pod("a", &[]));
        let known = Some(spec(&[]));
        table.put(
            key.clone(),
            Tracked { uid: "u".into(), spec: known.clone(), ..Tracked::default() },
        );
        let has = || table.get(&key).unwrap().spec;
        let kept = spec(&[(key::KEEP_SNAPSHOT, "true")]);
        table.follow(&key, "another", &kept);
        assert_eq!(has(), known, "that is another pod's");
        table.follow(&key, "u", &kept);
        assert!(has().unwrap().keep_snapshot);
        table.follow(&key, "u", &spec(&[(key::MANAGED, "false")]));
        table.follow(&key, "u", &spec(&[(key::VM_NAME, "y")]));
        assert_eq!(has(), Some(kept));
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let now = Timestamp::UNIX_EPOCH;
        let mut failure = None;
        let mut pauses = Vec::new();
        for _ in 0..40 {
            let next = Failure::again(failure.as_ref(), "x", String::new(), now);
            pauses.push(next.retry.duration_since(now).as_secs());
            failure = Some(next);
        }
        assert_eq!(pauses[..5], [1, 2, 4, 8, 16]);
        assert_eq!(pauses.last(), Some(&300));
    }
}
