use jiff::Timestamp;
use roost_console::views::VmView;

use super::table::{Table, left, right};
use super::words::{memory, or_dash, since};

/// Workers first, then what is to become one, then what leaves.
pub(super) fn render(mut vms: Vec<VmView>, now: Timestamp, width: Option<usize>) -> Vec<String> {
    if vms.is_empty() {
        return vec!["no VMs".to_owned()];
    }
    vms.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    let mut table = Table::new([
        left("NAME"),
        left("KIND"),
        left("PHASE").narrows(11, 8),
        right("SINCE").goes(10),
        left("JOB").narrows(7, 8).goes(12),
        left("MODEL").narrows(6, 8).goes(8),
        left("FLAVOR").goes(5),
        right("CPUS").goes(3),
        right("MEMORY").goes(3),
        left("ADDRESS").goes(9),
        left("POWER").goes(2),
        right("AGE").goes(13),
        left("FATE").narrows(1, 16).goes(4),
    ]);
    for vm in vms {
        table.row([
            vm.name,
            vm.kind.as_str().to_owned(),
            or_dash(vm.phase.or(vm.worker_status).as_deref()),
            or_dash(vm.phase_since.map(|then| since(now, then)).as_deref()),
            or_dash(vm.job.as_deref()),
            or_dash(vm.model.as_deref().or(vm.template.as_deref())),
            or_dash(vm.flavor.as_deref()),
            or_dash(vm.cpus.map(|cpus| cpus.to_string()).as_deref()),
            or_dash(vm.memory_mb.map(memory).as_deref()),
            or_dash(vm.address.as_deref()),
            vm.power,
            or_dash(vm.created.map(|then| since(now, then)).as_deref()),
            or_dash(vm.fate.as_deref()),
        ]);
    }
    table.render(width)
}
