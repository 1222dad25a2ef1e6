use crate::cause::Cause;
use crate::next::{Next, Remedial};
use crate::object::Object;
use crate::pass::Pass;

/// Brings the world to what an object asks for, one step at a time.
///
/// It is given a key and never what changed, so a restart, a resync and an event take the same path. Doing it twice changes nothing. It
/// may be dropped at any await point: at its timeout, when the lease is lost, at the end of a drain.
pub trait Reconciler: Send + Sync + 'static {
    type Object: Object;
    type Error: Remedial;

    /// One pass. The object is in [`Pass::object`] as the watch last showed it, and absent once it is gone.
    fn reconcile(
        &self,
        pass: &Pass<Self::Object>,
    ) -> impl Future<Output = Result<Next, Self::Error>> + Send;

    /// How urgent a key is. Asked for every event and again for every requeue.
    fn priority(&self, object: Option<&Self::Object>, cause: Cause) -> i32 {
        let _ = object;
        cause.usual_priority()
    }
}
