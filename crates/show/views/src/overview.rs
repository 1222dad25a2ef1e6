use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    AddressesView, DecisionView, DeletionsView, Gauges, LinkView, Mood, NeedView, OutageView, Part,
    PoolView, RequestId, RequestState, RequestView,
};

/// The whole picture on one page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Overview {
    /// The service's name.
    pub service: String,
    pub version: String,
    pub now: Timestamp,
    pub started: Timestamp,
    /// Every door makes decisions.
    pub ready: bool,
    /// Nothing is changed: the service plans, explains and shows.
    #[serde(default)]
    pub observes_only: bool,
    /// What keeps the oldest waiting request waiting, in words.
    pub what_binds: Option<String>,
    /// What does not go on until a person has looked, the most urgent first.
    #[serde(default)]
    pub needs: Vec<NeedView>,
    /// Servers that cannot be reached.
    #[serde(default)]
    pub outages: Vec<OutageView>,
    /// Of all doors.
    pub queue: QueueView,
    /// One lane for each phase, in the order in which a VM goes through them. Spares are not among them.
    #[serde(rename = "workers")]
    pub lanes: Vec<LaneView>,
    pub pools: Vec<PoolView>,
    pub capacity: Gauges,
    /// `None` if addresses are not ours to give.
    pub addresses: Option<AddressesView>,
    pub deletions: DeletionsView,
    pub link: LinkView,
    /// The last [`Overview::RECENT`] things that have happened, newest last, without their gates. What only waits is not among them.
    pub recent: Vec<DecisionView>,
    #[serde(default)]
    pub doors: Vec<DoorView>,
}

impl Overview {
    /// Enough to see what goes on; the journal has more.
    pub const RECENT: usize = 20;

    /// Whether it says something else than `earlier` did. That time has passed since is no news.
    pub fn has_news_since(&self, earlier: &Self) -> bool {
        let mut aged = earlier.clone();
        aged.now = self.now;
        aged.link.last_contact = self.link.last_contact;
        aged.queue.age_as(&self.queue);
        for (aged, now) in aged.doors.iter_mut().zip(&self.doors) {
            aged.queue.age_as(&now.queue);
        }
        aged != *self
    }

    /// The requests of all doors as people call them: their own noun if there is one door.
    pub fn noun(&self, number: u64) -> &str {
        match self.doors.as_slice() {
            [door] if number == 1 => &door.noun,
            [door] => &door.nouns,
            _ if number == 1 => "request",
            _ => "requests",
        }
    }
}

/// A front door in the overview.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DoorView {
    /// As it stands in a [`RequestId`].
    pub name: String,
    /// What it is called where it runs.
    pub title: String,
    /// What one of its requests is called, as its users write it.
    pub noun: String,
    /// Several of them.
    pub nouns: String,
    /// Where they are in the API and on the page.
    pub path: String,
    /// For whoever sees it for the first time: what it makes of a request.
    pub about: String,
    pub ready: bool,
    pub queue: QueueView,
    /// What keeps its oldest waiting request waiting, in words.
    pub what_binds: Option<String>,
    /// The oldest that waits for us.
    pub oldest: Option<RequestId>,
    pub tiles: Vec<TileView>,
}

/// A number that stands large on the overview, and where to read more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TileView {
    pub number: u64,
    pub words: String,
    /// A place of the page.
    pub href: String,
    pub mood: Mood,
}

/// How many requests stand how. Those that are over are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueView {
    pub waiting: u64,
    pub oldest_waiting_secs: Option<u64>,
    pub starting: u64,
    /// Asked for, and not served as they are.
    #[serde(default)]
    pub refused: u64,
    #[serde(default)]
    pub joining: u64,
    #[serde(default)]
    pub working: u64,
    #[serde(default)]
    pub leaving: u64,
}

impl QueueView {
    pub fn of<'a>(requests: impl IntoIterator<Item = &'a RequestView>) -> Self {
        let mut queue = Self::default();
        for request in requests {
            queue.count(request.state, 1);
            if request.state == RequestState::Waiting {
                queue.oldest_waiting_secs = queue.oldest_waiting_secs.max(request.waited_secs);
            }
        }
        queue
    }

    /// So many more that stand so.
    pub fn count(&mut self, state: RequestState, number: u64) {
        let counted = match state {
            RequestState::Waiting => &mut self.waiting,
            RequestState::Refused => &mut self.refused,
            RequestState::Starting => &mut self.starting,
            RequestState::Joining => &mut self.joining,
            RequestState::Working => &mut self.working,
            RequestState::Leaving => &mut self.leaving,
            RequestState::Skipped | RequestState::Ended => return,
        };
        *counted += number;
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            waiting: self.waiting + other.waiting,
            oldest_waiting_secs: self.oldest_waiting_secs.max(other.oldest_waiting_secs),
            starting: self.starting + other.starting,
            refused: self.refused + other.refused,
            joining: self.joining + other.joining,
            working: self.working + other.working,
            leaving: self.leaving + other.leaving,
        }
    }

    /// In the order in which they are read: where a request comes from, what stops it, what it goes through.
    pub fn in_order(&self) -> [(RequestState, u64); 6] {
        [
            (RequestState::Waiting, self.waiting),
            (RequestState::Refused, self.refused),
            (RequestState::Starting, self.starting),
            (RequestState::Joining, self.joining),
            (RequestState::Working, self.working),
            (RequestState::Leaving, self.leaving),
        ]
    }

    /// Whether somebody waits at all is news; that they wait longer is not.
    fn age_as(&mut self, later: &Self) {
        if self.oldest_waiting_secs.is_some() && later.oldest_waiting_secs.is_some() {
            self.oldest_waiting_secs = later.oldest_waiting_secs;
        }
    }
}

/// The VMs that are in one phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaneView {
    /// One word of a closed set, such as `powering-on`.
    pub phase: String,
    /// The same for people.
    pub words: String,
    #[serde(default)]
    pub part: Part,
    pub count: u64,
    /// At most [`LaneView::NAMES`] of them.
    pub names: Vec<String>,
}

impl LaneView {
    /// Enough to fill a screen; the VM list has all of them.
    pub const NAMES: usize = 50;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overview(waits: Option<u64>) -> Overview {
        Overview {
            service: "s".into(),
            version: "1".into(),
            now: Timestamp::UNIX_EPOCH,
            started: Timestamp::UNIX_EPOCH,
            ready: true,
            observes_only: false,
            what_binds: None,
            needs: Vec::new(),
            outages: Vec::new(),
            queue: QueueView { oldest_waiting_secs: waits, ..QueueView::default() },
            lanes: Vec::new(),
            pools: Vec::new(),
            capacity: Gauges::default(),
            addresses: None,
            deletions: DeletionsView::default(),
            link: LinkView::default(),
            recent: Vec::new(),
            doors: Vec::new(),
        }
    }

    #[test]
    fn that_time_passes_is_no_news_but_that_somebody_waits_is() {
        let later = Overview { now: Timestamp::constant(9, 0), ..overview(Some(9)) };
        assert!(!later.has_news_since(&overview(Some(1))));
        assert!(later.has_news_since(&overview(None)));
        assert!(overview(None).has_news_since(&later));
    }
}
