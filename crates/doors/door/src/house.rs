use std::sync::Arc;

use jiff::Timestamp;
use roost_clock::Clock;
use roost_views::{
    AddressView, DecisionQuery, DecisionView, DeletionsDetail, DoorView, Gauges, Health, LaneView,
    LinkDetail, OutageView, Overview, PoolView, QueueView, RequestDetail, RequestId, RequestState,
    RequestView, Spawning, SteeringView, StepView, VmDetail, VmView,
};

use crate::exposition;
use crate::{
    Action, Answered, Core, CoreView, Demonstration, Feed, FrontDoor, History, Links, Meant,
    NotMeant, Order, Refused, needs, outlook,
};

/// All doors of a process on their core: what the console shows and steers.
#[derive(Debug)]
pub struct House {
    /// The service's name; usually that of its first door.
    pub name: String,
    pub version: String,
    pub clock: Arc<dyn Clock>,
    pub started: Timestamp,
    /// Nothing is changed.
    pub observes_only: bool,
    pub doors: Vec<Arc<dyn FrontDoor>>,
    /// `None` for doors that need no vCenter.
    pub core: Option<Arc<dyn Core>>,
    /// On which doors and core say that something has changed.
    pub feed: Feed,
    /// What it was like, minute by minute.
    pub history: History,
    /// The way to what other programs show.
    pub links: Links,
    /// `None` for a service that is real.
    pub demonstration: Option<Arc<dyn Demonstration>>,
}

impl House {
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// By the name that stands in request ids.
    pub fn door(&self, name: &str) -> Option<&Arc<dyn FrontDoor>> {
        self.doors.iter().find(|door| door.words().name == name)
    }

    /// By the path of its requests.
    pub fn door_of(&self, path: &str) -> Option<&Arc<dyn FrontDoor>> {
        self.doors.iter().find(|door| door.words().path() == path)
    }

