use askama::Template;
use roost_door::House;
use roost_views::words::{Style, short_id};
use roost_views::{VmKind, VmView};

use super::Asked;
use super::block::{Block, Row, Table, fixed};
use super::foreign::{Name, Words, plain};
use super::paging::Window;
use super::requests::Filter;
use super::shown::{Ways, When, vm_href};

const COLUMNS: &[&str] = &[
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
    let mut vms = house.vms();
    let wanted = |vm: &VmView| {
        let texts = [Some(&vm.id), Some(&vm.name), vm.address.as_ref(), vm.template.as_ref()];
        (asked.kind.is_empty() || asked.kind == vm.kind.as_str())
            && (asked.q.is_empty() || texts.iter().flatten().any(|text| text.contains(&asked.q)))
    };
    vms.retain(wanted);
    let ways = Ways::of(house);
    let window = Window::new(&asked.page, vms.len());
    let rows = vms[window.range()].iter().map(|vm| {
        Ok(Row { key: plain(&vm.id).into_owned(), html: VmRow::new(vm, &ways).render()? })
    });
    let kinds = VmKind::ALL.map(VmKind::as_str);
    Ok(vec![Block::table(
        "vms",
        Table {
            above: Filter {
                title: "VMs",
                name: "kind",
                chosen: &asked.kind,
                values: &kinds,
                q: &asked.q,
            }
            .render()?,
            columns: fixed(COLUMNS),
            rows: rows.collect::<Result<_, askama::Error>>()?,
            below: window.below("/vms", &[("q", &asked.q), ("kind", &asked.kind)], "VMs of ours"),
        },
    )])
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
