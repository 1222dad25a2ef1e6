use askama::Template;
use roost_views::{AddressView, AddressesView, Overview};

use super::foreign::{Words, plain};
use super::shown::Bar;

/// One cell each up to here; beyond it, cells would be too small to mean anything.
const CELLS: usize = 512;
/// In one line of the map.
const PER_LINE: usize = 32;
/// In the map's own units.
const SIDE: usize = 10;

/// The addresses of the configured ranges, a cell for each.
#[derive(Template)]
#[template(path = "addresses.html")]
pub(super) struct AddressMap<'a> {
    counts: Option<&'a AddressesView>,
    cells: Vec<Cell>,
    width: usize,
    height: usize,
    bar: Option<Bar>,
}

struct Cell {
    x: usize,
    y: usize,
    state: &'static str,
    title: String,
}

impl<'a> AddressMap<'a> {
    pub(super) fn new(seen: &'a Overview, addresses: &[AddressView]) -> Self {
        let shown = if addresses.len() <= CELLS { addresses } else { &[] };
        let cells: Vec<Cell> = shown.iter().enumerate().map(Cell::new).collect();
        let lines = shown.len().div_ceil(PER_LINE).max(1);
        let bar = seen.addresses.as_ref().filter(|_| cells.is_empty()).map(|counts| Bar {
            whole: counts.total,
            parts: vec![
                ("used", counts.used),
                ("reserved", counts.reserved),
                ("resting", counts.quarantined),
            ],
            label: format!("{} of {} are free", counts.free, counts.total),
        });
        Self {
            counts: seen.addresses.as_ref(),
            width: shown.len().clamp(PER_LINE / 2, PER_LINE) * SIDE,
            height: lines * SIDE,
            cells,
            bar,
        }
    }
}

impl Cell {
    fn new((index, address): (usize, &AddressView)) -> Self {
        let mut title = format!("{} {}", plain(&address.address), address.state.as_str());
        if let Some(vm) = &address.vm {
            title.push_str(" by ");
            title.push_str(&plain(vm));
        }
        if let Some(until) = address.until {
            title.push_str(" until ");
            title.push_str(&roost_views::words::clock(until));
        }
        Self {
            x: index % PER_LINE * SIDE,
            y: index / PER_LINE * SIDE,
            state: address.state.as_str(),
            title,
        }
    }
}
