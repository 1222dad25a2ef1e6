use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use roost_fleet::VmId;

use super::{Backoffs, Hold, Spare, SpareState};
use crate::config::{SpareKind, SparePool};

/// All that the plan depends on.
#[derive(Debug, Clone, Copy)]
pub struct SpareView<'a> {
    pub pools: &'a [SparePool],
    /// Ours, all of them.
    pub spares: &'a [Spare],
    /// Clones that were asked for and that the inventory does not show yet.
    pub in_flight: &'a [SpareKind],
    pub holds: &'a BTreeMap<SpareKind, Hold>,
    pub backoffs: &'a Backoffs,
    /// Being made at the same time.
    pub pool_size: u32,
    /// `None` when addresses come from DHCP.
    pub free_addresses: Option<u64>,
    pub now: Timestamp,
}

/// What to do about spares now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SparePlan {
    /// To be cloned, in this order.
    pub make: Vec<SpareKind>,
    /// Half-made ones of an earlier process, to be brought to their end (D30). They are there already, so no limit holds them back.
    pub finish: Vec<VmId>,
    pub remove: Vec<(VmId, Removal)>,
    /// How each pool stands, in the order of the configuration.
    pub standing: Vec<PoolStanding>,
}

/// How a pool stands before the plan is carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolStanding {
    pub kind: SpareKind,
    pub wanted: u32,
    pub ready: u32,
    /// Being made, unfinished or in flight.
    pub coming: u32,
    /// What keeps the rest from being made now.
    pub waiting: Option<Waiting>,
}

impl PoolStanding {
    pub fn missing(&self) -> u32 {
        self.wanted.saturating_sub(self.ready).saturating_sub(self.coming)
    }
}

/// Why missing spares are not made now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waiting {
    Held(Hold),
    /// Making them failed so often in a row; tried again then.
    Backoff {
        until: Timestamp,
        failures: u32,
    },
    /// So many are being made, which is the limit.
    PoolSize {
        limit: u32,
    },
    NoAddress,
    /// A limit leaves no room for one more.
    NoRoom {
        why: String,
    },
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held(hold) => hold.fmt(f),
            Self::Backoff { until, failures } => {
                match failures {
                    0 => f.write_str("was interrupted")?,
                    1 => f.write_str("failed once")?,
                    _ => write!(f, "failed {failures} times in a row")?,
                }
                write!(f, ", tried again at {until:.0}")
            }
            Self::PoolSize { limit } => {
                write!(f, "{limit} are being made, which is workerProvisioningPoolSize")
            }
            Self::NoAddress => f.write_str("there is no free address"),
            Self::NoRoom { why } => f.write_str(why),
        }
    }
}

/// Why a spare goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// No pool asks for its kind.
    NotConfigured,
    /// There are more than its pool asks for.
    Excess,
    /// Its V1 model was changed.
    Outdated,
    /// Another VM has its address, as CDS's own hatchery leaves them.
    SharedAddress,
}

impl Removal {
    /// From a closed set, and what the VM's mark says.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotConfigured => "no pool asks for this spare",
            Self::Excess => "more spares than its pool asks for",
            Self::Outdated => "its worker model was changed",
            Self::SharedAddress => "another VM has its address",
        }
    }
}

/// Makes the plan (D28 to D30).
pub fn plan(view: SpareView<'_>) -> SparePlan {
    let mut plan = SparePlan::default();
    let mut tally = tally(&view, &mut plan);
    let busy = view.in_flight.len()
        + view.spares.iter().filter(|spare| spare.state == SpareState::Making).count();
    let mut room = (view.pool_size as usize).saturating_sub(busy);
    let mut addresses = view.free_addresses.unwrap_or(u64::MAX);
    // One at a time from the pool that is the furthest from full, so that a large pool does not starve a small one; equal ones take turns.
    while let Some(next) = emptiest(&tally, &view) {
        let stop = if addresses == 0 {
            Some(Waiting::NoAddress)
        } else if room == 0 {
            Some(Waiting::PoolSize { limit: view.pool_size })
        } else {
            None
        };
        if let Some(waiting) = stop {
            tally.iter_mut().filter(|pool| pool.may_make(&view) && pool.lacks() > 0).for_each(
                |pool| {
                    pool.waiting = Some(waiting.clone());
                },
            );
            break;
        }
        plan.make.push(tally[next].pool.kind.clone());
        tally[next].planned += 1;
        (room, addresses) = (room - 1, addresses - 1);
    }
    plan.standing = tally.into_iter().map(|pool| pool.standing(&view)).collect();
    plan
}

