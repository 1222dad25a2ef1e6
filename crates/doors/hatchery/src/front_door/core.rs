//! What the hatchery's fleet shows. All doors of a vCenter will share one.

use roost_door::{Core, CoreView, fleet};
use roost_fleet::{Basis, Decided, Query, Subject, VmId};
use roost_views::{
    AddressView, AddressesView, CallsView, CandidateView, DecisionQuery, DecisionView,
    DeletionsDetail, DeletionsView, FaultView, FreezeView, Gauges, LinkDetail, LinkMinute,
    LinkView, MethodView, StepView, Unit,
};

use super::HatcheryDoor;
use super::shown::gauge;
use crate::door::HATCHERY;
use crate::run::view;

/// Beyond it nobody looks at them one by one.
const MOST_ADDRESSES: u64 = 4_096;

/// Some screens of what was deleted and kept.
const SHOWN: usize = 100;

impl Core for HatcheryDoor {
    fn decisions(&self, query: &DecisionQuery) -> Vec<DecisionView> {
        let verdict = match &query.verdict {
            None => None,
            Some(text) => match Decided::ALL.iter().find(|verdict| verdict.as_str() == text) {
                Some(verdict) => Some(*verdict),
                // Nothing was ever decided by that word.
                None => return Vec::new(),
            },
        };
        let wanted = |subject| Query {
            subject,
            verdict,
            bound_by: query.bound_by.clone(),
            events: query.events,
            after: query.after,
            limit: query.limit,
        };
        let journal = self.window.journal();
        let Some(text) = &query.subject else {
            return self.decisions(&journal.find(&wanted(None)));
        };
        let found = self.subjects(text).into_iter();
        let mut found: Vec<_> =
            found.flat_map(|subject| journal.find(&wanted(Some(subject)))).collect();
        found.sort_by_key(|decided| decided.seq);
        self.decisions(&found)
    }

    fn overview(&self) -> CoreView {
        let seen = self.window.brief_overview();
        let mut gauges = Gauges::default();
        gauges.add("cpus", gauge("CPUs", "vCPUs", Unit::Pieces, seen.capacity.cpus));
        let memory = gauge("Memory", "memory", Unit::Mebibytes, seen.capacity.memory_mb);
        gauges.add("memory_mb", memory);
        CoreView {
            link: link(seen.link),
            gauges,
            addresses: seen.addresses.map(|seen| AddressesView {
                total: seen.total,
                free: seen.free,
                used: seen.used,
                reserved: seen.reserved,
                quarantined: seen.resting,
                forecast: seen.forecast.map(|forecast| forecast.outlook()),
            }),
            deletions: DeletionsView {
                frozen: seen.deletions.frozen.map(|freeze| freeze.to_string()),
                last_minute: seen.deletions.last_minute,
            },
            ..CoreView::default()
        }
    }

    fn link_detail(&self) -> LinkDetail {
        let past = self.window.calls_past();
        LinkDetail {
            link: link(self.window.brief_overview().link),
            minutes: past.minutes.into_iter().map(minute).collect(),
            methods: past.methods.iter().map(method).collect(),
            faults: past.faults.iter().map(fault).collect(),
        }
    }

    fn addresses(&self) -> Vec<AddressView> {
        let cells = self.window.addresses(MOST_ADDRESSES).into_iter();
        cells.map(|cell| fleet::address(&cell, |vm| self.vm_words(vm))).collect()
    }

    fn deletions(&self) -> DeletionsDetail {
        let guard = self.window.guard();
        let by_guard = guard.frozen.map(|freeze| FreezeView {
            words: freeze.to_string(),
            since: freeze.since,
            by_person: false,
            vms: freeze.vms.iter().map(|vm| self.vm_words(vm)).collect(),
        });
        let by_person = || {
            self.window.deleting_held().map(|held| FreezeView {
                words: held.to_string(),
                since: held.since,
                by_person: true,
                vms: Vec::new(),
            })
        };
        let journal = self.window.journal();
        let said =
            |verdict| Query { verdict: Some(verdict), limit: Some(SHOWN), ..Query::default() };
        let mut decisions = journal.find(&said(Decided::Deleted));
        decisions.extend(journal.find(&said(Decided::Kept)));
        decisions.sort_by_key(|decided| decided.seq);
        let first = decisions.len().saturating_sub(SHOWN);
        let budgets = guard.budgets.into_iter();
        let candidates = guard.candidates.into_iter();
        DeletionsDetail {
            frozen: by_guard.or_else(by_person),
            budgets: budgets
                .map(|(basis, rules, spent)| fleet::budget(basis, words(basis), &rules, spent))
                .collect(),
            candidates: candidates
                .map(|seen| CandidateView {
                    name: seen.name.map_or_else(|| seen.vm.to_string(), |name| name.to_string()),
                    vm: seen.vm.to_string(),
                    basis: seen.sighting.basis.as_str().to_owned(),
                    first_seen: seen.sighting.first,
                    sightings: seen.sighting.times,
                })
                .collect(),
            decisions: self.decisions(&decisions[first..]),
        }
    }

    fn timeline(&self, vm: &str) -> Vec<StepView> {
        self.window.timeline(vm).iter().map(fleet::step).collect()
    }
}

impl HatcheryDoor {
    /// A subject by id or name, of whatever kind it is.
    fn subjects(&self, text: &str) -> [Subject; 3] {
        let vm = self.window.vm_named(text).unwrap_or_else(|| VmId::new(text));
        [HATCHERY.about_request(text), Subject::Vm { id: vm }, HATCHERY.about_pool(text)]
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

fn link(seen: view::Link) -> LinkView {
    let view::Calls { logins, calls, last_minute, faults, latency_ms } = seen.calls;
    LinkView {
        connected: seen.is_connected,
        synced: seen.is_synced,
        last_contact: seen.last_contact,
        resyncs: seen.resyncs,
        trouble: seen.trouble,
        vms_seen: seen.vms,
        calls: Some(CallsView { logins, calls, last_minute, faults, latency_ms }),
        ..LinkView::default()
    }
}

fn minute(seen: view::CallMinute) -> LinkMinute {
    let view::CallMinute { began, calls, faults, logins } = seen;
    LinkMinute { began, calls, faults, logins }
}

fn method(seen: &view::MethodCalls) -> MethodView {
    let view::MethodCalls { method, calls, faults, latency_ms } = *seen;
    MethodView { method: method.to_owned(), calls, faults, latency_ms }
}

fn fault(seen: &view::Fault) -> FaultView {
    FaultView { at: seen.at, method: seen.method.to_owned(), kind: seen.kind.to_owned() }
}
