//! Where a `VirtualMachine` stands on its way from applied to an address. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt as _;
use roost_door::{Course, Stage, Waits};
use roost_fleet::NextLook;
use roost_views::Verdict;

use super::trail::{Record, TOO_MANY_CREATES, words_of};
use crate::api::condition::{ConditionType, Reason, find};
use crate::api::names::annotation;
use crate::api::vm::PowerState;
use crate::api::{VirtualMachine, VirtualMachineImageCache};
use crate::flow::Done;
use crate::provider::Running;

/// What is seen of one object and its VM.
#[derive(Debug)]
pub(super) struct Seen<'a> {
    pub(super) vm: &'a VirtualMachine,
    /// What goes on by itself at its VM.
    pub(super) running: Option<Running>,
    pub(super) passes: &'a Record,
    /// Of its image, if it waits for one.
    pub(super) cache: Option<&'a VirtualMachineImageCache>,
    /// An administrator has paused it in vCenter.
    pub(super) is_paused_in_vcenter: bool,
    /// VMs that are being made, and how many may be.
    pub(super) creates: (u64, u64),
}

/// Reasons that nothing but a person removes.
const FOR_A_PERSON: [Reason; 12] = [
    Reason::NotFound,
    Reason::Forbidden,
    Reason::Invalid,
    Reason::NotSet,
    Reason::UnknownKind,
    Reason::NotSupported,
    Reason::StorageClassRequired,
    Reason::DatastoreNotFound,
    Reason::RequiredKeyNotFound,
    Reason::ZoneMismatch,
    Reason::ImageProviderSecurityNotCompliant,
    Reason::InvalidState,
];

pub(super) fn course(seen: &Seen<'_>) -> Course {
    let mut way = Way { seen, stages: Vec::new(), waits: Waits::Us };
    if seen.vm.is_being_deleted() {
        way.deletion();
    } else {
        way.accepted();
        if !seen.vm.is_created() {
            way.image_cache();
        }
        way.prerequisites();
        way.slot();
        way.placement();
        way.created();
        way.configured();
        way.power();
        way.address();
        way.ready();
    }
    let has_vm = seen.vm.status.as_ref().is_some_and(|status| !status.unique_id.is_empty());
    let is_making = seen.running.is_some_and(|running| running.step == Done::CreateStarted);
    Course {
        has_vm: has_vm || is_making,
        asked: seen.vm.creation_timestamp().map(|time| time.0),
        next_look: Some(next_look(seen.passes.next)),
        waits: way.waits,
        stages: way.stages,
    }
}

fn next_look(next: NextLook) -> String {
    match next {
        NextLook::At(at) => format!("at {at:.0}"),
        NextLook::OnPerson => "when a person has changed something".to_owned(),
        NextLook::Settled | NextLook::OnChange => "when something changes".to_owned(),
    }
}

struct Way<'a> {
    seen: &'a Seen<'a>,
    stages: Vec<Stage>,
    waits: Waits,
}

