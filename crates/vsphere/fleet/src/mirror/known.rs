//! What we know of a VM at first hand, beside what the stream says of it.

use std::sync::Arc;
use std::time::Duration;

use roost_supervise::Backoff;

use super::paths::{Reading, forget_boot};
use super::vm::{Power, Vm};
use super::wrote::Wrote;
use crate::VmId;

/// How long the stream may take to say what we know already before the VM is read by itself. A well-behaved server answers
/// within milliseconds.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// A VM that stays in doubt is read again this seldom in the end.
const MOST_BETWEEN_READS: Duration = Duration::from_mins(1);

/// So many answers after we learned something, the stream has been asked after it: one may have been applied and not yet
/// counted, one may have been on its way.
const CAUGHT_UP: u32 = 3;

#[derive(Debug)]
pub(super) struct Known {
    /// The stream's row. Only the stream changes it, because the stream tells differences to what it told before.
    pub(super) base: Option<Vm>,
    pub(super) what: What,
    /// The configuration's version by the last read.
    version: Option<Arc<str>>,
    /// Answers of the stream since we learned something new.
    answers: u32,
    pub(super) reads: u32,
    /// The stream has told something of the VM since the last answer.
    pub(super) stirred: bool,
}

#[derive(Debug)]
pub(super) enum What {
    Is(Wrote),
    Gone,
}

/// What is to be done after an answer of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The stream knows all that we know; from here on its word counts.
    Settled,
    Wait,
    /// The VM is to be read after this time.
    Look(Duration),
}

impl Known {
    pub(super) fn new(base: Option<Vm>, what: What) -> Self {
        Self { base, what, version: None, answers: 0, reads: 0, stirred: false }
    }

    pub(super) fn agrees(&self, reading: &Reading) -> bool {
        match (&self.what, &self.base) {
            (What::Is(wrote), Some(base)) => wrote.agrees(base, reading),
            (What::Gone, None) => true,
            (What::Is(_), None) | (What::Gone, Some(_)) => false,
        }
    }

    /// The row that is shown.
    pub(super) fn shown(&self, id: &VmId, reading: &Reading) -> Option<Vm> {
        let What::Is(wrote) = &self.what else { return None };
        let mut vm = self.base.clone().unwrap_or_else(|| Vm::unknown(id.clone()));
        if !wrote.config_agrees(&vm, reading) {
            vm.change_version.clone_from(&self.version);
        }
        wrote.write_over(&mut vm, reading);
        // An answer that was on its way when the power changed tells of the boot before.
        if vm.power != Power::On || wrote.moves_power() && self.answers == 0 && self.reads == 0 {
            forget_boot(&mut vm.guest);
        }
        Some(vm)
    }

    pub(super) fn answered(&mut self, reading: &Reading) -> Next {
        self.answers += 1;
        let stirred = std::mem::take(&mut self.stirred);
        let caught_up = self.answers >= CAUGHT_UP;
        match self.agrees(reading) {
            true if caught_up => Next::Settled,
            false if stirred || self.reads == 0 => Next::Look(Duration::ZERO),
            false if caught_up => Next::Look(pause_after(self.reads)),
            true | false => Next::Wait,
        }
    }

    /// The VM was read and is there.
    pub(super) fn found(&mut self, read: &Vm, reading: &Reading) {
        let What::Is(before) = &self.what else { return };
        let now = before.corrected_by(read);
        if now != *before {
            self.answers = 0;
        } else if self.is_unannounced()
            && let Some(base) = &mut self.base
        {
            now.write_over(base, reading);
        }
        self.what = What::Is(now);
        self.version.clone_from(&read.change_version);
        self.reads += 1;
    }

    /// The VM was read once more and is not there.
    pub(super) fn missed(&mut self) {
        if self.is_unannounced() {
            self.base = None;
        }
        self.reads += 1;
    }

    /// Whether the stream was asked between the last read and this one and said nothing: then it never will.
    fn is_unannounced(&self) -> bool {
        self.reads > 0 && self.answers >= CAUGHT_UP
    }
}

/// How long to wait before a read when there were so many.
pub(super) fn pause_after(reads: u32) -> Duration {
    Backoff::new(PATIENCE, MOST_BETWEEN_READS).pause(reads.saturating_add(1))
}
