//! Mistakes that tests plant, to see that the campaign would find them. Without the feature `planted-bugs`, which only this crate's own tests
//! switch on, there are none and asking costs nothing.

/// One for each thing that must never happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// A worker that failed on its way is not marked and stays on, while its job is given back.
    LeavesFailedWorkers,
    /// The launch is sent twice.
    LaunchesAgain,
    /// The addresses of VMs that are there are not held against new ones.
    ForgetsAddresses,
    /// Everything that is asked of the ledger is granted.
    ForgetsLimits,
    /// Nobody asks whose a VM is.
    ForgetsOwners,
    /// What will have to be deleted one day is deleted at first sight.
    DeletesUnguarded,
    /// What is marked for deletion is not deleted.
    ForgetsMarked,
    /// Why a job waits is not recorded.
    DecidesSilently,
    /// What was promised to a worker that failed stays promised.
    KeepsPromises,
    /// The clean-up waits for what never comes. No invariant is broken by that, and no campaign looks for it: `/livez` must say so.
    CleanupHangs,
    /// The clean-up panics whenever it begins. As with the one that hangs, `/livez` must say so.
    CleanupPanics,
}

impl Bug {
    /// Those that a campaign must find.
    pub const ALL: [Self; 9] = [
        Self::LeavesFailedWorkers,
        Self::LaunchesAgain,
        Self::ForgetsAddresses,
        Self::ForgetsLimits,
        Self::ForgetsOwners,
        Self::DeletesUnguarded,
        Self::ForgetsMarked,
        Self::DecidesSilently,
        Self::KeepsPromises,
    ];
}

#[cfg(feature = "planted-bugs")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// Plants a bug in all hatcheries of this thread, or removes it.
#[cfg(feature = "planted-bugs")]
pub fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}

#[cfg(feature = "planted-bugs")]
pub(crate) fn is(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}

#[cfg(not(feature = "planted-bugs"))]
pub(crate) const fn is(_: Bug) -> bool {
    false
}
