use askama::Template;

use super::Asked;
use super::block::{Block, Row, Table};
use super::foreign::{Name, Words, plain};
use super::jobs::Filter;
use super::paging::Window;
use super::shown::{When, job_href, vm_href};
use super::words::{memory, short_id};
use crate::Source;
use crate::views::{VmKind, VmView};

const COLUMNS: &[&str] =
    &["VM", "Kind", "Phase", "Power", "Size", "Address", "Job", "Created", "Why it stays or goes"];

pub(super) fn blocks(source: &dyn Source, asked: &Asked) -> Result<Vec<Block>, askama::Error> {
    let mut vms = source.vms();
    let wanted = |vm: &VmView| {
        let texts = [Some(&vm.id), Some(&vm.name), vm.address.as_ref(), vm.template.as_ref()];
        (asked.kind.is_empty() || asked.kind == vm.kind.as_str())
            && (asked.q.is_empty() || texts.iter().flatten().any(|text| text.contains(&asked.q)))
    };
    vms.retain(wanted);
    let window = Window::new(&asked.page, vms.len());
    let rows = vms[window.range()]
        .iter()
        .map(|vm| Ok(Row { key: plain(&vm.id).into_owned(), html: VmRow::new(vm).render()? }));
    let kinds = [
        VmKind::Worker,
        VmKind::Spare,
        VmKind::Registering,
        VmKind::Building,
        VmKind::Template,
        VmKind::Leaving,
    ]
    .map(VmKind::as_str);
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
            columns: COLUMNS,
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
    job: Option<(String, Name<'a>)>,
    created: Option<When>,
}

impl<'a> VmRow<'a> {
    fn new(vm: &'a VmView) -> Self {
        Self {
            vm,
            href: vm_href(&vm.id),
            mood: kind_mood(vm.kind),
            size: size(vm),
            job: vm.job.as_deref().map(|job| (job_href(job), Name(short_id(job)))),
            created: vm.created.map(When::at),
        }
    }
}

pub(super) fn kind_mood(kind: VmKind) -> &'static str {
    match kind {
        VmKind::Worker => "good",
        VmKind::Spare | VmKind::Registering | VmKind::Building => "busy",
        VmKind::Template | VmKind::Leaving => "quiet",
    }
}

pub(super) fn size(vm: &VmView) -> String {
    let cpus = vm.cpus.map(|cpus| format!("{cpus} CPU"));
    let memory = vm.memory_mb.map(memory);
    cpus.into_iter().chain(memory).collect::<Vec<_>>().join(", ")
}