    /// What one request is called where nobody knows its door: the noun of the only door, if there is one.
    pub fn noun(&self) -> &'static str {
        match self.doors.as_slice() {
            [door] => door.words().noun,
            _ => "request",
        }
    }

    pub fn liveness(&self) -> Health {
        self.health(<dyn FrontDoor>::liveness)
    }

    pub fn readiness(&self) -> Health {
        self.health(<dyn FrontDoor>::readiness)
    }

    /// With several doors each check is led by its door's name.
    fn health(&self, of: impl Fn(&dyn FrontDoor) -> Vec<roost_views::CheckView>) -> Health {
        let is_one = self.doors.len() == 1;
        let named = |door: &Arc<dyn FrontDoor>| {
            let name = door.words().name;
            of(door.as_ref()).into_iter().map(move |mut check| {
                if !is_one {
                    check.name = format!("{name}/{}", check.name);
                }
                check
            })
        };
        Health { checks: self.doors.iter().flat_map(named).collect() }
    }

    pub fn overview(&self) -> Overview {
        let summaries: Vec<_> = self.doors.iter().map(|door| (door, door.summary())).collect();
        let mut capacity = Gauges::default();
        let core = self.core.as_ref().map(|core| core.overview()).unwrap_or_default();
        let own = summaries.iter().flat_map(|(_, summary)| summary.gauges.0.clone());
        own.chain(core.gauges.0.clone()).for_each(|(name, gauge)| capacity.add(name, gauge));
        let longest = summaries.iter().max_by_key(|(_, it)| it.queue.oldest_waiting_secs);
        let recent = DecisionQuery {
            limit: Some(Overview::RECENT),
            events: true,
            ..DecisionQuery::default()
        };
        let outages = self.outages(&core);
        Overview {
            service: self.name.clone(),
            version: self.version.clone(),
            now: self.now(),
            started: self.started,
            ready: summaries.iter().all(|(_, summary)| summary.ready),
            observes_only: self.observes_only,
            what_binds: longest.and_then(|(_, summary)| summary.what_binds.clone()),
            needs: needs::of(&self.doors, &core, &outages, self.now()),
            outages,
            queue: summaries.iter().fold(QueueView::default(), |all, (_, one)| one.queue.and(all)),
            lanes: lanes(summaries.iter().flat_map(|(_, summary)| &summary.lanes)),
            pools: self.pools(),
            capacity,
            addresses: core.addresses,
            deletions: core.deletions,
            link: core.link,
            recent: self.decisions(&recent).into_iter().map(DecisionView::brief).collect(),
            doors: summaries
                .into_iter()
                .map(|(door, summary)| {
                    let words = door.words();
                    DoorView {
                        name: words.name.to_owned(),
                        title: door.title(),
                        noun: words.noun.to_owned(),
                        nouns: words.nouns.to_owned(),
                        path: words.path(),
                        about: words.about.to_owned(),
                        ready: summary.ready,
                        queue: summary.queue,
                        what_binds: summary.what_binds,
                        oldest: summary.oldest,
                        tiles: summary.tiles,
                    }
                })
                .collect(),
        }
    }

    /// Servers that cannot be reached, each once.
    pub(crate) fn outages(&self, core: &CoreView) -> Vec<OutageView> {
        let links = std::iter::once(&core.link).chain(&core.other_links);
        let links = links.filter_map(|link| needs::link_outage(link, &self.doors));
        needs::merged(links.chain(self.doors.iter().flat_map(|door| door.outages())))
    }

    /// Of all doors, one door after the other.
    pub fn requests(&self) -> Vec<RequestView> {
        self.doors.iter().flat_map(|door| self.requests_of(door.as_ref())).collect()
    }

    /// Of one door, with those that are over.
    pub fn requests_of(&self, door: &dyn FrontDoor) -> Vec<RequestView> {
        let mut requests = door.requests();
        let over = self.history.over(door.words().name).into_iter();
        let is_gone = |it: &RequestView| requests.iter().all(|live| live.id != it.id);
        let over: Vec<_> = over.filter(is_gone).collect();
        requests.extend(over);
        requests
    }

    pub fn request(&self, id: &RequestId) -> Option<RequestDetail> {
        let door = self.door(&id.door)?;
        let over = || {
            let found = self.history.over(&id.door).into_iter().find(|it| it.id == *id)?;
            let said = found.verdict.clone().into_iter().collect();
            Some(RequestDetail::new(found, said, None))
        };
        let mut detail = door.request(&id.id).or_else(over)?;
        if detail.request.state == RequestState::Waiting {
            let runs = self.history.run_times(&id.door);
            detail.outlook = Some(outlook::of(&detail, &door.line(), &self.vms(), &runs, self));
        }
        Some(detail)
    }

    pub fn vms(&self) -> Vec<VmView> {
        let mut vms: Vec<VmView> = self.doors.iter().flat_map(|door| door.vms()).collect();
        vms.sort_by(|a, b| a.name.cmp(&b.name));
        vms
    }

    pub fn vm(&self, name_or_id: &str) -> Option<VmDetail> {
        self.doors.iter().find_map(|door| door.vm(name_or_id))
    }

    pub fn pools(&self) -> Vec<PoolView> {
        self.doors.iter().flat_map(|door| door.pools()).collect()
    }

    /// Whatever the subject begins with is enough, where only one begins so.
    pub fn decisions(&self, query: &DecisionQuery) -> Vec<DecisionView> {
        let found = self.core.as_ref().map(|core| core.decisions(query)).unwrap_or_default();
        let Some(text) = query.subject.as_deref().filter(|_| found.is_empty()) else {
            return found;
        };
        let request = || match self.request_meant(None, text) {
            Meant::One(request) => Some(request.id),
            Meant::Several(_) | Meant::Nothing { .. } => None,
        };
        let vm = || match self.vm_meant(text) {
            Meant::One(vm) => Some(vm),
            Meant::Several(_) | Meant::Nothing { .. } => None,
        };
        let meant = request().or_else(vm).filter(|meant| meant != text);
        let Some(meant) = meant else { return found };
        let query = DecisionQuery { subject: Some(meant), ..query.clone() };
        self.core.as_ref().map(|core| core.decisions(&query)).unwrap_or_default()
    }

    /// Why nothing was decided on what a text names, if it names nothing or several things.
    pub fn not_a_subject(&self, text: &str) -> Option<NotMeant> {
        let (request, vm) = (self.request_meant(None, text), self.vm_meant(text));
        let what = format!("a {} or VM called", self.noun());
        match (request, vm) {
            (Meant::One(_), _) | (_, Meant::One(_)) => None,
            (Meant::Several(some), Meant::Several(more)) => {
                let all = Meant::<()>::Several(some.into_iter().chain(more).collect());
                all.or_words(&what, text).err()
            }
            (Meant::Nothing { nearest: None }, vm) => vm.or_words(&what, text).err(),
            (Meant::Nothing { .. }, Meant::Several(some)) => {
                Meant::<()>::Several(some).or_words(&what, text).err()
            }
            (request, _) => request.or_words(&what, text).err(),
        }
    }

    pub fn addresses(&self) -> Vec<AddressView> {
        self.core.as_ref().map(|core| core.addresses()).unwrap_or_default()
    }

    pub fn deletions(&self) -> DeletionsDetail {
        self.core.as_ref().map(|core| core.deletions()).unwrap_or_default()
    }

    pub fn link(&self) -> LinkDetail {
        self.core.as_ref().map(|core| core.link_detail()).unwrap_or_default()
    }

    pub fn timeline(&self, vm: &str) -> Vec<StepView> {
        self.core.as_ref().map(|core| core.timeline(vm)).unwrap_or_default()
    }

    /// What persons have told any door; with several, each is named.
    pub fn steering(&self) -> SteeringView {
        let mut all = SteeringView::default();
        let add = |words: &mut Option<String>, more: Option<String>, door: &str| {
            let Some(more) = more else { return };
            let more = if self.doors.len() > 1 { format!("{door}: {more}") } else { more };
            *words = Some(match words.take() {
                Some(before) => format!("{before}; {more}"),
                None => more,
            });
        };
        for door in &self.doors {
            let SteeringView { spawning, held, frozen } = door.steering();
            if all.spawning == Spawning::Open {
                all.spawning = spawning;
            }
            add(&mut all.held, held, door.words().name);
            add(&mut all.frozen, frozen, door.words().name);
        }
        all
    }

    /// Whether there is anything to steer.
    pub fn can_be_steered(&self) -> bool {
        self.doors.iter().any(|door| door.steer().is_some())
    }

    /// What concerns one door goes there; what concerns the service goes to all.
    pub async fn act(&self, order: Order) -> Result<String, Refused> {
        let unknown = |what: String| Refused::Unknown { what };
        let door = match &order.action {
            Action::DeleteVm { vm } => {
                let owns = |door: &&Arc<dyn FrontDoor>| door.vm(vm).is_some();
                // One that is nobody's: the first door says why it does not touch it.
                let owner = self.doors.iter().find(owns).or(self.doors.first());
                Some(owner.ok_or_else(|| unknown(format!("VM {vm}")))?)
            }
            Action::RefillPool { pool } => {
                let has =
                    |door: &&Arc<dyn FrontDoor>| door.pools().iter().any(|it| it.name == *pool);
                let owner = self.doors.iter().find(has).or(self.doors.first());
                Some(owner.ok_or_else(|| unknown(format!("pool {pool}")))?)
            }
            Action::Recheck { request }
            | Action::PauseRequest { request }
            | Action::ResumeRequest { request } => {
                let door = self.door(&request.door);
                Some(door.ok_or_else(|| unknown(format!("door {}", request.door)))?)
            }
            Action::PauseSpawning
            | Action::ResumeSpawning
            | Action::Drain
            | Action::FreezeDeletions
            | Action::ResumeDeletions { .. } => None,
        };
        if let Some(door) = door {
            return tell(door, order).await;
        }
        // Some doors cannot be told this. It is done if one of them did it, and the others say how they are told.
        let (mut words, mut refused) = (Vec::new(), Vec::new());
        for door in &self.doors {
            match tell(door, order.clone()).await {
                Ok(said) => words.push(said),
                Err(refusal) => refused.push((door.words().name, refusal)),
            }
        }
        if words.is_empty()
            && let Some((_, refusal)) = refused.pop()
        {
            return Err(refusal);
        }
        words.dedup();
        words.extend(refused.into_iter().map(|(door, refusal)| format!("{door} not: {refusal}")));
        Ok(words.join("; "))
    }

    pub fn metrics(&self) -> String {
        let own = self.doors.iter().map(|door| door.metrics());
        exposition::merged(own.chain(self.core.as_ref().map(|core| core.metrics())))
    }

    pub fn http_answered(&self, answered: &Answered) {
        self.doors.iter().for_each(|door| door.http_answered(answered));
    }
}

async fn tell(door: &Arc<dyn FrontDoor>, order: Order) -> Result<String, Refused> {
    match door.steer() {
        Some(steer) => steer.act(order).await,
        None => Err(Refused::NotNow { why: "it can only be looked at".to_owned() }),
    }
}

/// The same phase of several doors is one lane.
fn lanes<'a>(all: impl Iterator<Item = &'a LaneView>) -> Vec<LaneView> {
    let mut merged: Vec<LaneView> = Vec::new();
    for lane in all {
        let is_same =
            |known: &&mut LaneView| (&known.phase, known.part) == (&lane.phase, lane.part);
        if let Some(known) = merged.iter_mut().find(is_same) {
            known.count += lane.count;
            known.names.extend(lane.names.iter().cloned());
            known.names.truncate(LaneView::NAMES);
        } else {
            merged.push(lane.clone());
        }
    }
    merged
}
