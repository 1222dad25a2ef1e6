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
use crate::run::desk::{Desk, lock};
use crate::run::nest::Nest;
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
pub(super) fn look(nest: &Arc<Nest>) -> (Work, Duration) {
    let interval = nest.config.provisioning.interval;
    let now = nest.now();
    let is_held = nest.steering.spawning().is_some();
    if is_held || nest.mirror.freshness().check(now, BELIEVED_FOR).is_err() {
        return (Work::default(), SOON.min(interval));
    }
    let models = nest.models.v1();
    let models = models.as_deref().map(Vec::as_slice);
    let pools = &nest.config.provisioning.pools;
    let mut guard = nest.desk();
    let desk = &mut *guard;
    let snapshot = nest.mirror.snapshot();
    let (mut sources, mut holds) = (BTreeMap::new(), BTreeMap::new());
    for pool in pools {
        match Source::find(&pool.kind, &nest.config, &snapshot, models) {
            Ok(source) => drop(sources.insert(pool.kind.clone(), source)),
            Err(hold) => drop(holds.insert(pool.kind.clone(), hold)),
        }
    }
    desk.backoffs.retain(|model| pools.iter().any(|pool| pool.kind.model == *model));
    let spares = spares(&snapshot, nest.hatchery(), desk, models, now);
    let addresses = desk.ledger.lock().taken(HATCHERY, now).addresses.free;
    let planned = plan(SpareView {
        pools,
        spares: &spares,
        in_flight: &in_flight(&snapshot, desk),
        holds: &holds,
        backoffs: &desk.backoffs,
        pool_size: nest.config.provisioning.pool_size,
        free_addresses: (!nest.config.addresses.is_dhcp()).then_some(addresses),
        now,
    });
    let remove = planned
        .remove
        .into_iter()
        .filter_map(|(vm, removal)| Some((reserve_removal(desk, vm, now)?, removal)));
    let remove = remove.collect();
    let (granted, refused) = reserve_spares(nest, desk, &snapshot, planned.make, &sources, now);
    drop(guard);
    let mut standing = planned.standing;
    for pool in &mut standing {
        if let Some(refusal) = refused.get(&pool.kind) {
            pool.waiting = Some(Waiting::NoRoom { why: refusal.to_string() });
            note_refusal(nest, &pool.kind, refusal);
        } else {
            note_waiting(nest, pool);
        }
    }
    let again = next_look(&standing, interval, now);
    *lock(&nest.standing) = standing;
    // The guards lock the desk when they are dropped, so they are made outside of it.
    let make = granted.into_iter().map(|(name, kind, source, reservation)| NewSpare {
        making: Making::begun(nest, &name),
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
    nest: &Nest,
    desk: &mut Desk,
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
            request: HATCHERY.request(format!("spare {}", nest.uuid())),
            name: None,
            amounts: source.amounts(),
            pool: Some(nest.pool.clone()),
            machine: Machine::Fresh { address: address_need(&nest.config) },
        };
        let reservation = match desk.ledger.lock().reserve(ask, now) {
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
        match nest.name(prefix, desk, snapshot) {
            Ok(name) => {
                let name: Arc<str> = name.into();
                desk.making.insert(Arc::clone(&name), kind.clone());
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
fn reserve_removal(desk: &mut Desk, vm: VmId, now: Timestamp) -> Option<Reservation> {
    let ask = Ask {
        request: HATCHERY.request(format!("removal of {vm}")),
        name: None,
        amounts: Amounts::default(),
        pool: None,
        machine: Machine::Spare { candidates: vec![vm] },
    };
    desk.ledger.lock().reserve(ask, now).ok()
}

fn next_look(standing: &[PoolStanding], interval: Duration, now: Timestamp) -> Duration {
    let waits = standing.iter().filter_map(|pool| match pool.waiting.as_ref()? {
        Waiting::Backoff { until, .. } => Some(elapsed(now, *until)),
        Waiting::NoAddress | Waiting::NoRoom { .. } | Waiting::Held(_) => Some(SOON),
        // The end of a making brings room, and rings.
        Waiting::PoolSize { .. } => None,
    });
    // A time that is just reached is not yet over by the clock's own grain.
    waits.chain([interval]).min().unwrap_or(interval).max(Duration::from_millis(10))
}

fn note_waiting(nest: &Nest, pool: &PoolStanding) {
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
    note(nest, &pool.kind, draft.next_look(NextLook::OnChange), label);
}

fn note_refusal(nest: &Nest, kind: &SpareKind, refusal: &Refusal) {
    let next_free = refusal.forecast.as_ref().and_then(|forecast| forecast.next_free);
    let draft = Draft::new(subject(kind), Decided::Deferred, refusal.to_string())
        .gates(refusal.gates.clone())
        .next_look(next_free.map_or(NextLook::OnChange, NextLook::At));
    note(nest, kind, draft, refusal.bound_by.as_str());
}

/// Records what is said of a pool, unless that is what was said last.
fn note(nest: &Nest, kind: &SpareKind, draft: Draft, label: &'static str) {
    let before = nest.journal.latest(&subject(kind));
    if before.is_none_or(|before| !draft.says_the_same(&before)) {
        nest.decide(draft, label);
    }
}

pub(super) fn subject(kind: &SpareKind) -> Subject {
    HATCHERY.about_pool(kind.to_string())
}
