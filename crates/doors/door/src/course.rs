//! The way of an object to its VM: for doors that keep what an object asks for.

use jiff::Timestamp;
use roost_views::{
    DecisionView, GateView, LimitView, Part, RequestState, Served, SubjectKind, Verdict,
};

use crate::DoorWords;

/// One step of the way. A door declares them in order; the first that is not done is where the request stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// One word of a closed set, such as `iso`.
    pub name: &'static str,
    /// What it asks, for those who do not know it by name.
    pub asks: &'static str,
    pub is_done: bool,
    /// How it stands, such as why it is not done.
    pub note: Option<String>,
    /// When it came to stand so.
    pub since: Option<Timestamp>,
    /// The part of its life that a VM is in while this is not done.
    pub part: Part,
    /// Of a step that asks for an amount: what is needed, what is taken, and how much there may be.
    pub measure: Option<(u64, u64, u64)>,
}

impl Stage {
    pub fn new(name: &'static str, asks: &'static str, is_done: bool) -> Self {
        Self { name, asks, is_done, note: None, since: None, part: Part::Starting, measure: None }
    }

    #[must_use]
    pub fn noting(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into()).filter(|note| !note.is_empty());
        self
    }

    #[must_use]
    pub fn since(mut self, since: Option<Timestamp>) -> Self {
        self.since = since;
        self
    }

    /// One more is needed, so many are there, and there may be so many.
    #[must_use]
    pub fn weighing(mut self, have: u64, limit: u64) -> Self {
        self.measure = Some((1, have, limit));
        self
    }

    /// The VM is up, and whoever wanted it gets to know it.
    #[must_use]
    pub fn joining(mut self) -> Self {
        self.part = Part::Joining;
        self
    }

    fn gate(&self) -> GateView {
        GateView {
            name: self.name.to_owned(),
            passed: self.is_done,
            need: self.measure.map(|(need, ..)| need),
            have: self.measure.map(|(_, have, _)| have),
            limit: self.measure.map(|(.., limit)| LimitView::At(limit)),
            note: self.note.clone(),
            words: Some(self.asks.to_owned()),
        }
    }
}

/// Who has to move before the step that blocks is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Waits {
    /// This service, or something that it waits for.
    #[default]
    Us,
    /// Another program.
    Others,
    /// A person.
    Person,
}

/// The whole way of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Course {
    pub stages: Vec<Stage>,
    /// Who has to move next.
    pub waits: Waits,
    /// There is a VM, or one is being made.
    pub has_vm: bool,
    /// When the object appeared.
    pub asked: Option<Timestamp>,
    /// When it is looked at again, in words.
    pub next_look: Option<String>,
}

impl Course {
    /// Where it stands; `None` at the end of the way.
    pub fn stands_at(&self) -> Option<&Stage> {
        self.stages.iter().find(|stage| !stage.is_done)
    }

    pub fn state(&self) -> RequestState {
        let served = match (self.stands_at(), self.has_vm) {
            (None, _) => Served::By(Part::Working),
            (Some(stage), true) => Served::By(stage.part),
            (Some(_), false) => Served::Nothing,
        };
        RequestState::of(served, Some(self.verdict()))
    }

    /// How a request stands whose VM is in this part of its life, if it has one: it stands where its VM does. `is_over`: nobody asks for it any more.
    pub fn standing(&self, vm: Option<Part>, is_over: bool) -> RequestState {
        let served = match vm {
            Some(part) => Served::By(part),
            None if is_over => Served::Over,
            None => Served::Nothing,
        };
        // What is at its end without a VM of ours waits for nobody here.
        let has_arrived = vm.is_none() && self.stands_at().is_none();
        let verdict = if has_arrived { Verdict::Skipped } else { self.verdict() };
        RequestState::of(served, Some(verdict))
    }

    fn verdict(&self) -> Verdict {
        match (self.stands_at(), self.waits, self.has_vm) {
            (None, ..) => Verdict::Spawned,
            (_, Waits::Person, true) => Verdict::Failed,
            (_, Waits::Person, false) => Verdict::Refused,
            (_, _, true) => Verdict::Spawned,
            (_, _, false) => Verdict::Deferred,
        }
    }

    /// How many steps are done or under way.
    fn reached(&self) -> usize {
        let stand = self.stages.iter().position(|stage| !stage.is_done);
        stand.map_or(self.stages.len(), |place| place + 1)
    }

    /// When it is looked at again, and which steps come then.
    fn next(&self) -> String {
        let when = self.next_look.as_deref().unwrap_or("when something changes");
        let ahead: Vec<_> = self.stages[self.reached()..].iter().map(|stage| stage.name).collect();
        if ahead.is_empty() {
            return when.to_owned();
        }
        format!("{when}; still ahead: {}", ahead.join(", "))
    }

