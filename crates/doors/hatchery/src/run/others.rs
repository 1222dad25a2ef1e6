//! Other processes under our name. Two of them would plan the same jobs, give the same addresses and delete each other's half-made VMs.
//!
//! Every VM that a process makes or claims bears its mark. A mark of another process that appears after we began to look shows that this process is
//! at work:
//!
//! ```text
//!   it began before us:  we stand by until it was silent for a while and does not answer; then it has ended, and we go on
//!   it began after us:   we answer, go on, and leave alone what it is about to finish
//!   it leaves no mark:   CDS's own hatchery, or an older Roost; we go on and say it
//! ```
//!
//! A process that is idle leaves no new marks, so it is asked: whoever begins, or is about to go on, writes its mark on one VM that bears another's.
//! A process that was first and is alive writes its own mark over it. A new process can so be started before the old one is stopped: it waits
//! while the old one works, and takes over when that is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use roost_fleet::{Decided, Draft, Gate, Label, MachineError, Rewrite, Snapshot, VmId};
use roost_supervise::{Chain, Tasks};
use tokio::time::{Instant, sleep, timeout};

use super::context::Context;
use super::holding::own_annotation;
use super::scheduler::lock;
use super::spawn;
use crate::annotation::Annotation;
use crate::clone_spec::sign;
use crate::door::{HATCHERY, phase};
use crate::names::VmName;
use crate::process::ProcessMark;
use crate::time::{elapsed, is_recent};

pub(super) const TASK: &str = "other-processes";

/// What binds a decision because of another process.
pub(crate) const GATE: &str = "other-process";
/// An earlier process that has done nothing for this long has ended, as far as starting workers is concerned. A hand-over waits for it.
const SILENT: Duration = Duration::from_mins(2);
/// For so long it is said that another process was there.
const SAID: Duration = Duration::from_mins(15);
/// An answer is a change as ours was, and may take twice as long; this long beside it, to be heard and to hear. A start waits for it.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);
/// A vCenter that takes longer to change a VM is not waited for.
const ASKS_WITHIN: Duration = Duration::from_secs(10);
/// A burst of changes is one look.
const BETWEEN: Duration = Duration::from_millis(200);
/// Without any change it is looked at least so often whether we can go on.
const AT_LEAST: Duration = Duration::from_secs(15);

/// Who else is at work under our name.
#[derive(Debug)]
pub(crate) struct Others {
    own: ProcessMark,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// The inventory that was looked at last; `None` before the first look.
    inventory: Option<(u64, BTreeMap<VmId, Mine>)>,
    /// VMs on which a later process asks whether somebody is there.
    asked: BTreeSet<VmId>,
    /// For whom we stand by, until it is known to be gone.
    before_us: Option<Other>,
    acts: BTreeMap<Option<ProcessMark>, Act>,
    /// VMs that another process is about to finish, since when.
    theirs: BTreeMap<VmId, Timestamp>,
}

/// A VM of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mine {
    name: Arc<str>,
    process: Option<ProcessMark>,
}

/// What another process did last.
#[derive(Debug, Clone)]
struct Act {
    first: Timestamp,
    last: Timestamp,
    vm: Arc<str>,
}

/// Another process that was at work under our name lately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Other {
    pub(crate) process: Option<ProcessMark>,
    pub(crate) order: Order,
    pub(crate) last: Timestamp,
    /// What it made or claimed last.
    pub(crate) vm: Arc<str>,
}

/// How another process stands to this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    /// It began before us: we stand by.
    Earlier,
    /// It began after us: it stands by.
    Later,
    /// It does not say.
    Unmarked,
}

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.process {
            Some(process) => {
                write!(f, "a process of the same name that began at {:.0}", process.started())?;
            }
            None => f.write_str("a hatchery of the same name that leaves no mark")?,
        }
        write!(f, " is at work: it marked {} at {:.0}", self.vm, self.last)?;
        f.write_str(match self.order {
            Order::Earlier => "; this one stands by until that one has ended",
            Order::Later => "; this one was first and goes on",
            Order::Unmarked => "; one of them must be stopped",
        })
    }
}

impl Others {
    pub(crate) fn new(own: ProcessMark) -> Self {
        Self { own, seen: Mutex::default() }
    }

    /// What our own VMs are marked with.
    pub(crate) fn own(&self) -> &ProcessMark {
        &self.own
    }

