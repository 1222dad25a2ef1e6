//! The requests of one door.

use std::borrow::Cow;

use askama::Template;
use roost_door::FrontDoor;
use roost_views::words::{short_id, title};
use roost_views::{Facts, RequestView, Standing};

use super::Asked;
use super::block::{Block, Row, Table};
use super::foreign::{Name, Words, plain};
use super::paging::Window;
use super::shown::{When, request_href, vm_href};

pub(super) fn blocks(door: &dyn FrontDoor, asked: &Asked) -> Result<Vec<Block>, askama::Error> {
    let words = door.words();
    let mut requests = door.requests();
    let columns = columns(words.noun, requests.first().map(|request| &request.facts));
    let wanted = |request: &RequestView| {
        let texts = [Some(&request.id.id), request.project.as_ref(), request.vm.as_ref()];
        let facts = request.facts.0.iter().filter_map(|fact| fact.value.as_ref());
        (asked.state.is_empty() || asked.state == request.standing().as_str())
            && (asked.q.is_empty()
                || texts.into_iter().flatten().chain(facts).any(|text| text.contains(&asked.q)))
    };
    requests.retain(wanted);
    let window = Window::new(&asked.page, requests.len());
    let rows = requests[window.range()].iter().map(|request| {
        let html = RequestRow::new(request, words.nouns).render()?;
        Ok(Row { key: plain(&request.id.id).into_owned(), html })
    });
    let states = Standing::ALL.map(Standing::as_str);
    Ok(vec![Block::table(
        "requests",
        Table {
            above: Filter {
                title: &title(words.nouns),
                name: "state",
                chosen: &asked.state,
                values: &states,
                q: &asked.q,
            }
            .render()?,
            columns,
            rows: rows.collect::<Result<_, askama::Error>>()?,
            below: window.below(
                &format!("/{}", words.nouns),
                &[("q", &asked.q), ("state", &asked.state)],
                words.nouns,
            ),
        },
    )])
}

/// What the door lists of its requests stands between what all requests have.
fn columns(noun: &str, facts: Option<&Facts>) -> Vec<Cow<'static, str>> {
    let own = facts.into_iter().flat_map(Facts::columns);
    let own = own.map(|fact| plain(&fact.label).into_owned().into());
    let mut columns = vec![title(noun).into(), "State".into(), "Queued".into(), "Project".into()];
    columns.extend(own);
    columns.extend(["VM".into(), "Last word".into()]);
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
    vm: Option<(String, Name<'a>)>,
}

impl<'a> RequestRow<'a> {
    fn new(request: &'a RequestView, nouns: &str) -> Self {
        let standing = request.standing();
        let is_open = request.is_open();
        Self {
            request,
            href: request_href(nouns, &request.id.id),
            name: Name(short_id(&request.id.id)),
            state: standing.as_str(),
            mood: standing.mood().as_str(),
            queued: request.queued.map(|at| if is_open { When::ago(at) } else { When::at(at) }),
            vm: request.vm.as_deref().map(|vm| (vm_href(vm), Name(vm))),
        }
    }
}
