use askama::Template;
use roost_door::House;
use roost_views::words::{Style, short_id};
use roost_views::{Part, RequestState, Served, VmKind, VmView};

use super::Asked;
use super::block::{Block, Row, Table, fixed};
use super::export::{vms_wanted, ways};
use super::foreign::{Name, Words, plain};
use super::paging::Window;
use super::requests::Filter;
use super::shown::{Ways, When, vm_href};
use super::sorting::headings;

pub(super) const COLUMNS: &[&str] = &[
    "VM",
    "Kind",
    "Phase",
    "Power",
    "Size",
    "Address",
    "Serves",
    "Created",
    "Why it stays or goes",
];

pub(super) fn blocks(house: &House, asked: &Asked) -> Result<Vec<Block>, askama::Error> {
    let vms = vms_wanted(house.vms(), asked);
    let links = Ways::of(house);
    let window = Window::new(&asked.page, vms.len());
    let rows = vms[window.range()].iter().map(|vm| {
        Ok(Row { key: plain(&vm.id).into_owned(), html: VmRow::new(vm, &links).render()? })
    });
    let kinds = VmKind::ALL.map(VmKind::as_str);
    let filter = [("q", asked.q.as_str()), ("kind", &asked.kind), ("phase", &asked.phase)];
    let all = [filter[0], filter[1], filter[2], ("sort", &asked.sort)];
    Ok(vec![Block::table(
        "vms",
        Table {
            above: Filter {
                title: "VMs",
                name: "kind",
                chosen: &asked.kind,
                values: &kinds,
                q: &asked.q,
                kept: &[("sort", &asked.sort), ("phase", &asked.phase)],
            }
            .render()?,
            columns: headings(&fixed(COLUMNS), "/vms", &filter, &asked.sort),
            rows: rows.collect::<Result<_, askama::Error>>()?,
            below: window.below("/vms", &all, "VMs of ours") + &ways("/vms", &all),
        },
    )])
}

/// The part of its life that a VM is in, by the words of requests.
pub(super) fn part_word(part: Part) -> &'static str {
    RequestState::of(Served::By(part), None).as_str()
}

#[derive(Template)]
#[template(path = "vm_row.html")]
struct VmRow<'a> {
    vm: &'a VmView,
    href: String,
    mood: &'static str,
    size: String,
    request: Option<(Option<String>, Name<'a>)>,
    created: Option<When>,
}

impl<'a> VmRow<'a> {
    fn new(vm: &'a VmView, ways: &Ways) -> Self {
        Self {
            vm,
            href: vm_href(&vm.id),
            mood: vm.kind.mood().as_str(),
            size: vm.size(Style::Long),
            request: vm.request.as_ref().map(|id| (ways.request(id), Name(short_id(&id.id)))),
            created: vm.created.map(When::at),
        }
    }
}
