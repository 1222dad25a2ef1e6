//! Joins the console's actions to the hatchery's helm.

use roost_console::{Acting, Action, Found, Order, Refused, Steer};
use roost_fleet::Resume;
use roost_hatchery::run::{Helm, NotDone};

/// A running hatchery as persons steer it.
#[derive(Debug)]
pub(crate) struct HatcherySteer(pub(crate) Helm);

impl Steer for HatcherySteer {
    fn act(&self, order: Order) -> Acting<'_> {
        Box::pin(async move {
            let Self(helm) = self;
            let who = &order.to_string();
            let done = match order.action {
                Action::PauseSpawning => Ok(helm.pause(who)),
                Action::ResumeSpawning => Ok(helm.resume(who)),
                Action::Drain => Ok(helm.drain(who)),
                Action::FreezeDeletions => Ok(helm.freeze_deletions(who)),
                Action::ResumeDeletions { found } => {
                    let found = match found {
                        Found::Approve => Resume::Approve,
                        Found::StartOver => Resume::StartOver,
                    };
                    Ok(helm.resume_deletions(who, found))
                }
                Action::DeleteVm { vm } => helm.delete_vm(who, &vm).await,
                Action::RefillPool { model } => helm.refill(who, &model),
                Action::RecheckJob { job } => helm.recheck(who, &job),
            };
            done.map_err(|not_done| match not_done {
                NotDone::Unknown { what } => Refused::Unknown { what },
                NotDone::Foreign { .. } | NotDone::Template { .. } | NotDone::Mark { .. } => {
                    Refused::NotNow { why: not_done.to_string() }
                }
            })
        })
    }
}
