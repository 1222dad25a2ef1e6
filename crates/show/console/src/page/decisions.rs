use askama::Template;

use super::Asked;
use super::block::{Block, Row, Table};
use super::shown::DecisionRow;
use crate::Source;
use crate::views::DecisionQuery;

/// Some screens of the newest.
const SHOWN: usize = 100;

const VERDICTS: [&str; 11] = [
    "spawned", "skipped", "deferred", "refused", "failed", "released", "deleted", "kept",
    "adopted", "finished", "steered",
];

pub(super) fn blocks(source: &dyn Source, asked: &Asked) -> Result<Vec<Block>, askama::Error> {
    let filled = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let query = DecisionQuery {
        subject: filled(&asked.subject),
        verdict: filled(&asked.verdict),
        bound_by: filled(&asked.bound_by),
        after: None,
        limit: Some(SHOWN),
    };
    let found = source.decisions(&query);
    let rows = found.iter().rev().take(SHOWN).map(|decision| {
        Ok(Row { key: decision.seq.to_string(), html: DecisionRow::new(decision).render()? })
    });
    let below = if found.len() >= SHOWN {
        format!("the newest {SHOWN}; filters find older ones")
    } else {
        super::words::count(found.len() as u64, "decision", "decisions")
    };
    Ok(vec![Block::table(
        "decisions",
        Table {
            above: Filters { asked, verdicts: &VERDICTS }.render()?,
            columns: DecisionRow::COLUMNS,
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
