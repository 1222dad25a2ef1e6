//! When a request that waits probably starts, and who holds what it needs.

use askama::Template;
use roost_views::words::{Style, secs, short_id, title};
use roost_views::{HolderView, OutlookView};

use super::foreign::{Name, Words};
use super::shown::{Ways, When, vm_href};

#[derive(Template)]
#[template(path = "outlook.html")]
struct Outlook<'a> {
    view: &'a OutlookView,
    gate: Option<Name<'a>>,
    next: String,
    estimate: Option<(String, When)>,
    basis: Words<'a>,
    group: String,
    holders: Vec<Holder<'a>>,
    more: u64,
}

struct Holder<'a> {
    href: String,
    name: Name<'a>,
    request: Option<(Option<String>, Name<'a>)>,
    project: Option<(Option<String>, Name<'a>)>,
    amount: String,
    ends: Option<When>,
}

pub(super) fn render(view: Option<&OutlookView>, ways: &Ways) -> Result<String, askama::Error> {
    let Some(view) = view else { return Ok(String::new()) };
    let holder = |it: &'_ HolderView| it.unit.amount(it.amount, Style::Long);
    let holders: Vec<Holder<'_>> = view
        .holders
        .iter()
        .map(|it| Holder {
            href: vm_href(&it.vm),
            name: Name(&it.vm),
            request: it.request.as_ref().map(|id| (ways.request(id), Name(short_id(&id.id)))),
            project: it.project.as_deref().map(|project| {
                let href = it.request.as_ref().and_then(|id| ways.requests_of(&id.door, project));
                (href, Name(project))
            }),
            amount: holder(it),
            ends: it.ends.map(When::at),
        })
        .collect();
    let estimate = view.estimate.map(|it| (secs(it.in_secs, Style::Long), When::at(it.at)));
    Outlook {
        gate: view.gate.as_deref().map(Name),
        next: view.next_gates.join(", "),
        estimate,
        basis: Words(&view.basis),
        group: title(&view.group),
        more: view.held_by.saturating_sub(holders.len() as u64),
        holders,
        view,
    }
    .render()
}
