//! The requests of one door.

use std::borrow::Cow;
use std::cmp::Reverse;

use askama::Template;
use roost_door::{FrontDoor, House};
use roost_views::words::{Style, secs, short_id, title};
use roost_views::{Facts, OutcomeView, RequestState, RequestView};

use super::Asked;
use super::block::{Block, Row, Table};
use super::export::{requests_wanted, ways};
use super::foreign::{Name, Words, plain};
use super::paging::Window;
use super::shown::{When, request_href, vm_href};
use super::sorting::headings;

pub(super) fn blocks(
    house: &House,
    door: &dyn FrontDoor,
    asked: &Asked,
) -> Result<Vec<Block>, askama::Error> {
    let words = door.words();
    let requests = house.requests_of(door);
    let columns = columns(words.noun, words.group, requests.first().map(|request| &request.facts));
    let requests = requests_wanted(requests, asked);
    let window = Window::new(&asked.page, requests.len());
    let rows = requests[window.range()].iter().map(|request| {
        let html = RequestRow::new(request, &words.path()).render()?;
        Ok(Row { key: plain(&request.id.id).into_owned(), html })
    });
    let states = RequestState::ALL.map(RequestState::as_str);
    let path = format!("/{}", words.path());
    let filter = [("q", asked.q.as_str()), ("state", &asked.state)];
    let all = [filter[0], filter[1], ("sort", &asked.sort)];
    Ok(vec![Block::table(
        "requests",
        Table {
            above: Filter {
                title: &title(words.nouns),
                name: "state",
                chosen: &asked.state,
                values: &states,
                q: &asked.q,
                kept: &[("sort", &asked.sort)],
            }
            .render()?,
            columns: headings(&columns, &path, &filter, &asked.sort),
            rows: rows.collect::<Result<_, askama::Error>>()?,
            below: window.below(&path, &all, words.nouns) + &ways(&path, &all),
        },
    )])
}

/// As lists show them: what waits longest first, what is over newest first.
pub(super) fn in_usual_order(requests: &mut [RequestView]) {
    requests.sort_by(|a, b| {
        let over = |it: &RequestView| {
            let ended = it.outcome.as_ref().and_then(|outcome| outcome.ended).or(it.queued);
            Reverse(ended.filter(|_| !it.is_open()))
        };
        let queued = |it: &RequestView| it.queued.filter(|_| it.is_open());
        (a.state, over(a), queued(a), &a.id).cmp(&(b.state, over(b), queued(b), &b.id))
    });
}

/// What the door lists of its requests stands between what all requests have.
pub(super) fn columns(noun: &str, group: &str, facts: Option<&Facts>) -> Vec<Cow<'static, str>> {
    let own = facts.into_iter().flat_map(Facts::columns);
    let own = own.map(|fact| plain(&fact.label).into_owned().into());
    let mut columns: Vec<Cow<'static, str>> = vec![
        title(noun).into(),
        "State".into(),
        "Queued".into(),
        "Waited".into(),
        title(group).into(),
    ];
    columns.extend(own);
    columns.extend(["VM".into(), "Ran".into(), "Latest decision".into()]);
    columns
}

/// What narrows a list.
#[derive(Template)]
#[template(path = "filter.html")]
pub(super) struct Filter<'a> {
    pub(super) title: &'a str,
    pub(super) name: &'static str,
    pub(super) chosen: &'a str,
    pub(super) values: &'a [&'static str],
    pub(super) q: &'a str,
    /// What else the address holds.
    pub(super) kept: &'a [(&'static str, &'a str)],
}

#[derive(Template)]
#[template(path = "request_row.html")]
struct RequestRow<'a> {
    request: &'a RequestView,
    href: String,
    name: Name<'a>,
    state: &'static str,
    mood: &'static str,
    queued: Option<When>,
    waited: String,
    ran: String,
    vm: Option<(String, Name<'a>)>,
}

impl<'a> RequestRow<'a> {
    fn new(request: &'a RequestView, path: &str) -> Self {
        let standing = request.state;
        let is_open = request.is_open();
        Self {
            request,
            href: request_href(path, &request.id.id),
            name: Name(short_id(&request.id.id)),
            state: standing.as_str(),
            mood: standing.mood().as_str(),
            queued: request.queued.map(|at| if is_open { When::ago(at) } else { When::at(at) }),
            waited: request.waited_secs.map(|it| secs(it, Style::Long)).unwrap_or_default(),
            ran: request.outcome.as_ref().map(ran).unwrap_or_default(),
            vm: request.vm.as_deref().map(|vm| (vm_href(vm), Name(vm))),
        }
    }
}

/// How long, and with which result.
fn ran(outcome: &OutcomeView) -> String {
    match outcome.ran_secs {
        Some(ran) => format!("{}, {}", secs(ran, Style::Long), outcome.result),
        None => outcome.result.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fake::{NOW, job};

    #[test]
    fn what_waits_longest_comes_first_and_what_is_over_newest_first() {
        let request = |id: &str, state, secs: u64| {
            let at = NOW + Duration::from_secs(secs);
            let mut request = RequestView { state, queued: Some(at), ..job(id) };
            let is_over = state == RequestState::Ended;
            request.outcome = is_over.then(|| OutcomeView {
                ended: Some(at),
                ran_secs: Some(5),
                result: "deleted".into(),
            });
            request
        };
        let mut all = [
            request("old-end", RequestState::Ended, 1),
            request("late", RequestState::Waiting, 9),
            request("new-end", RequestState::Ended, 8),
            request("early", RequestState::Waiting, 2),
            request("works", RequestState::Working, 3),
        ];
        in_usual_order(&mut all);
        let order: Vec<_> = all.iter().map(|it| it.id.id.as_str()).collect();
        assert_eq!(order, ["early", "late", "works", "new-end", "old-end"]);
        let row = RequestRow::new(&all[3], "jobs");
        assert_eq!((row.ran.as_str(), row.state), ("5 s, deleted", "ended"));
    }
}
