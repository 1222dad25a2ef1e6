//! What a service was like, minute by minute, without any other program. In memory only: it begins anew with the process.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use roost_views::{
    HistoryView, MarkKind, MarkView, OutageView, Overview, Part, RequestId, RequestState,
    RequestView, SampleView, Spawning,
};

use crate::House;
use crate::past::Past;

/// A day of minutes. A sample is at most about 500 bytes, so that all of them are less than a megabyte.
const SAMPLES: usize = 24 * 60;
/// Doors whose numbers are kept of each minute.
const DOORS: usize = 8;
/// Pauses, freezes, lost links and restarts of that day.
const MARKS: usize = 256;
/// Limits that are kept of each minute.
const LIMITS: usize = 8;
/// Of each door, for estimates.
const RUNS: usize = 200;

/// A handle; clones share it. Holds at most a day.
#[derive(Debug, Clone, Default)]
pub struct History {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    limits: Vec<String>,
    doors: Vec<String>,
    samples: VecDeque<SampleView>,
    marks: VecDeque<MarkView>,
    /// Whose work has begun, as far as they are still listed.
    started: BTreeSet<RequestId>,
    /// Whose run was counted.
    counted: BTreeSet<RequestId>,
    /// How long things ran, by door, newest last.
    runs: BTreeMap<String, VecDeque<u64>>,
    /// How long requests waited for a VM that works, by door, newest last.
    starts: BTreeMap<String, VecDeque<u64>>,
    /// What is over, by door.
    past: BTreeMap<&'static str, Past>,
    /// Calls and faults towards the vCenter at the last sample.
    calls: (u64, u64),
}

impl History {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the house if a minute has passed on its clock since the last time. Cheap otherwise: call it often.
    pub fn keep(&self, house: &House) {
        let now = house.now();
        let minute = |at: Timestamp| at.as_second().div_euclid(60);
        let is_new = match self.inner().samples.back() {
            Some(last) => minute(last.at) != minute(now),
            None => true,
        };
        let overview = is_new.then(|| house.overview());
        let Some(overview) = overview else { return };
        let requests = house.requests();
        let is_warm = |request: &RequestView| {
            let steps = request.vm.as_ref().map(|vm| house.timeline(vm)).unwrap_or_default();
            steps.iter().any(|step| step.part == Part::Claiming)
        };
        let mut inner = self.inner();
        if inner.samples.is_empty() {
            let words = format!("{} {} began", overview.service, overview.version);
            inner.mark_once(overview.started, MarkKind::Restart, words);
        }
        inner.sample(&overview, &requests, is_warm);
    }

    /// The process was started anew in the middle of it.
    pub fn note(&self, at: Timestamp, words: &str) {
        self.inner().mark_once(at, MarkKind::Restart, words.to_owned());
    }

    /// Notes what explains a change in the curves. Called with every look, because a pause may be shorter than a minute.
    pub fn watch(&self, house: &House) {
        let now = house.now();
        let steering = house.steering();
        let core = house.core.as_ref().map(|core| core.overview()).unwrap_or_default();
        let outages = house.outages(&core);
        for door in house.doors.iter().filter(|door| door.forgets_ended()) {
            // One that has not listed everything yet does not know what is gone.
            if door.readiness().iter().all(|check| check.ok) {
                let requests = door.requests();
                self.inner().past.entry(door.words().name).or_default().look(now, requests);
            }
        }
        let mut inner = self.inner();
        let held = (steering.spawning != Spawning::Open)
            .then(|| steering.held.unwrap_or_else(|| "new VMs are held back".to_owned()));
        inner.mark(now, MarkKind::Pause, held);
        inner.mark(now, MarkKind::Freeze, core.deletions.frozen.or(steering.frozen));
        inner.lose(now, &outages);
    }

