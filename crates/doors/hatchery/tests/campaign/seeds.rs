//! Which seeds are run.

use std::hash::{BuildHasher as _, RandomState};

/// Those of every run of the suite, beside [`FOUND`].
const FIXED: u64 = 200;

/// Seeds that broke an invariant once. Where the hatchery was at fault, a scenario tells the story as well.
const FOUND: [u64; 9] = [
    // A second VM drew the name of one that was long gone, and its launch was taken for a second one of the same VM.
    338,
    // The stream had lost an answer when a clone of a dead process ended, and its address was given out again.
    2783,
    // Two workers were at work, CDS listed nobody, and their VMs were deleted after a restart.
    10327,
    // A model was registered late, because of a booking that nobody had an answer to, and its VM was off and within its grace period when the
    // run ended: it was taken for a leftover. The checker was at fault, which waits for that period now; no scenario is needed.
    11018, 20480, 22015, 22097,
    // Requests for a clone were late and repeated; the spare that one of them made was renamed, and another one made its twin.
    100_202, // The late claim of a dead process gave a job a second VM.
    105_247,
];

/// So many that nobody has run before are drawn for every run of the suite.
pub(crate) const FRESH: usize = 24;

pub(crate) fn from(first: u64, number: u64) -> Vec<u64> {
    (first..first.saturating_add(number)).collect()
}

/// The suite's, without the fresh ones.
pub(crate) fn fixed(first: u64) -> Vec<u64> {
    from(first, FIXED).into_iter().chain(FOUND).collect()
}

/// Drawn by chance, which no seed decides: that is their purpose. Nine digits are easily typed again.
pub(crate) fn fresh() -> Vec<u64> {
    let chance = RandomState::new();
    let draw = |number: usize| chance.hash_one(number) % 1_000_000_000;
    (0..FRESH).map(draw).collect()
}
