//! Faults by rule: which requests, when, and what happens to them. All chance comes from the seed.

mod rule;

use roost_clock::Random;

pub use rule::{Action, Rule, RuleId, RuleReport, When};

use crate::request::Request;
use crate::sim::KubeSim;
use crate::watch::Disturbance;

#[derive(Debug)]
pub(crate) struct Rules {
    active: Vec<Active>,
    next: u64,
    seed: Random,
}

#[derive(Debug)]
struct Active {
    id: RuleId,
    rule: Rule,
    /// Requests that fitted, and of those the ones it acted on.
    matched: u64,
    fired: u64,
    random: Random,
}

impl Rules {
    pub(crate) fn new(seed: u64) -> Self {
        Self { active: Vec::new(), next: 1, seed: Random::from_seed(seed).fork("faults") }
    }

    fn add(&mut self, rule: Rule) -> RuleId {
        let id = RuleId(self.next);
        self.next += 1;
        let random = self.seed.fork(&format!("rule {}", id.0));
        self.active.push(Active { id, rule, matched: 0, fired: 0, random });
        id
    }

    /// What happens to a request: every rule that fits counts it, the first that is due acts.
    pub(crate) fn decide(&mut self, request: &Request) -> Option<Action> {
        self.first_due(request, |action| *action != Action::WebhookDown)
    }

    /// Whether the webhooks that this request would ask do not answer.
    pub(crate) fn is_webhook_down(&mut self, request: &Request) -> bool {
        self.first_due(request, |action| *action == Action::WebhookDown).is_some()
    }

    fn first_due(
        &mut self,
        request: &Request,
        concerns: impl Fn(&Action) -> bool,
    ) -> Option<Action> {
        let mut due = None;
        for active in &mut self.active {
            if !concerns(&active.rule.action) || !active.rule.fits(request) {
                continue;
            }
            active.matched += 1;
            if due.is_none()
                && active.rule.when.is_due(active.matched, active.fired, &mut active.random)
            {
                active.fired += 1;
                due = Some(active.rule.action.clone());
            }
        }
        due
    }
}

impl Action {
    /// What a fault does to the events of a watch.
    pub(crate) fn disturbance(&self) -> Disturbance {
        match self {
            Self::CutWatch { after } => {
                Disturbance { cut_after: Some(*after), ..Disturbance::default() }
            }
            Self::WatchGone { after } => {
                Disturbance { cut_after: Some(*after), gone: true, ..Disturbance::default() }
            }
            Self::LateEvents { by_ms } => Disturbance {
                delay: Some(std::time::Duration::from_millis(*by_ms)),
                ..Disturbance::default()
            },
            Self::DuplicateEvents => Disturbance { repeat: 1, ..Disturbance::default() },
            _ => Disturbance::default(),
        }
    }
}

impl KubeSim {
    /// From now on this rule decides about requests, after those that were there before.
    pub fn add_rule(&self, rule: Rule) -> RuleId {
        self.rules_mut().add(rule)
    }

    /// False when there is no such rule.
    pub fn remove_rule(&self, id: RuleId) -> bool {
        let mut rules = self.rules_mut();
        let before = rules.active.len();
        rules.active.retain(|active| active.id != id);
        rules.active.len() < before
    }

    pub fn clear_rules(&self) {
        self.rules_mut().active.clear();
    }

    /// What each rule did so far.
    pub fn rules(&self) -> Vec<RuleReport> {
        let rules = self.rules_mut();
        rules
            .active
            .iter()
            .map(|active| RuleReport {
                id: active.id,
                rule: active.rule.clone(),
                matched: active.matched,
                fired: active.fired,
            })
            .collect()
    }
}