impl Way<'_> {
    fn push(&mut self, stage: Stage, waits: Waits) {
        let is_first_open = !stage.is_done && self.stages.iter().all(|stage| stage.is_done);
        if is_first_open {
            self.waits = waits;
        }
        self.stages.push(stage);
    }

    fn condition(&self, kind: ConditionType) -> Option<&Condition> {
        find(self.seen.vm.conditions(), kind)
    }

    /// A stage that a condition decides. One that is not there yet is not done before the VM is made.
    fn by_condition(&mut self, name: &'static str, asks: &'static str, kind: ConditionType) {
        let is_created = self.seen.vm.is_created();
        let Some(condition) = self.condition(kind) else {
            let is_needed = !matches!(
                kind,
                ConditionType::BootstrapReady
                    | ConditionType::SetResourcePolicyReady
                    | ConditionType::NetworkReady
            );
            if is_needed && !is_created {
                self.push(Stage::new(name, asks, false), Waits::Us);
            }
            return;
        };
        let holds = condition.status == "True";
        let reason = condition.reason.clone();
        let since = condition.last_transition_time.0;
        let note =
            if condition.message.is_empty() { reason.clone() } else { condition.message.clone() };
        // What was missing before and is missing again does not unmake a VM that is there.
        let mut stage = Stage::new(name, asks, holds || is_created).since(Some(since));
        if !holds {
            stage = stage.noting(note);
        }
        let needs_person = FOR_A_PERSON.iter().any(|known| known.as_str() == reason);
        self.push(stage, if needs_person { Waits::Person } else { Waits::Us });
    }

    fn accepted(&mut self) {
        let vm = self.seen.vm;
        let stage = |is_done| {
            Stage::new("accepted", "it is not paused and has its finalizer", is_done)
                .since(vm.creation_timestamp().map(|time| time.0))
        };
        if vm.is_paused_by_annotation() {
            let why = format!("paused: the annotation {} is on it", annotation::PAUSED);
            return self.push(stage(false).noting(why), Waits::Person);
        }
        if !vm.has_finalizer() {
            return self.push(stage(false).noting("not looked at yet"), Waits::Us);
        }
        self.push(stage(true), Waits::Us);
    }

    fn image_cache(&mut self) {
        let label = crate::api::names::label::IMAGE_CACHE_NAME;
        let Some(name) = self.seen.vm.labels().get(label) else { return };
        let stage = |is_done| {
            Stage::new("image-cache", "the files of its image are on the datastore", is_done)
        };
        match self.seen.cache {
            Some(cache) if cache.is_ready() => self.push(stage(true), Waits::Us),
            Some(cache) => {
                let conditions = cache.status.as_ref().map(|status| &status.conditions);
                let wrong = conditions
                    .and_then(|all| all.iter().find(|it| it.status == "False"))
                    .map(|it| it.message.clone())
                    .filter(|message| !message.is_empty());
                let why = wrong.unwrap_or_else(|| format!("{name} is being copied"));
                self.push(stage(false).noting(why), Waits::Us);
            }
            None => self.push(stage(false).noting(format!("{name} is not there yet")), Waits::Us),
        }
    }

    fn prerequisites(&mut self) {
        use ConditionType as C;
        if !self.seen.vm.is_classless() {
            self.by_condition("class", "its VirtualMachineClass is there", C::ClassReady);
        }
        self.by_condition("image", "its image is there and ready", C::ImageReady);
        self.by_condition("policy", "its resource policy is ready", C::SetResourcePolicyReady);
        self.by_condition("storage", "its storage class names a datastore", C::StorageReady);
        self.by_condition("bootstrap", "the data of its first boot is there", C::BootstrapReady);
        self.by_condition("network", "its networks are there", C::NetworkReady);
    }

    fn slot(&mut self) {
        if self.seen.vm.is_created() {
            return;
        }
        let (used, most) = self.seen.creates;
        let last = self.seen.passes.last_word();
        let waits = last.filter(|passed| passed.words == TOO_MANY_CREATES);
        let stage = Stage::new("slot", "few enough VMs are being made", waits.is_none())
            .weighing(used, most);
        let stage = match waits {
            Some(passed) => stage
                .noting(format!("{used} of {most} VMs are being made"))
                .since(Some(passed.since)),
            None => stage,
        };
        self.push(stage, Waits::Us);
    }

    fn placement(&mut self) {
        self.by_condition("placement", "a place was found", ConditionType::PlacementReady);
    }

    fn created(&mut self) {
        let asks = "vCenter has made it";
        if let Some(running) =
            self.seen.running.filter(|running| running.step == Done::CreateStarted)
        {
            let stage = Stage::new("created", asks, false).since(Some(running.since));
            return self.push(stage.noting(words_of(running.step)), Waits::Us);
        }
        let condition = self.condition(ConditionType::Created);
        let holds = condition.is_some_and(|condition| condition.status == "True");
        let since = condition.map(|condition| condition.last_transition_time.0);
        let message = condition.map(|condition| condition.message.clone()).unwrap_or_default();
        let mut stage = Stage::new("created", asks, holds).since(since);
        if !holds && !message.is_empty() {
            stage = stage.noting(message);
        } else if !holds && let Some(failed) = self.failed() {
            stage = stage.noting(failed);
        }
        self.push(stage, Waits::Us);
    }

    /// Why the last pass failed.
    fn failed(&self) -> Option<String> {
        let last = self.seen.passes.last_word()?;
        matches!(last.verdict, Verdict::Failed | Verdict::Refused).then(|| last.words.clone())
    }

    fn configured(&mut self) {
        if !self.seen.vm.is_created() {
            return;
        }
        let asks = "its configuration is as asked for";
        let stage = |is_done| Stage::new("configured", asks, is_done);
        if self.seen.is_paused_in_vcenter {
            let why = "an administrator has paused it in vCenter";
            return self.push(stage(false).noting(why), Waits::Person);
        }
        let running = self
            .seen
            .running
            .filter(|running| !matches!(running.step, Done::PowerStateUpdated | Done::Restarted));
        if let Some(running) = running {
            let stage = stage(false).noting(words_of(running.step)).since(Some(running.since));
            return self.push(stage, Waits::Us);
        }
        let connected = self.condition(ConditionType::Connected);
        if let Some(lost) = connected.filter(|condition| condition.status == "False") {
            let since = lost.last_transition_time.0;
            let why = if lost.message.is_empty() { &lost.reason } else { &lost.message };
            let stage = stage(false).noting(why.clone()).since(Some(since));
            return self.push(stage, Waits::Others);
        }
        if let Some(why) = self.failed() {
            let last = self.seen.passes.last_word();
            let waits = match last.map(|last| last.verdict) {
                Some(Verdict::Refused) => Waits::Person,
                _ => Waits::Us,
            };
            let since = last.map(|last| last.since);
            return self.push(stage(false).noting(why).since(since), waits);
        }
        let resize = self.condition(ConditionType::ClassConfigurationSynced);
        let since = self.condition(ConditionType::Created).map(|it| it.last_transition_time.0);
        let mut done = stage(true).since(since);
        // It runs as it is; the rest waits for a power-off.
        if let Some(pending) = resize.filter(|condition| condition.status == "False") {
            done = done.noting(pending.message.clone());
        }
        self.push(done, Waits::Us);
    }

    fn power(&mut self) {
        let vm = self.seen.vm;
        if !vm.is_created() {
            return;
        }
        let synced = self.condition(ConditionType::PowerStateSynced);
        let since = synced.map(|condition| condition.last_transition_time.0);
        let is_done = vm.spec.power_state.is_none() || !vm.waits_for_power_state();
        let stage = Stage::new("power", "it has the power state that is asked for", is_done);
        if is_done {
            let now = vm.current_power_state().map(|state| state.to_string()).unwrap_or_default();
            return self.push(stage.noting(now).since(since), Waits::Us);
        }
        let checks = vm.power_on_checks();
        if vm.spec.power_state == Some(PowerState::PoweredOn) && !checks.is_empty() {
            let why = format!("the power-on is held back by {}", checks.join(", "));
            return self.push(stage.noting(why).since(since), Waits::Others);
        }
        let wanted = vm.spec.power_state.map(|state| state.to_string()).unwrap_or_default();
        let is = vm.current_power_state().map_or("unknown".to_owned(), |state| state.to_string());
        let stage = stage.noting(format!("is {is}, shall be {wanted}")).since(since);
        self.push(stage, Waits::Us);
    }

    fn address(&mut self) {
        let vm = self.seen.vm;
        let wants_on = vm.spec.power_state.is_none_or(|state| state == PowerState::PoweredOn);
        let is_off = vm.spec.network.as_ref().is_some_and(|network| network.disabled);
        if !vm.is_created() || !wants_on || is_off {
            return;
        }
        let wait = self.seen.passes.address;
        let stage = |is_done| Stage::new("address", "its guest has an address", is_done);
        if let Some(address) = vm.primary_ip() {
            let since = wait.and_then(|wait| wait.ended);
            return self.push(stage(true).noting(address).since(since), Waits::Others);
        }
        let began = wait.map(|wait| wait.began);
        let why = "its guest has reported none yet; VMware Tools in it do that";
        self.push(stage(false).noting(why).since(began), Waits::Others);
    }

    fn ready(&mut self) {
        if self.seen.vm.spec.readiness_probe.is_none() || !self.seen.vm.is_created() {
            return;
        }
        let ready = self.condition(ConditionType::Ready);
        let is_done = ready.is_some_and(|condition| condition.status == "True");
        let mut stage = Stage::new("ready", "its readiness probe succeeds", is_done)
            .since(ready.map(|condition| condition.last_transition_time.0));
        if let Some(not_yet) = ready.filter(|_| !is_done) {
            stage = stage.noting(not_yet.message.clone());
        }
        self.push(stage, Waits::Others);
    }

    fn deletion(&mut self) {
        let vm = self.seen.vm;
        let asked: Option<Timestamp> = vm.metadata.deletion_timestamp.as_ref().map(|time| time.0);
        let checks = vm.delete_checks();
        let held = if vm.is_paused_by_annotation() {
            let why = format!("paused: the annotation {} is on it", annotation::PAUSED);
            Some((why, Waits::Person))
        } else if checks.is_empty() {
            None
        } else {
            let why = format!("the deletion is held back by {}", checks.join(", "));
            Some((why, Waits::Others))
        };
        let stage = Stage::new("released", "nobody holds the deletion back", held.is_none());
        match held {
            Some((why, waits)) => self.push(stage.noting(why).since(asked), waits),
            None => self.push(stage.since(asked), Waits::Us),
        }
        let stage = Stage::new("deleted", "vCenter has deleted the VM", false);
        let stage = match (self.seen.running, self.failed()) {
            (Some(running), _) => stage.noting(words_of(running.step)).since(Some(running.since)),
            (None, Some(why)) => stage.noting(why).since(asked),
            (None, None) => stage.since(asked),
        };
        self.push(stage, Waits::Us);
    }
}
