//! The deletion guard in the console's words.

use roost_console::views::{BudgetView, CandidateView, DecisionView, DeletionsDetail, FreezeView};
use roost_fleet::{Basis, Beyond, Decided, Decision, Query, VmId};
use roost_hatchery::run::Window;

/// Some screens of what was deleted and kept.
const SHOWN: usize = 100;

pub(super) fn detail(
    window: &Window,
    view: impl Fn(&Decision) -> DecisionView,
    name: impl Fn(&VmId) -> String,
) -> DeletionsDetail {
    let guard = window.guard();
    let by_guard = guard.frozen.map(|freeze| FreezeView {
        words: freeze.to_string(),
        since: freeze.since,
        by_person: false,
        vms: freeze.vms.iter().map(&name).collect(),
    });
    let by_person = || {
        window.deleting_held().map(|held| FreezeView {
            words: held.to_string(),
            since: held.since,
            by_person: true,
            vms: Vec::new(),
        })
    };
    let journal = window.journal();
    let said = |verdict| Query { verdict: Some(verdict), limit: Some(SHOWN), ..Query::default() };
    let mut decisions = journal.find(&said(Decided::Deleted));
    decisions.extend(journal.find(&said(Decided::Kept)));
    decisions.sort_by_key(|decided| decided.seq);
    let first = decisions.len().saturating_sub(SHOWN);
    DeletionsDetail {
        frozen: by_guard.or_else(by_person),
        budgets: guard
            .budgets
            .into_iter()
            .map(|(basis, rules, spent)| BudgetView {
                basis: basis.as_str().to_owned(),
                words: words(basis).to_owned(),
                grace_secs: rules.grace.as_secs(),
                per_minute: rules.per_minute.into(),
                spent,
                freezes: rules.beyond == Beyond::Freeze,
                share_percent: rules.share.map(|share| share.percent.into()),
            })
            .collect(),
        candidates: guard
            .candidates
            .into_iter()
            .map(|seen| CandidateView {
                name: seen.name.map_or_else(|| seen.vm.to_string(), |name| name.to_string()),
                vm: seen.vm.to_string(),
                basis: seen.sighting.basis.as_str().to_owned(),
                first_seen: seen.sighting.first,
                sightings: seen.sighting.times,
            })
            .collect(),
        decisions: decisions[first..].iter().map(|decided| view(decided)).collect(),
    }
}

fn words(basis: Basis) -> &'static str {
    match basis {
        Basis::Asked => "deleted by a person",
        Basis::Marked => "given up by us",
        Basis::Finished => "done and stopped by itself",
        Basis::Expired => "lived longer than it may",
        Basis::Absent => "not known to CDS",
    }
}