struct Tally<'a> {
    pool: &'a SparePool,
    ready: u32,
    coming: u32,
    planned: u32,
    waiting: Option<Waiting>,
}

impl Tally<'_> {
    fn have(&self) -> u32 {
        self.ready + self.coming + self.planned
    }

    fn lacks(&self) -> u32 {
        self.pool.number.saturating_sub(self.have())
    }

    fn blocked(&self, view: &SpareView<'_>) -> Option<Waiting> {
        let kind = &self.pool.kind;
        if let Some(hold) = view.holds.get(kind) {
            return Some(Waiting::Held(hold.clone()));
        }
        let (until, failures) = view.backoffs.blocked(&kind.model, view.now)?;
        Some(Waiting::Backoff { until, failures })
    }

    fn may_make(&self, view: &SpareView<'_>) -> bool {
        self.blocked(view).is_none()
    }

    fn standing(self, view: &SpareView<'_>) -> PoolStanding {
        let waiting = if self.lacks() > 0 { self.blocked(view).or(self.waiting) } else { None };
        PoolStanding {
            kind: self.pool.kind.clone(),
            wanted: self.pool.number,
            ready: self.ready,
            coming: self.coming,
            waiting,
        }
    }
}

/// Counts each pool, and puts what is to be removed or finished into the plan.
fn tally<'a>(view: &SpareView<'a>, plan: &mut SparePlan) -> Vec<Tally<'a>> {
    let mut by_kind: BTreeMap<&SpareKind, Vec<&Spare>> = BTreeMap::new();
    for spare in view.spares {
        by_kind.entry(&spare.kind).or_default().push(spare);
    }
    let tally = view.pools.iter().map(|pool| {
        let spares = by_kind.remove(&pool.kind).unwrap_or_default();
        let in_flight = view.in_flight.iter().filter(|kind| **kind == pool.kind).count();
        let (ready, coming) = settle(pool, spares, in_flight, plan);
        Tally { pool, ready, coming, planned: 0, waiting: None }
    });
    let tally = tally.collect();
    let rest = by_kind.into_values().flatten();
    let removable =
        rest.filter(|spare| matches!(spare.state, SpareState::Ready | SpareState::Unfinished));
    plan.remove.extend(removable.map(|spare| (spare.vm.clone(), Removal::NotConfigured)));
    tally
}

/// Returns how many of a pool's spares are ready and how many will be.
fn settle(
    pool: &SparePool,
    spares: Vec<&Spare>,
    in_flight: usize,
    plan: &mut SparePlan,
) -> (u32, u32) {
    let (mut ready, mut unfinished, mut making) = (Vec::new(), Vec::new(), in_flight);
    for spare in spares {
        match spare.state {
            // Leaving the pool, or out of it: the refill does not wait.
            SpareState::Claimed | SpareState::Dying => {}
            SpareState::Making => making += 1,
            SpareState::Ready | SpareState::Unfinished if spare.shares_address => {
                plan.remove.push((spare.vm.clone(), Removal::SharedAddress));
            }
            SpareState::Ready | SpareState::Unfinished if spare.is_outdated => {
                plan.remove.push((spare.vm.clone(), Removal::Outdated));
            }
            SpareState::Ready => ready.push(spare),
            SpareState::Unfinished => unfinished.push(spare),
        }
    }
    // The half-made go first, then the oldest, which are the furthest from what their template is today.
    ready.sort_by_key(|spare| (spare.born, &spare.vm));
    let wanted = pool.number as usize;
    let mut excess = (ready.len() + unfinished.len() + making).saturating_sub(wanted);
    for list in [&mut unfinished, &mut ready] {
        let gone = excess.min(list.len());
        plan.remove.extend(list.drain(..gone).map(|spare| (spare.vm.clone(), Removal::Excess)));
        excess -= gone;
    }
    plan.finish.extend(unfinished.iter().map(|spare| spare.vm.clone()));
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    (count(ready.len()), count(unfinished.len() + making))
}

/// The pool that may make one and has the smallest part of what it wants.
fn emptiest(tally: &[Tally<'_>], view: &SpareView<'_>) -> Option<usize> {
    let fuller = |a: &Tally<'_>, b: &Tally<'_>| {
        let part =
            |have: &Tally<'_>, of: &Tally<'_>| u64::from(have.have()) * u64::from(of.pool.number);
        part(a, b).cmp(&part(b, a))
    };
    let open = tally.iter().enumerate().filter(|(_, pool)| pool.lacks() > 0 && pool.may_make(view));
    open.min_by(|(_, a), (_, b)| fuller(a, b)).map(|(index, _)| index)
}
