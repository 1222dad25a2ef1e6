use askama::Template;
use roost_door::{House, NotMeant};
use roost_views::words::count;
use roost_views::{DecisionQuery, DecisionView, Verdict};

use super::block::{Block, Row, Table, fixed};
use super::foreign::Words;
use super::shown::{DecisionRow, Ways};
use super::sorting::{Key, Sorting, headings};
use super::{Asked, export};

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
    let mut found = house.decisions(&query);
    found.reverse();
    found.truncate(SHOWN);
    sort(&mut found, &asked.sort);
    let rows = found.iter().map(|decision| {
        Ok(Row { key: decision.seq.to_string(), html: DecisionRow::new(decision, &ways).render()? })
    });
    let others = [
        ("subject", asked.subject.trim()),
        ("verdict", asked.verdict.trim()),
        ("bound_by", asked.bound_by.trim()),
    ];
    let below = if found.len() >= SHOWN {
        format!("the newest {SHOWN}; filters find older ones")
    } else {
        count(found.len() as u64, "decision", "decisions")
    };
    // A beginning that several have in common is worth more than an empty list.
    let asked_for = query.subject.as_deref().filter(|_| found.is_empty());
    let why = asked_for.and_then(|text| house.not_a_subject(text)).map(|why| {
        let (NotMeant::Several(words) | NotMeant::Unknown(words)) = why;
        format!("; {}", Words(&words))
    });
    let below =
        format!("{below}{}{}", why.unwrap_or_default(), export::ways("/decisions", &others));
    Ok(vec![Block::table(
        "decisions",
        Table {
            above: Filters { asked, verdicts: &Verdict::ALL.map(Verdict::as_str) }.render()?,
            columns: headings(&fixed(DecisionRow::COLUMNS), "/decisions", &others, &asked.sort),
            rows: rows.collect::<Result<_, askama::Error>>()?,
            below,
        },
    )])
}

/// By a column of [`DecisionRow::COLUMNS`]; newest first without one.
pub(super) fn sort(found: &mut [DecisionView], asked: &str) {
    let Some(sorting) = Sorting::asked(asked) else { return };
    let Some(place) = sorting.place(&fixed(DecisionRow::COLUMNS)) else { return };
    let key = |it: &DecisionView| match place {
        0 => Key::number(Some(it.at.as_millisecond())),
        1 => Key::word(Some(it.verdict.as_str())),
        2 => Key::word(it.subject_name.as_deref().or(Some(&it.subject))),
        3 => Key::word(Some(&it.reason)),
        _ => Key::word(it.bound_by.as_deref()),
    };
    found.sort_by(|a, b| sorting.order(&key(a), &key(b)));
}

#[derive(Template)]
#[template(path = "decisions.html")]
struct Filters<'a> {
    asked: &'a Asked,
    verdicts: &'a [&'static str],
}
