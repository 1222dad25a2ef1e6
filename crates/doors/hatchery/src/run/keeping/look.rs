//! One look: what is there, what is missing, and everything that is to be done about it reserved, under one lock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use roost_cds::Protocol;
use roost_fleet::{
    Amounts, Ask, Decided, Draft, Gate, Machine, NextLook, Refusal, Reservation, Snapshot, Subject,
    VmId,
};

use super::SOON;
use super::make::{Making, NewSpare};
use super::source::Source;
use crate::config::{SpareKind, SpareModel};
use crate::door::HATCHERY;
use crate::names::NamePrefix;
use crate::plan::address_need;
use crate::run::keeping::PoolKeeper;
use crate::run::scheduler::{SchedulerState, lock};
use crate::run::spare_view::{in_flight, spares};
use crate::spares::{Hold, PoolStanding, Removal, SpareView, Waiting, plan};
use crate::time::elapsed;

/// An inventory that is older is not planned on: three times as long as a quiet server is silent.
const BELIEVED_FOR: Duration = Duration::from_mins(3);

/// What a look found to do. All that it takes is reserved.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) make: Vec<NewSpare>,
    pub(super) finish: Vec<VmId>,
    /// The reservations have the spares.
    pub(super) remove: Vec<(Reservation, Removal)>,
}

/// Returns what to do, and when to look again at the latest.
pub(super) fn look(keeper: &Arc<PoolKeeper>) -> (Work, Duration) {
    let interval = keeper.about.config.provisioning.interval;
    let now = keeper.about.now();
    let is_held = keeper.steering.spawning().is_some() || keeper.processes.look().is_some();
    if is_held || keeper.mirror.freshness().check(now, BELIEVED_FOR).is_err() {
        return (Work::default(), SOON.min(interval));
    }
    let models = keeper.models.v1();
    let models = models.as_deref().map(Vec::as_slice);
    let pools = &keeper.about.config.provisioning.pools;
    let mut guard = keeper.scheduler.lock();
    let scheduler = &mut *guard;
    let snapshot = keeper.mirror.snapshot();
    let (mut sources, mut holds) = (BTreeMap::new(), BTreeMap::new());
    for pool in pools {
        match Source::find(&pool.kind, &keeper.about.config, &snapshot, models) {
            Ok(source) => drop(sources.insert(pool.kind.clone(), source)),
            Err(hold) => drop(holds.insert(pool.kind.clone(), hold)),
        }
    }
    scheduler.backoffs.retain(|model| pools.iter().any(|pool| pool.kind.model == *model));
    let spares = spares(&snapshot, keeper.about.hatchery(), scheduler, models, now);
    let addresses = scheduler.ledger.lock().taken(HATCHERY, now).addresses.free;
    let planned = plan(SpareView {
        pools,
        spares: &spares,
        in_flight: &in_flight(&snapshot, scheduler),
        holds: &holds,
        backoffs: &scheduler.backoffs,
        pool_size: keeper.about.config.provisioning.pool_size,
        free_addresses: (!keeper.about.config.addresses.is_dhcp()).then_some(addresses),
        now,
    });
    let remove = planned
        .remove
        .into_iter()
        .filter_map(|(vm, removal)| Some((reserve_removal(scheduler, vm, now)?, removal)));
    let remove = remove.collect();
    let (granted, refused) =
        reserve_spares(keeper, scheduler, &snapshot, planned.make, &sources, now);
    drop(guard);
    let mut standing = planned.standing;
    for pool in &mut standing {
        if let Some(refusal) = refused.get(&pool.kind) {
            pool.waiting = Some(Waiting::NoRoom { why: refusal.to_string() });
            note_refusal(keeper, &pool.kind, refusal);
        } else {
            note_waiting(keeper, pool);
        }
    }
    let again = next_look(&standing, interval, now);
    *lock(&keeper.standing) = standing;
    // The guards lock the scheduler when they are dropped, so they are made outside of it.
    let make = granted.into_iter().map(|(name, kind, source, reservation)| NewSpare {
        making: Making::begun(&keeper.scheduler, &name),
        name,
        kind,
        source,
        reservation,
    });
    (Work { make: make.collect(), finish: planned.finish, remove }, again)
}

type Granted = (Arc<str>, SpareKind, Source, Reservation);

