//! What does not go on until a person has looked.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use roost_views::words::{count, short_id};
use roost_views::{LinkView, NeedKind, NeedView, OutageView, RequestView};

use crate::links::encoded;
use crate::{CoreView, DoorWords, FrontDoor};

const CORRECT_IT: &str =
    "Correct the request or the configuration. It goes on by itself when that is done.";

/// The most urgent first.
pub(crate) fn of(
    doors: &[Arc<dyn FrontDoor>],
    core: &CoreView,
    outages: &[OutageView],
    now: Timestamp,
) -> Vec<NeedView> {
    let mut needs: Vec<NeedView> = outages.iter().map(|outage| unreachable(outage, now)).collect();
    needs.extend(core.deletions.frozen.as_deref().map(frozen));
    needs.extend(doors.iter().flat_map(|door| needs_of(door.as_ref())));
    needs.sort_by_key(|need| need.kind);
    needs
}

/// The server that carries VMs out does not answer. One that was never heard of is still being read, and that is said elsewhere.
pub(crate) fn link_outage(link: &LinkView, doors: &[Arc<dyn FrontDoor>]) -> Option<OutageView> {
    let trouble = link.trouble.clone().filter(|_| !link.connected)?;
    let what = match doors {
        [door] => door.words().nouns,
        _ => "requests",
    };
    if link.server != LinkView::VCENTER {
        return Some(OutageView {
            server: link.server.clone(),
            since: link.last_contact,
            trouble: Some(trouble),
            goes_on: "VMs that run go on with what they do.".to_owned(),
            held: "New VMs and deletions wait, and the node is not ready.".to_owned(),
            next_try: "It is asked again with every look at the node.".to_owned(),
            runbook: Some("kubelet-pods-fail".to_owned()),
        });
    }
    Some(OutageView {
        server: link.server.clone(),
        since: link.last_contact,
        trouble: Some(trouble),
        goes_on: "VMs that run go on with what they do.".to_owned(),
        held: format!(
            "New VMs, deletions and warm pools wait; {what} are taken on when it is back."
        ),
        next_try: "It is asked again at growing intervals of at most 30 s.".to_owned(),
        runbook: Some("vcenter-link-down".to_owned()),
    })
}

/// The API server of a door does not answer: since when, and what it or the network says. `nouns` are what the door reads there.
pub fn api_server_outage(since: Timestamp, trouble: String, nouns: &str) -> OutageView {
    OutageView {
        server: "API server".to_owned(),
        since: Some(since),
        trouble: Some(trouble),
        goes_on: "VMs that run go on with what they do.".to_owned(),
        held: format!("New and changed {nouns} are not heard of, and no status is written."),
        next_try: "It is asked again every 5 s.".to_owned(),
        runbook: Some("kubernetes-door-down".to_owned()),
    }
}

/// Several doors may miss the same server: that is one outage.
pub(crate) fn merged(all: impl IntoIterator<Item = OutageView>) -> Vec<OutageView> {
    let mut merged: Vec<OutageView> = Vec::new();
    for outage in all {
        let Some(known) = merged.iter_mut().find(|it| it.server == outage.server) else {
            merged.push(outage);
            continue;
        };
        known.since = known.since.into_iter().chain(outage.since).min();
        if !known.held.contains(&outage.held) {
            known.held = format!("{} {}", known.held, outage.held);
        }
    }
    merged
}

fn unreachable(outage: &OutageView, now: Timestamp) -> NeedView {
    NeedView {
        kind: NeedKind::LinkDown,
        door: String::new(),
        words: outage.words(now),
        advice: format!("See that {} runs and can be reached from here.", outage.server),
        since: outage.since,
        count: 1,
        names: Vec::new(),
        href: "/link".to_owned(),
        runbook: outage.runbook.clone(),
    }
}

