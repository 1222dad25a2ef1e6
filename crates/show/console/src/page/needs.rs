//! What needs a person, before anything else.

use askama::Template;
use jiff::Timestamp;
use roost_door::Links;
use roost_views::{NeedView, Overview};

use super::foreign::Words;
use super::shown::When;

#[derive(Template)]
#[template(path = "needs.html")]
struct Needs<'a> {
    needs: Vec<Need<'a>>,
    /// Nothing is decided yet, so that nobody knows.
    is_ready: bool,
}

struct Need<'a> {
    view: &'a NeedView,
    words: Words<'a>,
    advice: Words<'a>,
    since: Option<When>,
    names: String,
    runbook: Option<Runbook>,
}

/// A page of the documentation: a link where it is known where that is, its name elsewhere.
pub(super) struct Runbook {
    pub(super) href: Option<String>,
    pub(super) name: String,
}

impl Runbook {
    fn new(name: &str, links: &Links) -> Self {
        let page = format!("runbooks/{name}.md");
        Self { href: links.docs(&page), name: format!("docs/{page}") }
    }
}

pub(super) fn render(seen: &Overview, links: &Links) -> Result<String, askama::Error> {
    let needs = seen.needs.iter().map(|view| Need {
        view,
        words: Words(&view.words),
        advice: Words(&view.advice),
        since: view.since.map(When::ago),
        names: view.names.join(", "),
        runbook: view.runbook.as_deref().map(|name| Runbook::new(name, links)),
    });
    Needs { needs: needs.collect(), is_ready: seen.ready }.render()
}

/// A server that cannot be reached, on pages other than the overview.
pub(super) struct Outage<'a> {
    pub(super) server: Words<'a>,
    pub(super) since: Option<Timestamp>,
    pub(super) trouble: Option<Words<'a>>,
    pub(super) rest: String,
    pub(super) runbook: Option<Runbook>,
}

pub(super) fn outages<'a>(seen: &'a Overview, links: &Links) -> Vec<Outage<'a>> {
    let outage = |it: &'a roost_views::OutageView| Outage {
        server: Words(&it.server),
        since: it.since,
        trouble: it.trouble.as_deref().map(Words),
        rest: format!("{} {} {}", it.goes_on, it.held, it.next_try),
        runbook: it.runbook.as_deref().map(|name| Runbook::new(name, links)),
    };
    seen.outages.iter().map(outage).collect()
}