/// Reserves for each spare in the order of the plan. A kind that is refused once is refused for this look; others may still fit.
fn reserve_spares(
    keeper: &PoolKeeper,
    scheduler: &mut SchedulerState,
    snapshot: &Snapshot,
    make: Vec<SpareKind>,
    sources: &BTreeMap<SpareKind, Source>,
    now: Timestamp,
) -> (Vec<Granted>, BTreeMap<SpareKind, Refusal>) {
    let (mut granted, mut refused) = (Vec::new(), BTreeMap::new());
    for kind in make {
        let Some(source) = sources.get(&kind).filter(|_| !refused.contains_key(&kind)) else {
            continue;
        };
        let ask = Ask {
            request: HATCHERY.request(format!("spare {}", keeper.scheduler.uuid())),
            name: None,
            amounts: source.amounts(),
            pool: Some(keeper.pool.clone()),
            machine: Machine::Fresh { address: address_need(&keeper.about.config) },
        };
        let reservation = match scheduler.ledger.lock().reserve(ask, now) {
            Ok(reservation) => reservation,
            Err(refusal) => {
                refused.insert(kind, refusal);
                continue;
            }
        };
        let address = reservation.address().map(|grant| grant.address);
        let protocol = match &kind.model {
            SpareModel::V1(_) => Protocol::V1,
            SpareModel::V2(_) => Protocol::V2,
        };
        let prefix = NamePrefix::Spare { protocol, address };
        match keeper.scheduler.name(prefix, scheduler, snapshot) {
            Ok(name) => {
                let name: Arc<str> = name.into();
                scheduler.making.insert(Arc::clone(&name), kind.clone());
                granted.push((name, kind, source.clone(), reservation));
            }
            Err(error) => {
                tracing::error!("{error}");
                break;
            }
        }
    }
    (granted, refused)
}

/// Takes a spare out of the reach of jobs; `None` if one has it.
fn reserve_removal(
    scheduler: &mut SchedulerState,
    vm: VmId,
    now: Timestamp,
) -> Option<Reservation> {
    let ask = Ask {
        request: HATCHERY.request(format!("removal of {vm}")),
        name: None,
        amounts: Amounts::default(),
        pool: None,
        machine: Machine::Spare { candidates: vec![vm] },
    };
    scheduler.ledger.lock().reserve(ask, now).ok()
}

fn next_look(standing: &[PoolStanding], interval: Duration, now: Timestamp) -> Duration {
    let waits = standing.iter().filter_map(|pool| match pool.waiting.as_ref()? {
        Waiting::Backoff { until, .. } => Some(elapsed(now, *until)),
        Waiting::NoAddress | Waiting::NoRoom { .. } | Waiting::Held(_) => Some(SOON),
        // The end of a clone frees room and wakes this loop.
        Waiting::PoolSize { .. } => None,
    });
    // A time that is just reached is not yet over by the clock's own grain.
    waits.chain([interval]).min().unwrap_or(interval).max(Duration::from_millis(10))
}

fn note_waiting(keeper: &PoolKeeper, pool: &PoolStanding) {
    let label = match &pool.waiting {
        Some(Waiting::Held(Hold::NeedsRegistration)) => "needs-registration",
        Some(Waiting::Held(Hold::NoModel)) => "no-model",
        Some(Waiting::Held(Hold::NoTemplate)) => "no-template",
        Some(Waiting::NoAddress) => "address",
        // A failure was recorded with the time of the next try; those that wait for each other soon have their turn.
        Some(Waiting::Backoff { .. } | Waiting::PoolSize { .. } | Waiting::NoRoom { .. })
        | None => return,
    };
    let why = pool.waiting.as_ref().map(ToString::to_string).unwrap_or_default();
    let gate = Gate::plain(label, false).noting(why.clone());
    let draft = Draft::new(subject(&pool.kind), Decided::Deferred, why).gates(vec![gate]);
    note(keeper, &pool.kind, draft.next_look(NextLook::OnChange), label);
}

fn note_refusal(keeper: &PoolKeeper, kind: &SpareKind, refusal: &Refusal) {
    let next_free = refusal.forecast.as_ref().and_then(|forecast| forecast.next_free);
    let draft = Draft::new(subject(kind), Decided::Deferred, refusal.to_string())
        .gates(refusal.gates.clone())
        .next_look(next_free.map_or(NextLook::OnChange, NextLook::At));
    note(keeper, kind, draft, refusal.bound_by.as_str());
}

/// Records what is said of a pool, unless that is what was said last.
fn note(keeper: &PoolKeeper, kind: &SpareKind, draft: Draft, label: &'static str) {
    let before = keeper.recorder.journal.latest(&subject(kind));
    if before.is_none_or(|before| !draft.says_the_same(&before)) {
        keeper.recorder.decide(draft, label);
    }
}

pub(super) fn subject(kind: &SpareKind) -> Subject {
    HATCHERY.about_pool(kind.to_string())
}
