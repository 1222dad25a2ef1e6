use askama::Template;
use roost_door::House;
use roost_views::words::count;
use roost_views::{DecisionQuery, Verdict};

use super::Asked;
use super::block::{Block, Row, Table, fixed};
use super::shown::{DecisionRow, Ways};

/// Some screens of the newest.
const SHOWN: usize = 100;

pub(super) fn blocks(house: &House, asked: &Asked) -> Result<Vec<Block>, askama::Error> {
    let filled = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let query = DecisionQuery {
        subject: filled(&asked.subject),
        verdict: filled(&asked.verdict),
        bound_by: filled(&asked.bound_by),
        events: false,
        after: None,
        limit: Some(SHOWN),
    };
    let ways = Ways::of(house);
    let found = house.decisions(&query);
    let rows = found.iter().rev().take(SHOWN).map(|decision| {
        Ok(Row { key: decision.seq.to_string(), html: DecisionRow::new(decision, &ways).render()? })
    });
    let below = if found.len() >= SHOWN {
        format!("the newest {SHOWN}; filters find older ones")
    } else {
        count(found.len() as u64, "decision", "decisions")
    };
    Ok(vec![Block::table(
        "decisions",
        Table {
            above: Filters { asked, verdicts: &Verdict::ALL.map(Verdict::as_str) }.render()?,
            columns: fixed(DecisionRow::COLUMNS),
            rows: rows.collect::<Result<_, askama::Error>>()?,
            below,
        },
    )])
}

#[derive(Template)]
#[template(path = "decisions.html")]
struct Filters<'a> {
    asked: &'a Asked,
    verdicts: &'a [&'static str],
}
