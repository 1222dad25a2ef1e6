use std::fmt;
use std::time::Duration;

use roost_fleet::{Decided, Fleet, Query, VmId};
use roost_views::{DecisionQuery, DecisionView, DeletionsDetail, LinkView, StepView};

use crate::{Core, CoreView, DoorWords, fleet};

/// What is older says nothing about how the link is now.
const FRESH_FOR: Duration = Duration::from_mins(5);

/// Some screens of what was deleted and kept.
const SHOWN: usize = 100;

/// The core of a door whose fleets come and go, such as one for each login that it was given.
pub struct FleetCore {
    words: DoorWords,
    fleets: Box<dyn Fn() -> Vec<Fleet> + Send + Sync>,
}

impl FleetCore {
    /// `fleets` tells those that are open now.
    pub fn new(words: DoorWords, fleets: impl Fn() -> Vec<Fleet> + Send + Sync + 'static) -> Self {
        Self { words, fleets: Box::new(fleets) }
    }

    fn find(&self, query: &Query) -> Vec<DecisionView> {
        let mut found: Vec<DecisionView> = Vec::new();
        for of in (self.fleets)() {
            let name = |vm: &VmId| of.mirror().vm(vm).map(|row| row.name.to_string());
            let decided = of.journal().find(query);
            found.extend(decided.iter().map(|it| fleet::decision(it, &self.words, name)));
        }
        // By when it was first so: what is decided again and again stays where it was.
        found.sort_by_key(|decided| decided.since);
        let first = found.len().saturating_sub(query.limit.unwrap_or(usize::MAX));
        found.split_off(first)
    }
}

impl fmt::Debug for FleetCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FleetCore").field(&self.words.name).finish()
    }
}

impl Core for FleetCore {
    fn decisions(&self, query: &DecisionQuery) -> Vec<DecisionView> {
        let is_wanted = |word: &str| Decided::ALL.into_iter().find(|it| it.as_str() == word);
        let verdict = match query.verdict.as_deref().map(is_wanted) {
            // Nothing was ever decided by that word.
            Some(None) => return Vec::new(),
            verdict => verdict.flatten(),
        };
        // A subject is known by several names, so that it is looked for afterwards.
        let limit = query.limit.filter(|_| query.subject.is_none());
        let (bound_by, after) = (query.bound_by.clone(), query.after);
        let mut found = self.find(&Query {
            subject: None,
            verdict,
            bound_by,
            events: query.events,
            after,
            limit,
        });
        if let Some(text) = &query.subject {
            found.retain(|it| it.subject == *text || it.subject_name.as_ref() == Some(text));
            found.drain(..found.len().saturating_sub(query.limit.unwrap_or(usize::MAX)));
        }
        found
    }

    fn overview(&self) -> CoreView {
        let mut view = CoreView::default();
        let fleets = (self.fleets)();
        let mut link = LinkView { connected: !fleets.is_empty(), ..LinkView::default() };
        link.synced = link.connected;
        for fleet in &fleets {
            let mirror = fleet.mirror();
            let stream = mirror.stream().borrow().clone();
            link.connected &= stream.last_contact.is_some() && stream.trouble.is_none();
            link.synced &=
                stream.synced && mirror.freshness().check(fleet.now(), FRESH_FOR).is_ok();
            link.last_contact = link.last_contact.max(stream.last_contact);
            link.resyncs += stream.resyncs;
            link.trouble = link.trouble.or(stream.trouble);
            link.vms_seen += mirror.snapshot().len() as u64;
            let deleted = Query { verdict: Some(Decided::Deleted), ..Query::default() };
            let lately = fleet.now() - Duration::from_mins(1);
            let deleted = fleet.journal().find(&deleted);
            view.deletions.last_minute += deleted.iter().filter(|it| it.at > lately).count() as u64;
        }
        CoreView { link, ..view }
    }

    fn deletions(&self) -> DeletionsDetail {
        let said =
            |verdict| Query { verdict: Some(verdict), limit: Some(SHOWN), ..Query::default() };
        let mut decisions = self.find(&said(Decided::Deleted));
        decisions.extend(self.find(&said(Decided::Kept)));
        decisions.sort_by_key(|decided| decided.at);
        DeletionsDetail { decisions, ..DeletionsDetail::default() }
    }

    fn timeline(&self, vm: &str) -> Vec<StepView> {
        let fleets = (self.fleets)();
        let found = fleets.iter().find_map(|fleet| fleet.timelines().of(vm));
        found.iter().flat_map(|timeline| &timeline.steps).map(fleet::step).collect()
    }
}
