//! The campaign can fail: for each mistake that is planted, some seed breaks what that mistake must break.

use roost_hatchery::planted::Bug;

use crate::lab::Invariant;
use crate::report::result;
use crate::seeds;
use crate::squad::work;

/// So many seeds have the chance to find each.
const SEEDS: u64 = 120;

/// What each mistake must break.
fn broken_by(bug: Bug) -> Invariant {
    match bug {
        Bug::LeavesFailedWorkers => Invariant::OneWorkerPerJob,
        Bug::LaunchesAgain => Invariant::OneLaunchPerVm,
        Bug::ForgetsAddresses => Invariant::OneVmPerAddress,
        Bug::ForgetsLimits => Invariant::WithinLimits,
        Bug::ForgetsOwners => Invariant::OthersUntouched,
        Bug::DeletesUnguarded => Invariant::WorkUndisturbed,
        // A clean-up that hangs leaves everything as well; it is not one of those that are looked for here.
        Bug::ForgetsMarked | Bug::CleanupHangs | Bug::CleanupPanics => Invariant::NothingLeft,
        Bug::DecidesSilently => Invariant::EveryJobExplained,
        Bug::KeepsPromises => Invariant::EveryJobServed,
    }
}

pub(crate) fn all() -> u64 {
    println!("\nrunning {} planted bugs", Bug::ALL.len());
    let mut missed = 0;
    for bug in Bug::ALL {
        let wanted = broken_by(bug);
        let (mut found, mut tried) = (None, 0);
        work(&seeds::from(1, SEEDS), Some(bug), |seed, outcome| {
            tried += 1;
            if outcome.broke(wanted) {
                found.get_or_insert(seed);
            }
            found.is_some()
        });
        if let Some(seed) = found {
            println!("{bug:?} breaks {wanted:?} in seed {seed} ({tried} tried)");
        } else {
            println!("{bug:?} was not found in {tried} seeds: {wanted:?} held");
            missed += 1;
        }
    }
    result(Bug::ALL.len() as u64 - missed, missed);
    missed
}