    /// Takes in an inventory. Returns who is at work and was not known to be.
    fn look(&self, snapshot: &Snapshot, hatchery: &str, now: Timestamp) -> Vec<Other> {
        let (mut seen, mut news) = (lock(&self.seen), Vec::new());
        seen.acts.retain(|_, act| is_recent(act.last, now, SAID));
        if seen.inventory.as_ref().is_some_and(|(at, _)| *at == snapshot.generation()) {
            return news;
        }
        let before = seen.inventory.take().map(|(_, before)| before);
        let mut found = BTreeMap::new();
        for vm in snapshot.owned_by(HATCHERY, hatchery) {
            let Some(annotation) = own_annotation(vm, hatchery) else { continue };
            let mine = Mine { name: Arc::clone(&vm.name), process: annotation.process.clone() };
            found.insert(vm.id.clone(), mine.clone());
            if mine.process.as_ref() == Some(&self.own) {
                seen.theirs.remove(&vm.id);
                continue;
            }
            // What was there before the first look is what an earlier process left.
            let Some(before) = &before else { continue };
            let earlier = before.get(&vm.id);
            if earlier.is_some_and(|earlier| earlier.process == mine.process) {
                continue;
            }
            let is_same = earlier.is_some_and(|earlier| earlier.name == mine.name);
            match &mine.process {
                // A mark that somebody took away is no sign of work.
                None if earlier.is_some() => continue,
                Some(process) if is_same && *process > self.own => {
                    seen.asked.insert(vm.id.clone());
                }
                Some(_) | None => {}
            }
            if !is_same {
                seen.theirs.insert(vm.id.clone(), now);
            }
            let known = seen.acts.get(&mine.process);
            let first = known.map(|known| known.first);
            let act = Act { first: first.unwrap_or(now), last: now, vm: mine.name };
            let other = self.other(mine.process.as_ref(), &act);
            if other.order == Order::Earlier {
                seen.before_us = Some(other.clone());
            }
            if first.is_none() {
                news.push(other);
            }
            seen.acts.insert(mine.process, act);
        }
        seen.theirs.retain(|vm, _| found.contains_key(vm));
        seen.inventory = Some((snapshot.generation(), found));
        news
    }

    /// We wrote our mark on it. What stands there next is somebody's answer, also if it is what stood there before.
    fn signed(&self, vm: &VmId) {
        let mut seen = lock(&self.seen);
        if let Some(mine) = seen.inventory.as_mut().and_then(|(_, known)| known.get_mut(vm)) {
            mine.process = Some(self.own.clone());
        }
    }

    fn other(&self, process: Option<&ProcessMark>, act: &Act) -> Other {
        let order = match process {
            None => Order::Unmarked,
            Some(process) if *process < self.own => Order::Earlier,
            Some(_) => Order::Later,
        };
        let Act { last, vm, .. } = act.clone();
        Other { process: process.cloned(), order, last, vm }
    }

    /// Who else was at work lately; one who was before us first.
    pub(crate) fn at_work(&self, now: Timestamp) -> Option<Other> {
        let seen = lock(&self.seen);
        let lately = seen.acts.iter().filter(|(_, act)| is_recent(act.last, now, SAID));
        lately
            .map(|(process, act)| self.other(process.as_ref(), act))
            .min_by_key(|other| other.order)
    }

    /// For whom nothing is begun and nothing deleted here.
    pub(crate) fn stands_by(&self) -> Option<Other> {
        lock(&self.seen).before_us.clone()
    }

    /// Whether it is time to ask if the one that we stand by for is still there.
    fn is_silent(&self, now: Timestamp) -> bool {
        self.stands_by().is_some_and(|other| !is_recent(other.last, now, SILENT))
    }

    /// VMs that another process is about to finish, which takes it `within` at most.
    pub(crate) fn theirs(&self, within: Duration, now: Timestamp) -> BTreeSet<VmId> {
        let seen = lock(&self.seen);
        let fresh = seen.theirs.iter().filter(|(_, since)| elapsed(**since, now) < within);
        fresh.map(|(vm, _)| vm.clone()).collect()
    }
}

/// A VM on which whoever was before us can be asked whether it is alive: one that bears a mark of it. A worker's rather than a spare's, which may be
/// about to be claimed.
fn where_to_ask(snapshot: &Snapshot, hatchery: &str, own: &ProcessMark) -> Option<VmId> {
    let marked = snapshot.owned_by(HATCHERY, hatchery).filter_map(|vm| {
        let annotation = own_annotation(vm, hatchery)?;
        let is_fit = !vm.template && annotation.doomed.is_none();
        let process = annotation.process.as_ref().filter(|process| is_fit && *process < own)?;
        Some((VmName::of(&vm.name) == VmName::Worker, process.clone(), vm.id.clone()))
    });
    marked.max().map(|(.., vm)| vm)
}

