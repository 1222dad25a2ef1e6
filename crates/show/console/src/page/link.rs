//! The vCenter link: what it costs the server and how it was lately.

use askama::Template;
use roost_door::House;
use roost_views::words::{Style, clock};
use roost_views::{FaultView, LinkDetail, LinkMinute};

use super::block::Block;
use super::foreign::{Name, Words};
use super::shown::{When, share};

/// Methods that are worth a line.
const METHODS: usize = 20;

pub(super) fn blocks(house: &House) -> Result<Vec<Block>, askama::Error> {
    let detail = house.link();
    Ok(vec![
        Block::whole("subject", Facts { detail: &detail }.render()?),
        Block::whole("minutes", Minutes::new(&detail.minutes).render()?.trim().to_owned()),
        Block::whole("methods", Methods { detail: &detail }.render()?.trim().to_owned()),
        Block::whole("faults", Faults { faults: &detail.faults }.render()?),
    ])
}

#[derive(Template)]
#[template(path = "link.html")]
struct Facts<'a> {
    detail: &'a LinkDetail,
}

/// Calls by the minute, as columns.
#[derive(Template)]
#[template(path = "minutes.html")]
struct Minutes {
    columns: Vec<Column>,
    most: u64,
    width: usize,
}

struct Column {
    x: usize,
    calls: u64,
    faults: u64,
    title: String,
}

impl Minutes {
    fn new(minutes: &[LinkMinute]) -> Self {
        let most = minutes.iter().map(|minute| minute.calls).max().unwrap_or_default();
        let column = |(index, minute): (usize, &LinkMinute)| Column {
            x: index * 10,
            // Of sixty.
            calls: share(minute.calls, most) * 60 / 1_000,
            faults: share(minute.faults, most) * 60 / 1_000,
            title: format!(
                "{}: {} calls, {} faults, {} logins",
                clock(minute.began),
                minute.calls,
                minute.faults,
                minute.logins
            ),
        };
        Self {
            columns: minutes.iter().enumerate().map(column).collect(),
            most,
            width: minutes.len().max(1) * 10,
        }
    }
}

#[derive(Template)]
#[template(path = "methods.html")]
struct Methods<'a> {
    detail: &'a LinkDetail,
}

#[derive(Template)]
#[template(path = "faults.html")]
struct Faults<'a> {
    faults: &'a [FaultView],
}
