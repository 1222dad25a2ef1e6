use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Subcommand, ValueEnum};
use roost_views::{
    DecisionQuery, DecisionView, Facts, PoolView, RequestState, RequestView, VmKind, VmView,
};

use super::pick::SortBy;

#[derive(Debug, Subcommand)]
pub enum Ask {
    /// Show what a running service does, and what binds it
    Status(Box<Status>),
    /// List the requests that a running service knows, those that wait first
    Requests(Box<Requests>),
    /// List the VMs of a running service
    Vms(Box<Vms>),
    /// List the warm pools of a running service
    Pools(Box<Pools>),
    /// List what a running service decided, newest last
    Decisions(Box<Decisions>),
    /// Explain why a request waits or what became of it, or why a VM is as it is
    Explain(Box<Explain>),
}

impl Ask {
    pub(super) fn asking(&self) -> &Asking {
        match self {
            Self::Status(status) => &status.asking,
            Self::Requests(requests) => &requests.asking,
            Self::Vms(vms) => &vms.asking,
            Self::Pools(pools) => &pools.asking,
            Self::Decisions(decisions) => &decisions.asking,
            Self::Explain(explain) => &explain.asking,
        }
    }
}

/// Where a running service is, and what opens it.
#[derive(Debug, Default, Args)]
pub struct Reach {
    /// Where the service is [env: ROOST_URL] [default: http://127.0.0.1:8086]
    #[arg(long, value_name = "URL", conflicts_with = "config")]
    pub(super) url: Option<String>,

    /// Talk to the service of this configuration file; only its http section is read
    #[arg(short, long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,

    /// File with the bearer token: for actions, and for a service on another machine [default: the one that the file of -c gives] [env: ROOST_TOKEN holds the token itself]
    #[arg(long, value_name = "FILE")]
    pub(super) token_file: Option<PathBuf>,
}

/// Whom to ask, and how to print it.
#[derive(Debug, Default, Args)]
pub(super) struct Asking {
    #[command(flatten)]
    pub(super) reach: Reach,

    /// How to print it: wide is a table that is not cut to the terminal, name the names alone, json and yaml all that the service says
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(super) output: Output,

    /// The same as -o json
    #[arg(long, conflicts_with = "output")]
    pub(super) json: bool,

    /// Leave out the titles of columns
    #[arg(long)]
    pub(super) no_headers: bool,

    /// Ask again every so many seconds (2 if none are given) until Ctrl-C; with --json a document per line
    #[arg(short, long, value_name = "SECS", num_args = 0..=1, default_missing_value = "2", value_parser = interval)]
    pub(super) watch: Option<Duration>,
}

/// How an answer is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum Output {
    #[default]
    Table,
    Wide,
    Name,
    Json,
    Yaml,
}

impl Asking {
    pub(super) fn output(&self) -> Output {
        if self.json { Output::Json } else { self.output }
    }

    /// The answer is passed on as it came.
    pub(super) fn is_data(&self) -> bool {
        matches!(self.output(), Output::Json | Output::Yaml)
    }
}

#[derive(Debug, Default, Args)]
pub struct Status {
    /// Ask every service that the file of targets names, a line for each
    #[arg(long, conflicts_with_all = ["url", "config", "watch"])]
    pub(super) all: bool,

    #[command(flatten)]
    pub(super) asking: Asking,
}

/// Which rows of a table, and in which order.
#[derive(Debug, Default, Args)]
pub(super) struct Picking {
    /// Sort by a column, such as `model`; `model:desc` is the other way round
    #[arg(long, value_name = "COLUMN[:desc]")]
    pub(super) sort: Option<SortBy>,

    /// Only rows in which each of these words stands somewhere; small and capital letters are the same
    #[arg(long, value_name = "TEXT")]
    pub(super) filter: Option<String>,
}

/// The words of a closed set, of which several may be given.
fn one_of<const N: usize>(words: [&'static str; N]) -> PossibleValuesParser {
    PossibleValuesParser::new(words)
}

/// What `working` was called before.
const OLD_WORKING: &str = "running";

fn states() -> PossibleValuesParser {
    let words = RequestState::ALL.map(RequestState::as_str).into_iter().map(PossibleValue::new);
    PossibleValuesParser::new(words.chain([PossibleValue::new(OLD_WORKING).hide(true)]))
}

fn has(wanted: &[String], word: &str) -> bool {
    wanted.is_empty() || wanted.iter().any(|wanted| wanted == word)
}

/// Names are long, so a part of one will do.
fn names(wanted: Option<&String>, names: &[Option<&str>]) -> bool {
    wanted.is_none_or(|wanted| {
        let wanted = wanted.to_lowercase();
        names.iter().flatten().any(|name| name.to_lowercase().contains(&wanted))
    })
}

fn model(facts: &Facts) -> Option<&str> {
    facts.get("model")
}

#[derive(Debug, Args)]
pub struct Requests {
    /// Only requests that stand so; several with commas between them (running is the same as working)
    #[arg(long, value_name = "STATE", value_delimiter = ',', value_parser = states())]
    pub(super) state: Vec<String>,

    /// Only requests of this model; a part of its name will do
    #[arg(long, value_name = "MODEL")]
    pub(super) model: Option<String>,

    /// Only requests on which the last word is this, such as deferred or refused
    #[arg(long, value_name = "WORD", value_delimiter = ',')]
    pub(super) verdict: Vec<String>,

    #[command(flatten)]
    pub(super) picking: Picking,
    #[command(flatten)]
    asking: Asking,
}

impl Requests {
    pub(super) fn wants(&self, request: &RequestView) -> bool {
        let verdict = request.verdict.as_ref().map_or("", |said| said.verdict.as_str());
        let state = match request.state {
            RequestState::Working if self.state.iter().any(|word| word == OLD_WORKING) => {
                OLD_WORKING
            }
            state => state.as_str(),
        };
        has(&self.state, state)
            && has(&self.verdict, verdict)
            && names(self.model.as_ref(), &[model(&request.facts)])
    }
}

#[derive(Debug, Args)]
pub struct Vms {
    /// Only VMs of this kind; several with commas between them
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = one_of(VmKind::ALL.map(VmKind::as_str)))]
    pub(super) kind: Vec<String>,

    /// Only VMs of this worker model or template; a part of its name will do
    #[arg(long, value_name = "MODEL")]
    pub(super) model: Option<String>,

    /// Only VMs that are in this phase, such as booting; a part of the word will do
    #[arg(long, value_name = "PHASE")]
    pub(super) phase: Option<String>,

    /// Only VMs with this power state
    #[arg(long, value_name = "POWER", value_parser = one_of(["on", "off", "suspended"]))]
    pub(super) power: Option<String>,

    #[command(flatten)]
    pub(super) picking: Picking,
    #[command(flatten)]
    asking: Asking,
}