    /// The newest so many minutes.
    pub fn view(&self, minutes: usize) -> HistoryView {
        let inner = self.inner();
        let first = inner.samples.len().saturating_sub(minutes);
        let samples: Vec<SampleView> = inner.samples.iter().skip(first).cloned().collect();
        let since = samples.first().map(|sample| sample.at);
        let is_within =
            |mark: &&MarkView| mark.until.is_none_or(|until| since.is_none_or(|at| until >= at));
        HistoryView {
            limits: inner.limits.clone(),
            doors: inner.doors.clone(),
            marks: inner.marks.iter().filter(is_within).cloned().collect(),
            samples,
        }
    }

    /// Requests of a door that are over, newest first; of doors that forget them.
    pub fn over(&self, door: &str) -> Vec<RequestView> {
        self.inner().past.get(door).into_iter().flat_map(Past::over).cloned().collect()
    }

    /// How long the last requests of a door waited until their VM worked, in seconds.
    pub fn start_times(&self, door: &str) -> Vec<u64> {
        let inner = self.inner();
        inner.starts.get(door).map(|starts| starts.iter().copied().collect()).unwrap_or_default()
    }

    /// How long the last requests of a door ran, in seconds.
    pub fn run_times(&self, door: &str) -> Vec<u64> {
        self.inner().runs.get(door).map(|runs| runs.iter().copied().collect()).unwrap_or_default()
    }
}

impl Inner {
    fn sample(
        &mut self,
        overview: &Overview,
        requests: &[RequestView],
        is_warm: impl Fn(&RequestView) -> bool,
    ) {
        let is_first = self.samples.is_empty();
        let begun: Vec<&RequestView> =
            requests.iter().filter(|request| has_begun(request)).collect();
        let new = begun.iter().filter(|request| !self.started.contains(&request.id));
        // What ran before the first look was not started since.
        let new: Vec<&RequestView> = new.copied().filter(|_| !is_first).collect();
        let mut waits: Vec<u64> = new.iter().filter_map(|request| request.waited_secs).collect();
        waits.sort_unstable();
        for (door, waited) in new.iter().filter_map(|it| Some((&it.id.door, it.waited_secs?))) {
            let starts = self.starts.entry(door.clone()).or_default();
            starts.push_back(waited);
            if starts.len() > RUNS {
                starts.pop_front();
            }
        }
        let warm = new.iter().filter(|request| is_warm(request)).count() as u64;
        let started = new.len() as u64;
        self.started = begun.iter().map(|request| request.id.clone()).collect();
        self.count_runs(requests);
        let (calls, faults) = self.calls_since(overview);
        let queue = &overview.queue;
        let sample = SampleView {
            at: overview.now,
            waiting: queue.waiting,
            refused: queue.refused,
            starting: queue.starting,
            joining: queue.joining,
            working: queue.working,
            leaving: queue.leaving,
            spares: overview.pools.iter().map(|pool| pool.ready).sum(),
            started,
            warm,
            wait_p50_secs: share(&waits, 50),
            wait_p95_secs: share(&waits, 95),
            capacity: self.taken(overview),
            doors: self.by_door(overview),
            calls,
            faults,
        };
        self.samples.push_back(sample);
        if self.samples.len() > SAMPLES {
            self.samples.pop_front();
        }
    }

    fn taken(&mut self, overview: &Overview) -> Vec<u64> {
        if self.limits.is_empty() {
            let names = overview.capacity.0.iter().take(LIMITS);
            self.limits = names.map(|(name, _)| name.clone()).collect();
        }
        let gauges = self.limits.iter().map(|name| overview.capacity.get(name));
        gauges.map(|gauge| gauge.map_or(0, |it| it.used.saturating_add(it.reserved))).collect()
    }

    fn by_door(&mut self, overview: &Overview) -> Vec<[u32; 6]> {
        if self.doors.is_empty() {
            let names = overview.doors.iter().take(DOORS);
            self.doors = names.map(|door| door.name.clone()).collect();
        }
        let queue = |name: &String| overview.doors.iter().find(|door| door.name == *name);
        let queues = self.doors.iter().map(|name| queue(name).map(|door| door.queue));
        let number = |(_, number): (RequestState, u64)| u32::try_from(number).unwrap_or(u32::MAX);
        queues.map(|queue| queue.unwrap_or_default().in_order().map(number)).collect()
    }

