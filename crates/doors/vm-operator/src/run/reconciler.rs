use std::sync::Arc;

use roost_controller::{Cause, Next, Pass, Reconciler};

use crate::api::VirtualMachine;
use crate::flow::{self, Context, PassError};
use crate::priority::{PrioritySettings, priority};

/// `VirtualMachine` objects, by their flowcharts.
pub(crate) struct VirtualMachines {
    pub(crate) cx: Arc<Context>,
    pub(crate) priority: PrioritySettings,
}

impl Reconciler for VirtualMachines {
    type Object = VirtualMachine;
    type Error = PassError;

    async fn reconcile(&self, pass: &Pass<VirtualMachine>) -> Result<Next, PassError> {
        let (cx, key) = (&self.cx, pass.key());
        let ended = Box::pin(cx.passes.follow(key, || cx.now(), flow::reconcile(cx, pass))).await;
        cx.passes.observe(key, pass.store().get(key).as_deref(), cx.now());
        ended
    }

    fn priority(&self, object: Option<&VirtualMachine>, cause: Cause) -> i32 {
        priority(object, cause, self.cx.now(), &self.priority)
    }
}
