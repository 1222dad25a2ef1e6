//! Faults and delays by rule: which calls, when, and what happens to them. All chance comes from the seed.

mod apply;
mod rule;

use std::fmt;

use roost_clock::Random;
use roost_vim_wire::{LocalizedMethodFault, MoRef};
use std::time::Duration;

pub(crate) use apply::{after, before, cut, decide};
pub use rule::{Action, Outage, Rule, RuleId, RuleReport, When};

use crate::door::Vcenter;
use crate::glob;
use crate::inventory::Inventory;
use crate::world::{Handle, World};

#[derive(Debug)]
pub(crate) struct Rules {
    active: Vec<Active>,
    next: u64,
    seed: Random,
}

struct Active {
    id: RuleId,
    rule: Rule,
    /// Calls that fitted, and of those the ones it acted on.
    matched: u64,
    fired: u64,
    random: Random,
    /// What a stale read answers from: the inventory as it was when the rule was made.
    frozen: Option<Box<Inventory>>,
}

/// The facts of a call that rules look at.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub method: &'a str,
    /// Ids and names of the objects that the call is about.
    pub objects: Vec<String>,
}

/// What a rule does to a task that is about to run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TaskEffect {
    /// It ends with this error instead of success.
    Fail(LocalizedMethodFault),
    /// It runs and never ends.
    Hang,
    /// It takes this much longer.
    Delay(Duration),
}

impl Rules {
    pub(crate) fn new(seed: u64) -> Self {
        Self { active: Vec::new(), next: 1, seed: Random::from_seed(seed).fork("rules") }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    /// Whether any rule looks at objects, which costs the caller to find out.
    pub(crate) fn look_at_objects(&self) -> bool {
        self.active.iter().any(|active| active.rule.object != "*")
    }

    fn add(&mut self, rule: Rule, inventory: &Inventory) -> RuleId {
        let id = RuleId(self.next);
        self.next += 1;
        let frozen = (rule.action == Action::StaleList).then(|| Box::new(inventory.clone()));
        let random = self.seed.fork(&id.to_string());
        self.active.push(Active { id, rule, matched: 0, fired: 0, random, frozen });
        id
    }

    /// What happens to a call: every rule that fits counts it, the first that is due acts.
    pub(crate) fn for_call(&mut self, facts: &Facts<'_>) -> Option<(RuleId, Action)> {
        self.first_due(facts, |action| !action.is_for_tasks())
    }

    /// Asked once per task when it starts to run. `method` is the wire name, such as `CloneVM_Task`.
    pub(crate) fn for_task(
        &mut self,
        method: &str,
        entity: &MoRef,
        entity_name: &str,
    ) -> Option<TaskEffect> {
        let facts = Facts { method, objects: vec![entity.id.to_string(), entity_name.to_owned()] };
        match self.first_due(&facts, Action::is_for_tasks)?.1 {
            Action::FailTask(fault) => Some(TaskEffect::Fail(fault)),
            Action::HangTask => Some(TaskEffect::Hang),
            Action::DelayTask(by) => Some(TaskEffect::Delay(by)),
            _ => None,
        }
    }

    fn first_due(
        &mut self,
        facts: &Facts<'_>,
        concerns: impl Fn(&Action) -> bool,
    ) -> Option<(RuleId, Action)> {
        let mut first = None;
        for active in self.active.iter_mut().filter(|active| concerns(&active.rule.action)) {
            if active.rule.fits(facts) && active.is_due() && first.is_none() {
                active.fired += 1;
                first = Some((active.id, active.rule.action.clone()));
            }
        }
        first
    }

    /// Lends the inventory that a stale read answers from; [`give_back`](Self::give_back) returns it.
    pub(crate) fn lend_frozen(&mut self, id: RuleId) -> Option<Box<Inventory>> {
        self.active.iter_mut().find(|active| active.id == id)?.frozen.take()
    }

    pub(crate) fn give_back(&mut self, id: RuleId, frozen: Box<Inventory>) {
        if let Some(active) = self.active.iter_mut().find(|active| active.id == id) {
            active.frozen = Some(frozen);
        }
    }

    fn reports(&self) -> Vec<RuleReport> {
        let report = |active: &Active| RuleReport {
            id: active.id,
            rule: active.rule.clone(),
            matched: active.matched,
            fired: active.fired,
        };
        self.active.iter().map(report).collect()
    }
}

impl Active {
    /// Counts the call and says whether the rule acts on it. Draws even when it may no longer act, so that a limit on one
    /// rule does not shift the chance of later calls.
    fn is_due(&mut self) -> bool {
        self.matched += 1;
        let due = match self.rule.when {
            When::Always => true,
            When::Nth(n) => self.matched == n,
            When::EveryNth(n) => n > 0 && self.matched.is_multiple_of(n),
            When::Chance(probability) => self.random.chance(probability),
        };
        due && self.rule.times.is_none_or(|times| self.fired < times)
    }
}

impl Rule {
    fn fits(&self, facts: &Facts<'_>) -> bool {
        glob::matches(&self.method, facts.method)
            && (self.object == "*"
                || facts.objects.iter().any(|object| glob::matches(&self.object, object)))
    }
}

impl fmt::Debug for Active {
    /// Without the frozen inventory, which is large.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Active")
            .field("id", &self.id)
            .field("rule", &self.rule)
            .field("matched", &self.matched)
            .field("fired", &self.fired)
            .finish_non_exhaustive()
    }
}

/// The rules of a running server.
#[derive(Debug, Clone)]
pub struct FaultRules {
    handle: Handle,
}

impl FaultRules {
    /// Adds a rule. A [`StaleList`](Action::StaleList) rule remembers the inventory of this moment.
    pub fn add(&self, rule: Rule) -> RuleId {
        self.handle.with(|world| {
            let World { rules, inventory, .. } = world;
            rules.add(rule, inventory)
        })
    }

    /// `false` if there is no such rule.
    pub fn remove(&self, id: RuleId) -> bool {
        self.handle.with(|world| {
            let before = world.rules.active.len();
            world.rules.active.retain(|active| active.id != id);
            world.rules.active.len() < before
        })
    }

    pub fn clear(&self) {
        self.handle.with(|world| world.rules.active.clear());
    }

    pub fn list(&self) -> Vec<RuleReport> {
        self.handle.with(|world| world.rules.reports())
    }

    /// How often a rule has acted.
    pub fn fired(&self, id: RuleId) -> u64 {
        self.list().iter().find(|report| report.id == id).map_or(0, |report| report.fired)
    }
}

impl Vcenter {
    pub fn faults(&self) -> FaultRules {
        FaultRules { handle: self.handle.clone() }
    }
}

#[cfg(test)]
mod tests;