    fn calls_since(&mut self, overview: &Overview) -> (u64, u64) {
        let Some(calls) = overview.link.calls else { return (0, 0) };
        let before = std::mem::replace(&mut self.calls, (calls.calls, calls.faults));
        if self.samples.is_empty() {
            return (0, 0);
        }
        (calls.calls.saturating_sub(before.0), calls.faults.saturating_sub(before.1))
    }

    fn count_runs(&mut self, requests: &[RequestView]) {
        let over = |request: &&RequestView| {
            matches!(request.state, RequestState::Leaving | RequestState::Ended)
        };
        let over: Vec<&RequestView> = requests.iter().filter(over).collect();
        for request in over.iter().filter(|request| !self.counted.contains(&request.id)) {
            let ran = request.outcome.as_ref().and_then(|outcome| outcome.ran_secs);
            let Some(ran) = ran else { continue };
            let runs = self.runs.entry(request.id.door.clone()).or_default();
            runs.push_back(ran);
            if runs.len() > RUNS {
                runs.pop_front();
            }
        }
        self.counted = over.into_iter().map(|request| request.id.clone()).collect();
    }

    fn mark_once(&mut self, at: Timestamp, kind: MarkKind, words: String) {
        self.marks.push_back(MarkView { at, until: Some(at), kind, words });
        if self.marks.len() > MARKS {
            self.marks.pop_front();
        }
    }

    /// One mark while anything is lost, with the name of each server that was.
    fn lose(&mut self, now: Timestamp, outages: &[OutageView]) {
        let names = |outage: &OutageView| match &outage.trouble {
            Some(trouble) => format!("{}: {trouble}", outage.server),
            None => outage.server.clone(),
        };
        let words = outages.iter().map(names).collect::<Vec<_>>().join("; ");
        let open = |it: &&mut MarkView| it.kind == MarkKind::LinkLost && it.until.is_none();
        if let Some(open) = self.marks.iter_mut().rev().find(open) {
            for outage in outages {
                if !open.words.contains(&outage.server) {
                    open.words = format!("{}; {}", open.words, names(outage));
                }
            }
        }
        self.mark(now, MarkKind::LinkLost, (!words.is_empty()).then_some(words));
    }

    /// Begins, goes on with or ends the mark of this kind.
    fn mark(&mut self, now: Timestamp, kind: MarkKind, words: Option<String>) {
        let open = self.marks.iter_mut().rev().find(|it| it.kind == kind && it.until.is_none());
        match (open, words) {
            (Some(_), Some(_)) | (None, None) => {}
            (Some(open), None) => open.until = Some(now),
            (None, Some(words)) => {
                self.marks.push_back(MarkView { at: now, until: None, kind, words });
                if self.marks.len() > MARKS {
                    self.marks.pop_front();
                }
            }
        }
    }
}

/// Its VM does what it is for, or has done so.
fn has_begun(request: &RequestView) -> bool {
    match request.state {
        RequestState::Working | RequestState::Leaving => true,
        RequestState::Ended => request.outcome.as_ref().is_some_and(|it| it.ran_secs.is_some()),
        _ => false,
    }
}

/// Of sorted numbers, the one that so many percent do not exceed.
fn share(sorted: &[u64], percent: usize) -> Option<u64> {
    let last = sorted.len().checked_sub(1)?;
    Some(sorted[(sorted.len() * percent).div_ceil(100).saturating_sub(1).min(last)])
}

#[cfg(test)]
mod tests {
    use roost_views::{DeletionsView, DoorView, GaugeView, Gauges, LinkView, QueueView};

    use super::*;

    #[test]
    fn percentiles_are_numbers_that_were_seen() {
        assert_eq!(share(&[], 50), None);
        assert_eq!((share(&[7], 50), share(&[7], 95)), (Some(7), Some(7)));
        let hundred: Vec<u64> = (1..=100).collect();
        assert_eq!((share(&hundred, 50), share(&hundred, 95)), (Some(50), Some(95)));
    }

