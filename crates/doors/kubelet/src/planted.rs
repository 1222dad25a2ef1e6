//! Mistakes that tests plant, to see that the campaign would find them. Without the feature `planted-bugs`, which only this crate's own tests
//! switch on, there are none and asking costs nothing.

/// One for each thing that must never happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// A VM is removed although its snapshot could not be pushed.
    RemovesUnsaved,
    /// A tag is taken back although nobody knows whether the VM is still there.
    TakesTagsBackBlindly,
    /// A hibernate tag is not looked for, so that a woken pod boots anew.
    ForgetsTags,
    /// A VM is removed although its pod is not to hibernate any more.
    RemovesTheAwake,
    /// A VM of the pod's name is never adopted.
    NeverAdopts,
    /// A pod goes and its VM stays.
    LeavesVms,
    /// What failed is not tried again.
    GivesUp,
}

impl Bug {
    pub const ALL: [Self; 7] = [
        Self::RemovesUnsaved,
        Self::TakesTagsBackBlindly,
        Self::ForgetsTags,
        Self::RemovesTheAwake,
        Self::NeverAdopts,
        Self::LeavesVms,
        Self::GivesUp,
    ];
}

#[cfg(feature = "planted-bugs")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// Plants a bug in all kubelets of this thread, or removes it.
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