impl Vms {
    pub(super) fn wants(&self, vm: &VmView) -> bool {
        has(&self.kind, vm.kind.as_str())
            && self.power.as_ref().is_none_or(|power| *power == vm.power.as_str())
            && names(self.model.as_ref(), &[model(&vm.facts), vm.template.as_deref()])
            && names(self.phase.as_ref(), &[vm.phase.as_ref().map(|phase| phase.words.as_str())])
    }
}

#[derive(Debug, Args)]
pub struct Pools {
    /// Only pools of this worker model or template; a part of its name will do
    #[arg(long, value_name = "MODEL")]
    pub(super) model: Option<String>,

    /// Only pools with fewer spares than they should have
    #[arg(long)]
    pub(super) short: bool,

    #[command(flatten)]
    pub(super) picking: Picking,
    #[command(flatten)]
    asking: Asking,
}

impl Pools {
    pub(super) fn wants(&self, pool: &PoolView) -> bool {
        (!self.short || pool.ready < pool.wanted)
            && names(self.model.as_ref(), &[Some(&pool.name), pool.template.as_deref()])
    }
}

#[derive(Debug, Args)]
pub struct Decisions {
    /// Only those on this request, VM or pool
    #[arg(long, value_name = "ID")]
    subject: Option<String>,

    /// Only those on this kind of thing, such as vm, pool or service; several with commas between them
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub(super) kind: Vec<String>,

    /// Only those that came out so, such as deferred, refused or deleted; steered is what persons did
    #[arg(long, value_name = "WORD")]
    verdict: Option<String>,

    /// Only those that this gate decided
    #[arg(long, value_name = "GATE")]
    bound_by: Option<String>,

    /// Only what has happened: not that something still waits, is somebody else's, or stays
    #[arg(long)]
    events: bool,

    /// Only those after this number
    #[arg(long, value_name = "SEQ")]
    after: Option<u64>,

    /// The newest so many, before --kind and --filter
    #[arg(short = 'n', long, default_value_t = 50, value_name = "N")]
    limit: usize,

    #[command(flatten)]
    pub(super) picking: Picking,
    #[command(flatten)]
    asking: Asking,
}

impl Decisions {
    pub(super) fn query(&self) -> DecisionQuery {
        DecisionQuery {
            subject: self.subject.clone(),
            verdict: self.verdict.clone(),
            bound_by: self.bound_by.clone(),
            events: self.events,
            after: self.after,
            limit: Some(self.limit),
        }
    }

    pub(super) fn wants(&self, decision: &DecisionView) -> bool {
        has(&self.kind, decision.subject_kind.as_str())
    }
}

#[derive(Debug, Args)]
pub struct Explain {
    /// The id of a request, the namespace/name of an object, or a VM's name or id; four letters or more of the beginning will do if no other begins
    /// so. A kind before it says which is meant: vm, agentmachine, pod
    #[arg(value_name = "[KIND] ID", num_args = 1..=2, required = true)]
    pub(super) subject: Vec<String>,

    #[command(flatten)]
    asking: Asking,
}

impl Explain {
    /// What is meant, and where the API has such things if its kind was given.
    pub(super) fn meant(&self) -> (&str, Option<String>) {
        match self.subject.as_slice() {
            [kind, id] => (id, Some(nouns(&kind.to_lowercase(), id))),
            [id] => (id, None),
            _ => ("", None),
        }
    }
}

/// `vm blue/web` is an object of vm-operator, `vm web-1` a VM of whatever door.
fn nouns(kind: &str, id: &str) -> String {
    let one = kind.strip_suffix('s').unwrap_or(kind);
    match one {
        "vm" if id.contains('/') => "virtualmachines".to_owned(),
        one => format!("{one}s"),
    }
}

/// Seconds from one look to the next.
fn interval(text: &str) -> Result<Duration, String> {
    let secs: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if (0.2..=86_400.0).contains(&secs) {
        Ok(Duration::from_secs_f64(secs))
    } else {
        Err("not from 0.2 to 86400 seconds".to_owned())
    }
}
