use clap::{Args, Subcommand};
use roost_door::{Action, Found};
use roost_views::RequestId;

use crate::ask::{ANY_DOOR, Reach};

#[derive(Debug, Subcommand)]
pub enum Tell {
    /// Stop spawning in a running service, or working at one object; what is under way goes on
    Pause(Box<Hold>),
    /// Spawn again, after a pause or a drain, or work at one object again
    Resume(Box<Hold>),
    /// Stop spawning, and let the workers that run come to their end
    Drain(Box<Drain>),
    /// Stop deleting VMs, whatever happens
    Freeze(Box<Telling>),
    /// Delete VMs again, after a look at why that was frozen
    ///
    /// Ends a freeze that a person asked for, and one that the guard began because too much was to be deleted at once. Without --approve
    /// everything is looked at anew and has to be seen as deletable twice again.
    Thaw(Box<Thaw>),
    /// Delete one VM of a running service, through the guard as every deletion
    Delete(Box<Delete>),
    /// Fill a warm pool now, however often that failed before
    Refill(Box<Refill>),
    /// Look at a request now, and not when it is due
    Recheck(Box<Recheck>),
}

/// Whom to tell, and why.
#[derive(Debug, Args)]
pub struct Telling {
    /// Why, in your words; stands in the service's journal
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,

    #[command(flatten)]
    pub(super) reach: Reach,

    /// Print what came of it as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub struct Hold {
    /// Only this object, such as: vm NAMESPACE/NAME
    #[arg(value_name = "[KIND] ID", num_args = 0..=2)]
    subject: Vec<String>,

    #[command(flatten)]
    telling: Telling,
}

impl Hold {
    /// Ids of objects are their own, whatever kind stands before them.
    fn request(&self) -> Option<RequestId> {
        self.subject.last().map(|id| RequestId::new(ANY_DOOR, &**id))
    }
}

#[derive(Debug, Args)]
pub struct Drain {
    /// Wait until the last worker has ended
    #[arg(long)]
    wait: bool,

    #[command(flatten)]
    telling: Telling,
}

#[derive(Debug, Args)]
pub struct Thaw {
    /// The VMs that the freeze names may go
    #[arg(long)]
    approve: bool,

    #[command(flatten)]
    telling: Telling,
}

#[derive(Debug, Args)]
pub struct Delete {
    /// The VM's name or id
    #[arg(value_name = "VM")]
    vm: String,

    #[command(flatten)]
    telling: Telling,
}

#[derive(Debug, Args)]
pub struct Refill {
    /// The pool's model, as `roost pools` shows it
    #[arg(value_name = "MODEL")]
    model: String,

    #[command(flatten)]
    telling: Telling,
}

#[derive(Debug, Args)]
pub struct Recheck {
    /// The request's id
    #[arg(value_name = "REQUEST")]
    request: String,

    #[command(flatten)]
    telling: Telling,
}

impl Tell {
    pub(super) fn telling(&self) -> &Telling {
        match self {
            Self::Pause(hold) | Self::Resume(hold) => &hold.telling,
            Self::Freeze(telling) => telling,
            Self::Drain(drain) => &drain.telling,
            Self::Thaw(thaw) => &thaw.telling,
            Self::Delete(delete) => &delete.telling,
            Self::Refill(refill) => &refill.telling,
            Self::Recheck(recheck) => &recheck.telling,
        }
    }

    pub(super) fn action(&self) -> Action {
        match self {
            Self::Pause(hold) => match hold.request() {
                Some(request) => Action::PauseRequest { request },
                None => Action::PauseSpawning,
            },
            Self::Resume(hold) => match hold.request() {
                Some(request) => Action::ResumeRequest { request },
                None => Action::ResumeSpawning,
            },
            Self::Drain(_) => Action::Drain,
            Self::Freeze(_) => Action::FreezeDeletions,
            Self::Thaw(thaw) => Action::ResumeDeletions {
                found: if thaw.approve { Found::Approve } else { Found::StartOver },
            },
            Self::Delete(delete) => Action::DeleteVm { vm: delete.vm.clone() },
            Self::Refill(refill) => Action::RefillPool { pool: refill.model.clone() },
            Self::Recheck(recheck) => {
                Action::Recheck { request: RequestId::new(ANY_DOOR, &*recheck.request) }
            }
        }
    }

    pub(super) fn waits(&self) -> bool {
        matches!(self, Self::Drain(drain) if drain.wait)
    }
}