fn frozen(why: &str) -> NeedView {
    NeedView {
        kind: NeedKind::Frozen,
        door: String::new(),
        words: format!("Deletions are frozen: {why}"),
        advice: "Look at the evidence. Then `roost thaw` begins anew, and `roost thaw --approve` lets the named VMs go.".to_owned(),
        since: None,
        count: 1,
        names: Vec::new(),
        href: "/deletions".to_owned(),
        runbook: Some("deletions-frozen".to_owned()),
    }
}

/// What one door says, and its requests that wait for a person.
pub fn needs_of(door: &dyn FrontDoor) -> Vec<NeedView> {
    let mut needs = door.needs();
    needs.extend(stuck(door));
    needs
}

/// The same reason is one line, however many requests it concerns.
fn stuck(door: &dyn FrontDoor) -> Vec<NeedView> {
    let words = door.words();
    let mut alike: BTreeMap<(bool, String, String), Vec<RequestView>> = BTreeMap::new();
    for request in door.stuck() {
        let said = request.verdict.as_ref();
        let gate = said.and_then(|said| said.bound_by.clone()).unwrap_or_default();
        let reason = said.map(|said| said.reason.clone()).unwrap_or_default();
        let is_refused = request.state == roost_views::RequestState::Refused;
        alike.entry((!is_refused, gate, reason)).or_default().push(request);
    }
    let mut needs: Vec<NeedView> = alike
        .into_iter()
        .map(|((is_stuck, gate, reason), requests)| {
            of_reason(door, &words, (is_stuck, &gate, &reason), &requests)
        })
        .collect();
    needs.sort_by_key(|need| std::cmp::Reverse(need.count));
    needs
}

fn of_reason(
    door: &dyn FrontDoor,
    words: &DoorWords,
    (is_stuck, gate, reason): (bool, &str, &str),
    requests: &[RequestView],
) -> NeedView {
    let number = requests.len() as u64;
    let counted = count(number, words.noun, words.nouns);
    let how = if is_stuck { "does not come up" } else { "refused" };
    let since = requests.iter().filter_map(|it| Some(it.verdict.as_ref()?.since)).min();
    let names = requests.iter().take(NeedView::NAMES);
    let href = match requests {
        [one] => format!("/{}/{}", words.path(), encoded(&one.id.id)),
        _ if is_stuck => format!("/{}", words.path()),
        _ => format!("/{}?state=refused", words.path()),
    };
    NeedView {
        kind: if is_stuck { NeedKind::Stuck } else { NeedKind::Refused },
        door: words.name.to_owned(),
        words: format!("{counted} {how}: {reason}"),
        advice: door.advice(gate).unwrap_or(CORRECT_IT).to_owned(),
        since,
        count: number,
        names: names.map(|request| short_id(&request.id.id).to_owned()).collect(),
        href,
        runbook: door.runbook().map(ToOwned::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn down(server: &str) -> LinkView {
        LinkView { server: server.into(), trouble: Some("refused".into()), ..LinkView::default() }
    }

    #[test]
    fn an_outage_has_the_name_of_the_server_that_is_away() {
        let words = |link: &LinkView| link_outage(link, &[]).map(|it| (it.server, it.runbook));
        let (vcenter, runtime) = (LinkView::VCENTER, "microVM runtime");
        let runbook = |name: &str| Some(name.to_owned());
        assert_eq!(words(&down(vcenter)), Some((vcenter.into(), runbook("vcenter-link-down"))));
        assert_eq!(words(&down(runtime)), Some((runtime.into(), runbook("kubelet-pods-fail"))));
        let well = LinkView { connected: true, ..down(vcenter) };
        assert_eq!(words(&well), None);
    }

    #[test]
    fn a_server_that_several_doors_miss_is_one_outage() {
        let at = |secs| Timestamp::from_second(secs).unwrap();
        let of = |secs, nouns| api_server_outage(at(secs), "refused".into(), nouns);
        let all = merged([of(7, "pods"), of(5, "VirtualMachines"), of(9, "pods")]);
        let [one] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!(one.since, Some(at(5)));
        assert!(one.held.contains("pods") && one.held.contains("VirtualMachines"), "{one:?}");
        assert_eq!(one.held.matches("pods").count(), 1);
    }
}
