//! Wake-ups between the loops.

use tokio::sync::Notify;

/// Each wakes one loop, which then looks at everything anew; none says what changed.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// A job may be startable now.
    pub(crate) plan: Notify,
    /// A spare may be missing now.
    pub(crate) spares: Notify,
    /// A VM may have to go now.
    pub(crate) cleanup: Notify,
    /// A worker may have registered by now.
    pub(crate) workers: Notify,
    /// A V1 model may have to be registered now.
    pub(crate) register: Notify,
}
