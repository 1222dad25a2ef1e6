//! Mistakes that tests plant, to see that the campaign would find them. Without the feature `planted-bugs`, which only this crate's own tests
//! switch on, there are none and asking costs nothing.

/// One for each thing that must never happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// A VM of the right name is taken for ours, whoever made it.
    ForgetsMarkers,
    /// A VsphereAgent goes and its VM stays.
    LeavesVms,
    /// A VsphereAgent that somebody deletes takes a worker in use with it.
    DestroysBound,
    /// An AgentMachine that has a spare gets a VM of its own too.
    AsksTwice,
}

impl Bug {
    pub const ALL: [Self; 4] =
        [Self::ForgetsMarkers, Self::LeavesVms, Self::DestroysBound, Self::AsksTwice];
}

#[cfg(feature = "planted-bugs")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// Plants a bug in all doors of this thread, or removes it.
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