    /// What is to be said of it, with every step so far as a gate.
    pub fn decision(&self, door: &DoorWords, id: &str, vm: Option<&str>) -> DecisionView {
        let stand = self.stands_at();
        let arrived = self.stages.last().and_then(|stage| stage.note.clone());
        let reason = match stand {
            Some(stage) => stage.note.clone().unwrap_or_else(|| format!("not yet: {}", stage.asks)),
            None => arrived.unwrap_or_else(|| "it is as asked for".to_owned()),
        };
        let since = stand.or(self.stages.last()).and_then(|stage| stage.since);
        let since = since.or(self.asked).unwrap_or(Timestamp::UNIX_EPOCH);
        DecisionView {
            seq: 0,
            at: since,
            door: door.name.to_owned(),
            subject_kind: SubjectKind::Request(door.noun.to_owned()),
            subject: id.to_owned(),
            subject_name: None,
            verdict: self.verdict(),
            reason,
            bound_by: stand.map(|stage| stage.name.to_owned()),
            gates: self.stages[..self.reached()].iter().map(Stage::gate).collect(),
            next_look: stand.map(|_| self.next()),
            vm: vm.map(str::to_owned),
            times: 1,
            since,
        }
    }

    /// Until its VM did what it is for, or until now.
    pub fn waited_secs(&self, now: Timestamp) -> Option<u64> {
        let until = match self.stands_at() {
            Some(_) => now,
            None => self.stages.last()?.since?,
        };
        u64::try_from(until.as_second().saturating_sub(self.asked?.as_second())).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: DoorWords = DoorWords {
        name: "toys",
        noun: "toy",
        nouns: "toys",
        group: "shelf",
        about: "Each toy gets a VM.",
    };

    fn course(done: usize, waits: Waits, has_vm: bool) -> Course {
        let stage = |number: usize, name| {
            let stage = Stage::new(name, "it is there", number < done);
            stage.since(Some(Timestamp::constant(100 + i64::try_from(number).unwrap(), 0)))
        };
        let stages = ["disk", "vm", "ready"].into_iter().enumerate();
        let stages = stages.map(|(number, name)| stage(number, name)).collect();
        let asked = Some(Timestamp::constant(90, 0));
        Course { stages, waits, has_vm, asked, next_look: Some("soon".to_owned()) }
    }

    #[test]
    fn the_first_step_that_is_not_done_is_where_it_stands() {
        let now = Timestamp::constant(190, 0);
        for (done, waits, has_vm, state, verdict, bound_by, waited) in [
            (0, Waits::Us, false, RequestState::Waiting, Verdict::Deferred, Some("disk"), 100),
            (0, Waits::Person, false, RequestState::Refused, Verdict::Refused, Some("disk"), 100),
            (1, Waits::Us, true, RequestState::Starting, Verdict::Spawned, Some("vm"), 100),
            (2, Waits::Person, true, RequestState::Starting, Verdict::Failed, Some("ready"), 100),
            (3, Waits::Us, true, RequestState::Working, Verdict::Spawned, None, 12),
        ] {
            let course = course(done, waits, has_vm);
            let said = course.decision(&WORDS, "a/b", None);
            assert_eq!(course.state(), state, "{course:?}");
            assert_eq!((said.verdict, said.bound_by.as_deref()), (verdict, bound_by));
            assert_eq!(course.waited_secs(now), Some(waited));
            assert_eq!(said.next_look.is_some(), bound_by.is_some());
            assert_eq!(said.gates.iter().filter(|gate| gate.passed).count(), done);
            assert_eq!(said.gates.len(), 3.min(done + 1), "what is ahead is not weighed yet");
        }
    }

    #[test]
    fn one_whose_vm_is_up_and_not_known_yet_is_joining() {
        let mut course = course(2, Waits::Us, true);
        course.stages[2] = course.stages[2].clone().joining();
        assert_eq!(course.state(), RequestState::Joining);
    }

    #[test]
    fn a_request_stands_where_its_vm_does() {
        for (done, has_vm, vm, is_over, state) in [
            (1, true, Some(Part::Leaving), false, RequestState::Leaving),
            (3, true, Some(Part::Leaving), true, RequestState::Leaving),
            (3, true, Some(Part::Joining), false, RequestState::Joining),
            (0, false, None, false, RequestState::Waiting),
            (0, false, None, true, RequestState::Ended),
            (3, false, None, false, RequestState::Skipped),
        ] {
            let course = course(done, Waits::Us, has_vm);
            assert_eq!(course.standing(vm, is_over), state, "{course:?}");
        }
        let refused = course(0, Waits::Person, false);
        assert_eq!(refused.standing(None, false), RequestState::Refused);
    }

    #[test]
    fn the_reason_is_the_note_of_the_step_that_blocks() {
        let mut course = course(1, Waits::Us, false);
        assert_eq!(course.decision(&WORDS, "a/b", None).reason, "not yet: it is there");
        course.stages[1].note = Some("no datastore has room".to_owned());
        let said = course.decision(&WORDS, "a/b", None);
        assert_eq!(said.reason, "no datastore has room");
        assert_eq!(said.next_look.as_deref(), Some("soon; still ahead: ready"));
    }
}
