use std::cmp::Reverse;

use roost_console::views::JobView;

use super::table::{Table, left, right};
use super::words::{or_dash, span};

/// Those that wait first, and of those the ones that wait longest.
pub(super) fn render(mut jobs: Vec<JobView>, width: Option<usize>) -> Vec<String> {
    if jobs.is_empty() {
        return vec!["no jobs".to_owned()];
    }
    jobs.sort_by(|a, b| {
        let key = |job: &JobView| (job.state, Reverse(job.waited_secs));
        key(a).cmp(&key(b)).then_with(|| a.id.cmp(&b.id))
    });
    let mut table = Table::new([
        left("JOB"),
        left("STATE"),
        right("WAITED"),
        left("PROJECT").narrows(3, 8).goes(6),
        left("WORKFLOW").narrows(2, 10).goes(5),
        left("MODEL").narrows(4, 8).goes(8),
        left("FLAVOR").goes(7),
        left("VM").narrows(9, 12).goes(10),
        left("WHY").narrows(1, 30).narrows(11, 12),
    ]);
    for job in jobs {
        let why =
            job.verdict.as_ref().map(|verdict| format!("{}: {}", verdict.verdict, verdict.reason));
        table.row([
            job.id,
            job.state.as_str().to_owned(),
            or_dash(job.waited_secs.map(span).as_deref()),
            or_dash(job.project.as_deref()),
            or_dash(job.workflow.as_deref()),
            or_dash(job.model.as_deref()),
            or_dash(job.flavor.as_deref()),
            or_dash(job.vm.as_deref()),
            or_dash(why.as_deref()),
        ]);
    }
    table.render(width)
}