    fn overview(minute: i64) -> Overview {
        let queue = QueueView { waiting: 3, working: 7, ..QueueView::default() };
        let door = |number: u64| DoorView {
            name: format!("door-{number}"),
            title: String::new(),
            noun: String::new(),
            nouns: String::new(),
            path: String::new(),
            about: String::new(),
            ready: true,
            queue,
            what_binds: None,
            oldest: None,
            tiles: Vec::new(),
        };
        let mut capacity = Gauges::default();
        for number in 0..20 {
            capacity.add(format!("limit-{number}"), GaugeView::default());
        }
        Overview {
            service: "s".into(),
            version: "1".into(),
            now: Timestamp::from_second(minute * 60).unwrap(),
            started: Timestamp::UNIX_EPOCH,
            ready: true,
            observes_only: false,
            what_binds: None,
            needs: Vec::new(),
            outages: Vec::new(),
            queue,
            lanes: Vec::new(),
            pools: Vec::new(),
            capacity,
            addresses: None,
            deletions: DeletionsView::default(),
            link: LinkView::default(),
            recent: Vec::new(),
            doors: (0..20).map(door).collect(),
        }
    }

    /// docs/operating.md names the figure.
    #[test]
    fn a_day_of_samples_takes_less_than_a_megabyte_however_many_doors_and_limits_there_are() {
        let mut inner = Inner::default();
        for minute in 0..(24 * 60 + 100) {
            inner.sample(&overview(minute), &[], |_| false);
        }
        assert_eq!(inner.samples.len(), 1_440);
        let of = |sample: &SampleView| {
            size_of::<SampleView>()
                + sample.capacity.capacity() * size_of::<u64>()
                + sample.doors.capacity() * size_of::<[u32; 6]>()
        };
        let bytes: usize = inner.samples.iter().map(of).sum();
        assert!(bytes < 1_000_000, "{bytes} bytes");
        assert_eq!(inner.samples[0].doors[0], [3, 0, 0, 0, 7, 0]);
    }

    #[test]
    fn a_mark_lasts_from_its_beginning_to_its_end_and_there_are_only_so_many() {
        let mut inner = Inner::default();
        let at = |secs| Timestamp::from_second(secs).unwrap();
        inner.mark(at(1), MarkKind::Pause, Some("by ada".into()));
        inner.mark(at(2), MarkKind::Pause, Some("by ada".into()));
        inner.mark(at(3), MarkKind::Freeze, None);
        inner.mark(at(5), MarkKind::Pause, None);
        inner.mark(at(6), MarkKind::Pause, None);
        let marks: Vec<_> = inner.marks.iter().map(|mark| (mark.at, mark.until)).collect();
        assert_eq!(marks, [(at(1), Some(at(5)))]);
        for secs in 0..2_000 {
            inner.mark(at(secs), MarkKind::Pause, (secs % 2 == 0).then(String::new));
        }
        assert_eq!(inner.marks.len(), MARKS);
    }

    #[test]
    fn a_second_server_that_is_lost_is_named_in_the_mark_of_the_first() {
        let at = |secs| Timestamp::from_second(secs).unwrap();
        let lost = |server: &str| OutageView {
            server: server.into(),
            since: None,
            trouble: Some("refused".into()),
            goes_on: String::new(),
            held: String::new(),
            next_try: String::new(),
            runbook: None,
        };
        let mut inner = Inner::default();
        inner.lose(at(1), &[lost("vCenter")]);
        inner.lose(at(2), &[lost("vCenter"), lost("API server")]);
        inner.lose(at(3), &[lost("API server")]);
        inner.lose(at(4), &[]);
        let [mark] = &*inner.marks.make_contiguous() else { panic!("{:?}", inner.marks) };
        assert_eq!(mark.words, "vCenter: refused; API server: refused");
        assert_eq!((mark.at, mark.until), (at(1), Some(at(4))));
    }
}
