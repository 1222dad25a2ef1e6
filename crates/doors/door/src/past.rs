//! Requests that are over, for doors whose objects go with them: a watch forgets what was deleted.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use jiff::Timestamp;
use roost_views::words::secs_between;
use roost_views::{OutcomeView, RequestId, RequestState, RequestView, Verdict};

/// Some screens of each door.
const KEPT: usize = 200;

/// Of one door. Holds at most [`KEPT`] that are over.
#[derive(Debug, Default)]
pub(crate) struct Past {
    /// As they were seen last, and when their VM began to do what it is for.
    live: BTreeMap<RequestId, (RequestView, Option<Timestamp>)>,
    /// Oldest first.
    over: VecDeque<RequestView>,
}

impl Past {
    /// All that there is now: what was there before and is not any more has ended.
    pub(crate) fn look(&mut self, now: Timestamp, requests: Vec<RequestView>) {
        let mut before = std::mem::take(&mut self.live);
        for request in requests {
            let began = before.remove(&request.id).and_then(|(_, began)| began);
            let began = began.or_else(|| began_work(&request));
            self.live.insert(request.id.clone(), (request, began));
        }
        // A name may be given again.
        self.over.retain(|request| !self.live.contains_key(&request.id));
        let mut gone: Vec<_> = before.into_values().collect();
        gone.sort_by_key(|(request, _)| request.queued);
        for (request, began) in gone {
            self.over.push_back(ended(request, began, now));
        }
        self.over.drain(..self.over.len().saturating_sub(KEPT));
    }

    /// Newest first.
    pub(crate) fn over(&self) -> impl Iterator<Item = &RequestView> {
        self.over.iter().rev()
    }
}

fn began_work(request: &RequestView) -> Option<Timestamp> {
    if request.state != RequestState::Working {
        return None;
    }
    let waited = Duration::from_secs(request.waited_secs?);
    request.queued?.checked_add(waited).ok()
}

fn ended(request: RequestView, began: Option<Timestamp>, now: Timestamp) -> RequestView {
    let failed = request.verdict.as_ref().is_some_and(|said| said.verdict == Verdict::Failed);
    let result = match (failed, began) {
        (true, _) => "failed",
        (false, Some(_)) => "deleted",
        (false, None) => "deleted before its VM was up",
    };
    let waited = request.queued.map(|queued| secs_between(queued, began.unwrap_or(now)));
    RequestView {
        state: RequestState::Ended,
        waited_secs: waited,
        outcome: Some(OutcomeView {
            ended: Some(now),
            ran_secs: began.map(|began| secs_between(began, now)),
            result: result.to_owned(),
        }),
        ..request
    }
}

#[cfg(test)]
mod tests {
    use roost_views::Facts;

    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_second(secs).unwrap()
    }

    fn request(name: &str, state: RequestState, waited: u64) -> RequestView {
        RequestView {
            id: RequestId::new("toys", name),
            noun: "toy".into(),
            group: "shelf".into(),
            state,
            queued: Some(at(100)),
            waited_secs: Some(waited),
            vm: None,
            project: None,
            wants: None,
            verdict: None,
            outcome: None,
            facts: Facts::default(),
        }
    }

    #[test]
    fn what_is_gone_has_waited_and_run_and_has_a_result() {
        let mut past = Past::default();
        past.look(at(110), vec![request("a", RequestState::Waiting, 10)]);
        past.look(at(150), vec![request("a", RequestState::Working, 30)]);
        past.look(at(190), vec![request("a", RequestState::Leaving, 90)]);
        past.look(at(200), vec![request("b", RequestState::Waiting, 100)]);
        past.look(at(300), vec![]);
        let over: Vec<_> = past
            .over()
            .map(|it| {
                let outcome = it.outcome.as_ref().unwrap();
                (it.id.id.as_str(), it.waited_secs, outcome.ran_secs, outcome.result.as_str())
            })
            .collect();
        assert_eq!(
            over,
            [
                ("b", Some(200), None, "deleted before its VM was up"),
                ("a", Some(30), Some(70), "deleted"),
            ]
        );
        past.look(at(310), vec![request("a", RequestState::Waiting, 1)]);
        assert_eq!(past.over().count(), 1, "its name was given again");
    }

    #[test]
    fn only_so_many_are_kept() {
        let mut past = Past::default();
        for number in 0..(KEPT * 2) {
            past.look(at(200), vec![request(&number.to_string(), RequestState::Working, 1)]);
        }
        assert_eq!(past.over().count(), KEPT);
    }
}
