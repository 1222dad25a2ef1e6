use std::path::PathBuf;

use clap::{Args, Subcommand};
use roost_console::views::DecisionQuery;

#[derive(Debug, Subcommand)]
pub(crate) enum Ask {
    /// Show what a running service does, and what binds it
    Status(Asking),
    /// List the jobs that a running service knows, those that wait first
    Jobs(Asking),
    /// List the VMs of a running service
    Vms(Asking),
    /// List the warm pools of a running service
    Pools(Asking),
    /// List what a running service decided, newest last
    Decisions(Box<Decisions>),
    /// Explain why a job waits or what became of it
    Explain(Box<Explain>),
}

impl Ask {
    pub(super) fn asking(&self) -> &Asking {
        match self {
            Self::Status(asking) | Self::Jobs(asking) | Self::Vms(asking) | Self::Pools(asking) => {
                asking
            }
            Self::Decisions(decisions) => &decisions.asking,
            Self::Explain(explain) => &explain.asking,
        }
    }
}

/// Whom to ask, and how to print it.
#[derive(Debug, Default, Args)]
pub(crate) struct Asking {
    /// Where the service is [env: ROOST_URL] [default: http://127.0.0.1:8086]
    #[arg(long, value_name = "URL", conflicts_with = "config")]
    pub(super) url: Option<String>,

    /// Ask the service of this configuration file; only its http section is read
    #[arg(short, long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,

    /// File with the bearer token that a service on another machine wants [env: ROOST_TOKEN holds the token itself]
    #[arg(long, value_name = "FILE")]
    pub(super) token_file: Option<PathBuf>,

    /// Print all that the service says, as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Decisions {
    /// Only those on this job, VM or pool
    #[arg(long, value_name = "ID")]
    subject: Option<String>,

    /// Only those that came out so, such as deferred, refused or deleted
    #[arg(long, value_name = "WORD")]
    verdict: Option<String>,

    /// Only those that this gate decided
    #[arg(long, value_name = "GATE")]
    bound_by: Option<String>,

    /// Only those after this number
    #[arg(long, value_name = "SEQ")]
    after: Option<u64>,

    /// The newest so many
    #[arg(short = 'n', long, default_value_t = 50, value_name = "N")]
    limit: usize,

    #[command(flatten)]
    asking: Asking,
}

impl Decisions {
    pub(super) fn query(&self) -> DecisionQuery {
        DecisionQuery {
            subject: self.subject.clone(),
            verdict: self.verdict.clone(),
            bound_by: self.bound_by.clone(),
            after: self.after,
            limit: Some(self.limit),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The job's id
    pub(super) job: String,

    #[command(flatten)]
    asking: Asking,
}
