//! `[hatchery.vsphere.fleet]`: the rules of the core that all doors share, deletion guard, journal, ledger and deadlines of phases.

use std::time::Duration;

use roost_fleet::{
    BasisRules, FleetRules, GuardRules, JournalSize, LedgerTimes, PhaseDeadlines, Share,
};
use roost_settings::{Key, Reader};

use super::keys::fleet as keys;
use crate::door::phase;

/// A journal that is larger is a database: a decision is about a kilobyte.
const MOST_DECISIONS: u64 = 1_000_000;

/// What another key bounds.
const BY_OTHER_KEYS: [(&str, &str); 2] =
    [("registering", "workerRegistrationTTL"), ("working", "workerTTL")];

pub(super) fn rules(reader: &Reader<'_>) -> Option<FleetRules> {
    let usual = FleetRules::default();
    let guard = guard(reader, &usual.guard);
    let decisions = count(reader, &keys::JOURNAL_DECISIONS, usual.journal.decisions);
    let subjects = count(reader, &keys::JOURNAL_SUBJECTS, usual.journal.subjects);
    let safety = seconds(reader, &keys::PROMISE_SECONDS, usual.ledger.safety);
    let quarantine = seconds(reader, &keys::ADDRESS_REST_SECONDS, usual.ledger.quarantine);
    let deadlines = deadlines(reader);
    Some(FleetRules {
        guard: guard?,
        journal: JournalSize { decisions: decisions?, subjects: subjects? },
        ledger: LedgerTimes { safety: safety?, quarantine: quarantine? },
        deadlines,
    })
}

fn guard(reader: &Reader<'_>, usual: &GuardRules) -> Option<GuardRules> {
    let max_age = seconds(reader, &keys::VIEW_SECONDS, usual.max_age);
    let marked = per_minute(reader, &keys::MARKED_PER_MINUTE, usual.marked);
    let finished = per_minute(reader, &keys::FINISHED_PER_MINUTE, usual.finished);
    let expired = inferred(
        reader,
        [&keys::EXPIRED_PER_MINUTE, &keys::EXPIRED_PERCENT, &keys::EXPIRED_SECONDS],
        usual.expired,
    );
    let absent = inferred(
        reader,
        [&keys::ABSENT_PER_MINUTE, &keys::ABSENT_PERCENT, &keys::ABSENT_SECONDS],
        usual.absent,
    );
    Some(GuardRules {
        max_age: max_age?,
        marked: marked?,
        finished: finished?,
        expired: expired?,
        absent: absent?,
        ..usual.clone()
    })
}

fn per_minute(reader: &Reader<'_>, key: &Key, usual: BasisRules) -> Option<BasisRules> {
    let per_minute = match reader.amount(key, u32::MAX.into())? {
        0 => usual.per_minute,
        some => Some(u32::try_from(some).ok()?),
    };
    Some(BasisRules { per_minute, ..usual })
}

/// What rests on clocks and lists: budget, share of all VMs, and time between first sight and deletion.
fn inferred(
    reader: &Reader<'_>,
    [budget, percent, grace]: [&Key; 3],
    usual: BasisRules,
) -> Option<BasisRules> {
    let rules = per_minute(reader, budget, usual);
    let share = reader.amount(percent, 100);
    let grace = seconds(reader, grace, usual.grace);
    let (rules, grace) = (rules?, grace?);
    let share = match (share?, usual.share) {
        (0, usual) => usual,
        (percent, usual) => Some(Share {
            percent: u32::try_from(percent).ok()?,
            at_least: usual.map_or(1, |share| share.at_least),
        }),
    };
    Some(BasisRules { share, grace, ..rules })
}

fn count(reader: &Reader<'_>, key: &Key, usual: usize) -> Option<usize> {
    match reader.amount(key, MOST_DECISIONS)? {
        0 => Some(usual),
        some => usize::try_from(some).ok(),
    }
}

fn seconds(reader: &Reader<'_>, key: &Key, usual: Duration) -> Option<Duration> {
    match reader.amount(key, u32::MAX.into())? {
        0 => Some(usual),
        some => Some(Duration::from_secs(some)),
    }
}

fn deadlines(reader: &Reader<'_>) -> PhaseDeadlines {
    let mut deadlines = PhaseDeadlines::default();
    for listed in reader.tables(&keys::PHASES, "fleet.phases[].") {
        let reader = &listed.reader;
        let seconds = reader.amount(&keys::PHASE_SECONDS, u32::MAX.into());
        let Some(name) = reader.mandatory(&keys::PHASE_NAME) else { continue };
        if let Some((_, other)) = BY_OTHER_KEYS.iter().find(|(phase, _)| *phase == name) {
            reader.problem(&keys::PHASE_NAME, format!("{name:?} is bounded by {other}"));
            continue;
        }
        let settable = || {
            let all = phase::ALL.into_iter();
            all.filter(|phase| BY_OTHER_KEYS.iter().all(|(name, _)| *name != phase.as_str()))
        };
        match (settable().find(|phase| phase.as_str() == name), seconds) {
            (Some(_), Some(0)) => {
                reader.problem(&keys::PHASE_SECONDS, "must be 1 at least");
            }
            (Some(phase), Some(secs)) => {
                deadlines = deadlines.with(phase, Duration::from_secs(secs));
            }
            (Some(_), None) => {}
            (None, _) => {
                let all: Vec<&str> = settable().map(roost_fleet::Phase::as_str).collect();
                let message = format!("must be one of {}; is {name:?}", all.join(", "));
                reader.problem(&keys::PHASE_NAME, message);
            }
        }
    }
    deadlines
}
