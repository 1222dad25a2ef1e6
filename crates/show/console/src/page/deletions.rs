//! Deletions: what they rest on, and what keeps them within bounds.

use askama::Template;
use roost_door::House;
use roost_views::words::{Style, secs};
use roost_views::{BudgetView, CandidateView, DeletionsDetail};

use super::block::{Block, Html, Row, Table, fixed};
use super::foreign::{Name, Words};
use super::shown::{Bar, Button, DecisionRow, Gates, Ways, When, vm_href};
use super::sorting::headings;
use super::{Asked, decisions, export};

/// Newest first; each with its evidence.
const SHOWN: usize = 60;

pub(super) fn blocks(house: &House, asked: &Asked) -> Result<Vec<Block>, askama::Error> {
    let (detail, ways) = (house.deletions(), Ways::of(house));
    let mut shown: Vec<_> = detail.decisions.iter().rev().take(SHOWN).cloned().collect();
    decisions::sort(&mut shown, &asked.sort);
    let rows = shown.iter().map(|decision| {
        let mut html = DecisionRow::new(decision, &ways).render()?;
        let gates = Some(&decision.gates).filter(|gates| !gates.is_empty());
        let evidence = Evidence { gates: gates.map(|gates| Gates::new(gates)) };
        html.push_str(&evidence.render()?);
        Ok(Row { key: decision.seq.to_string(), html })
    });
    let rows = rows.collect::<Result<_, askama::Error>>()?;
    let below = format!(
        "the last {} of what was deleted or kept{}",
        shown.len(),
        export::ways("/deletions", &[])
    );
    // The evidence is no word to sort by.
    let mut columns = headings(&fixed(DecisionRow::COLUMNS), "/deletions", &[], &asked.sort);
    columns.push("Evidence".into());
    Ok(vec![
        Block::whole("guard", GuardPanel::new(&detail).render()?),
        Block::whole("candidates", Candidates::new(&detail.candidates).render()?),
        Block::table(
            "decisions",
            Table { above: "<h2>Deleted and kept</h2>".to_owned(), columns, rows, below },
        ),
    ])
}

pub(super) fn thaw() -> Button {
    Button {
        post: "/api/v1/actions/thaw".to_owned(),
        words: "Resume deletions".into(),
        confirm: "Look at everything anew and delete again what is found twice?".to_owned(),
        with: r#"{"found":"start_over"}"#,
        is_grave: false,
    }
}

fn approve(vms: usize) -> Button {
    Button {
        post: "/api/v1/actions/thaw".to_owned(),
        words: "Delete these VMs".into(),
        confirm: format!("Delete the {vms} VMs that the freeze names?"),
        with: r#"{"found":"approve"}"#,
        is_grave: true,
    }
}

#[derive(Template)]
#[template(
    source = "<td class=\"why\">{% if let Some(gates) = gates %}<details><summary>evidence</summary>{{ Html(gates.render()?) }}</details>{% endif %}</td>",
    ext = "html"
)]
struct Evidence<'a> {
    gates: Option<Gates<'a>>,
}

#[derive(Template)]
#[template(path = "guard.html")]
struct GuardPanel<'a> {
    frozen: Option<Frozen<'a>>,
    budgets: Vec<Budget<'a>>,
}

struct Frozen<'a> {
    words: Words<'a>,
    since: When,
    names: Vec<(String, Name<'a>)>,
    thaw: Button,
    approve: Option<Button>,
}

struct Budget<'a> {
    view: &'a BudgetView,
    bar: Bar,
    grace: String,
}

impl<'a> GuardPanel<'a> {
    fn new(detail: &'a DeletionsDetail) -> Self {
        let budget = |view: &'a BudgetView| Budget {
            bar: Bar {
                whole: view.per_minute.max(view.spent).max(1),
                parts: vec![("used", view.spent)],
                label: match view.per_minute {
                    0 => format!("{} in the last minute", view.spent),
                    budget => format!("{} of {budget} in the last minute", view.spent),
                },
            },
            grace: secs(view.grace_secs, Style::Long),
            view,
        };
        Self {
            frozen: detail.frozen.as_ref().map(|freeze| Frozen {
                words: Words(&freeze.words),
                since: When::at(freeze.since),
                names: freeze.vms.iter().map(|vm| (vm_href(vm), Name(vm))).collect(),
                thaw: thaw(),
                approve: (!freeze.vms.is_empty()).then(|| approve(freeze.vms.len())),
            }),
            budgets: detail.budgets.iter().map(budget).collect(),
        }
    }
}

#[derive(Template)]
#[template(path = "candidates.html")]
struct Candidates<'a> {
    candidates: &'a [CandidateView],
}

impl<'a> Candidates<'a> {
    fn new(candidates: &'a [CandidateView]) -> Self {
        Self { candidates: &candidates[..candidates.len().min(SHOWN)] }
    }
}
