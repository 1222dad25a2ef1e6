//! Carries out the house's actions by the hatchery's controls.

use roost_door::{Acting, Action, Found, Order, Refused, Steer};
use roost_fleet::Resume;
use roost_views::{Spawning, SteeringView};

use crate::run::{Controls, Hold, NotDone, Window};

impl Steer for Controls {
    fn act(&self, order: Order) -> Acting<'_> {
        Box::pin(async move {
            let who = &order.to_string();
            let done = match order.action {
                Action::PauseSpawning => Ok(self.pause(who)),
                Action::ResumeSpawning => Ok(self.resume(who)),
                Action::Drain => Ok(self.drain(who)),
                Action::FreezeDeletions => Ok(self.freeze_deletions(who)),
                Action::ResumeDeletions { found } => {
                    let found = match found {
                        Found::Approve => Resume::Approve,
                        Found::StartOver => Resume::StartOver,
                    };
                    Ok(self.resume_deletions(who, found))
                }
                Action::DeleteVm { vm } => self.delete_vm(who, &vm).await,
                Action::RefillPool { pool } => self.refill(who, &pool),
                Action::Recheck { request } => self.recheck(who, &request.id),
                Action::PauseRequest { .. } | Action::ResumeRequest { .. } => {
                    let why = "jobs are not paused one by one; roost pause holds all of them";
                    return Err(Refused::NotNow { why: why.to_owned() });
                }
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

/// What persons have told it.
pub(super) fn steering(window: &Window) -> SteeringView {
    let held = window.spawning_held();
    SteeringView {
        spawning: match held.as_ref().map(|held| held.how) {
            None | Some(Hold::Frozen) => Spawning::Open,
            Some(Hold::Paused) => Spawning::Paused,
            Some(Hold::Draining) => Spawning::Draining,
        },
        held: held.map(|held| held.to_string()),
        frozen: window.deleting_held().map(|held| held.to_string()),
    }
}