impl Context {
    /// For whom we stand by, if for anybody, by what the inventory shows now. Says who is at work when that is news.
    pub(crate) fn look_for_others(&self) -> Option<Other> {
        let now = self.now();
        let news = self.others.look(&self.mirror.snapshot(), self.hatchery(), now);
        for other in news {
            match other.order {
                Order::Earlier => tracing::warn!(vm = %other.vm, "{other}"),
                Order::Later | Order::Unmarked => tracing::error!(vm = %other.vm, "{other}"),
            }
            let verdict = match other.order {
                Order::Earlier => Decided::Deferred,
                Order::Later | Order::Unmarked => Decided::Skipped,
            };
            let gate = Gate::plain(GATE, false).noting(other.to_string());
            let subject = HATCHERY.about_service(self.hatchery());
            let draft = Draft::new(subject, verdict, other.to_string()).gates(vec![gate]);
            self.decide(draft, GATE);
        }
        self.metrics.own.other_process(self.others.at_work(now).is_some());
        self.others.stands_by()
    }

    /// Asks whether whoever was before us is alive, if a VM bears its mark. Returns for whom we stand by after that.
    pub(super) async fn ask_earlier_process(&self) -> Option<Other> {
        self.look_for_others();
        let vm = where_to_ask(&self.mirror.snapshot(), self.hatchery(), self.others.own())?;
        let began = Instant::now();
        match timeout(ASKS_WITHIN, self.sign(&vm)).await {
            Ok(Ok(())) => sleep(ANSWERS_WITHIN + began.elapsed() * 2).await,
            // A start is not held up by it: what the other one does will be seen.
            Ok(Err(error)) => {
                tracing::warn!(%vm, "an earlier process is not asked: {}", Chain(&error));
            }
            Err(_) => tracing::warn!(%vm, "an earlier process is not asked: it takes too long"),
        }
        self.look_for_others()
    }

    /// Writes our mark on a VM, over that of another process.
    async fn sign(&self, vm: &VmId) -> Result<(), MachineError> {
        let phase = phase::MARKING;
        let signing = |label: &Label| {
            let own = Annotation::parse(&label.annotation).ok();
            let Some(annotation) = own.filter(|known| known.is_of(self.hatchery())) else {
                let (machine, vm) = (label.name.clone(), vm.clone());
                return Rewrite::Refuse(MachineError::Foreign { phase, machine, vm });
            };
            if annotation.process.as_ref() == Some(self.others.own()) {
                return Rewrite::Done;
            }
            Rewrite::Write(Box::new(sign(&annotation, self.others.own())))
        };
        self.machines.rewrite(vm, phase, signing).await?;
        self.others.signed(vm);
        Ok(())
    }
}

/// Answers those who ask whether we are there, and takes over when the one that we stood by for is gone.
pub(super) async fn follow(cx: Arc<Context>, tasks: Arc<Tasks>) {
    cx.opened().await;
    let mut changes = cx.mirror.changes();
    loop {
        tasks.beat(TASK, cx.patience() + AT_LEAST);
        cx.look_for_others();
        let asked = std::mem::take(&mut lock(&cx.others.seen).asked);
        for vm in asked {
            if let Err(error) = cx.sign(&vm).await {
                tracing::warn!(%vm, "a later process is not answered: {}", Chain(&error));
            }
        }
        go_on(&cx, &tasks).await;
        sleep(BETWEEN).await;
        let _ = timeout(AT_LEAST, changes.changed()).await;
    }
}

async fn go_on(cx: &Arc<Context>, tasks: &Arc<Tasks>) {
    if !cx.others.is_silent(cx.now()) {
        return;
    }
    cx.ask_earlier_process().await;
    if !cx.others.is_silent(cx.now()) {
        return;
    }
    lock(&cx.others.seen).before_us = None;
    tracing::info!(hatchery = cx.hatchery(), "the other process is gone; this one goes on");
    spawn::adopt(cx, tasks);
    cx.signals.plan.notify_one();
    cx.signals.spares.notify_one();
    cx.signals.register.notify_one();
    cx.signals.cleanup.notify_one();
}
