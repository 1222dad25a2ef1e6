use askama::Template;

use super::Asked;
use super::block::{Block, Row, Table};
use super::foreign::{Name, Words, plain};
use super::paging::Window;
use super::shown::{When, job_href, mood, vm_href};
use super::words::short_id;
use crate::Source;
use crate::views::{JobState, JobView};

const COLUMNS: &[&str] =
    &["Job", "State", "Queued", "Project", "Model", "Flavor", "VM", "Last word"];

pub(super) fn blocks(source: &dyn Source, asked: &Asked) -> Result<Vec<Block>, askama::Error> {
    let mut jobs = source.jobs();
    let wanted = |job: &JobView| {
        let texts = [Some(&job.id), job.project.as_ref(), job.vm.as_ref(), job.model.as_ref()];
        (asked.state.is_empty() || asked.state == job.state.as_str())
            && (asked.q.is_empty() || texts.iter().flatten().any(|text| text.contains(&asked.q)))
    };
    jobs.retain(wanted);
    let window = Window::new(&asked.page, jobs.len());
    let rows = jobs[window.range()]
        .iter()
        .map(|job| Ok(Row { key: plain(&job.id).into_owned(), html: JobRow::new(job).render()? }));
    let states = [JobState::Waiting, JobState::Starting, JobState::Running, JobState::Ended]
        .map(JobState::as_str);
    Ok(vec![Block::table(
        "jobs",
        Table {
            above: Filter {
                title: "Jobs",
                name: "state",
                chosen: &asked.state,
                values: &states,
                q: &asked.q,
            }
            .render()?,
            columns: COLUMNS,
            rows: rows.collect::<Result<_, askama::Error>>()?,
            below: window.below("/jobs", &[("q", &asked.q), ("state", &asked.state)], "jobs"),
        },
    )])
}

/// What narrows a list.
#[derive(Template)]
#[template(path = "filter.html")]
pub(super) struct Filter<'a> {
    pub(super) title: &'static str,
    pub(super) name: &'static str,
    pub(super) chosen: &'a str,
    pub(super) values: &'a [&'static str],
    pub(super) q: &'a str,
}

#[derive(Template)]
#[template(path = "job_row.html")]
struct JobRow<'a> {
    job: &'a JobView,
    href: String,
    name: Name<'a>,
    state: &'static str,
    mood: &'static str,
    queued: Option<When>,
    vm: Option<(String, Name<'a>)>,
}

impl<'a> JobRow<'a> {
    fn new(job: &'a JobView) -> Self {
        let is_open = matches!(job.state, JobState::Waiting | JobState::Starting);
        Self {
            job,
            href: job_href(&job.id),
            name: Name(short_id(&job.id)),
            state: state_words(job),
            mood: state_mood(job),
            queued: job.queued.map(|at| if is_open { When::ago(at) } else { When::at(at) }),
            vm: job.vm.as_deref().map(|vm| (vm_href(vm), Name(vm))),
        }
    }
}

/// One that was refused waits for somebody to change something, not for us.
pub(super) fn state_words(job: &JobView) -> &'static str {
    if is_refused(job) { "refused" } else { job.state.as_str() }
}

pub(super) fn is_refused(job: &JobView) -> bool {
    let last = job.verdict.as_ref().map(|decision| decision.verdict.as_str());
    job.state == JobState::Waiting && last == Some("refused")
}

/// One that waits and was told why it never will be served is worse than one that waits.
pub(super) fn state_mood(job: &JobView) -> &'static str {
    match job.state {
        JobState::Waiting => match &job.verdict {
            Some(decision) if mood(&decision.verdict) == "bad" => "bad",
            _ => "wait",
        },
        JobState::Starting => "busy",
        JobState::Running => "good",
        JobState::Ended => "quiet",
    }
}
