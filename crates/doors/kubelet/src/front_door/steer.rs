//! What persons can have the kubelet do.

use kube::ResourceExt;
use roost_controller::Key;
use roost_door::{Acting, Action, Order, Refused, Steer};
use roost_views::Spawning;

use super::KubeletDoor;

impl Steer for KubeletDoor {
    fn act(&self, order: Order) -> Acting<'_> {
        Box::pin(async move {
            let said = match &order.action {
                Action::PauseSpawning => self.hold(Spawning::Paused, &order).await,
                Action::Drain => self.drain(&order).await,
                Action::ResumeSpawning => self.resume().await,
                Action::Recheck { request } => self.recheck(&request.id),
                Action::DeleteVm { vm } => {
                    Err(not_now(&format!("delete the pod of VM {vm}, or annotate it to hibernate")))
                }
                Action::FreezeDeletions | Action::ResumeDeletions { .. } => Err(not_now(
                    "a VM is deleted only with its pod; VMs that no pod wants are the business of VK_ORPHAN_POLICY",
                )),
                Action::PauseRequest { .. } | Action::ResumeRequest { .. } => Err(not_now(
                    "pods are not paused one by one; roost pause holds new VMs back, and the annotation vm.cocoonstack.io/hibernate puts one to sleep",
                )),
                Action::RefillPool { .. } => Err(not_now("there are no warm pools on this node")),
            };
            let came = match &said {
                Ok(words) => words.clone(),
                Err(why) => format!("not done: {why}"),
            };
            self.work.host.journal.steered(&format!("{came}; by {order}"));
            said
        })
    }
}

fn not_now(why: &str) -> Refused {
    Refused::NotNow { why: why.to_owned() }
}

/// The API server did not take it.
fn untold(error: &kube::Error) -> Refused {
    Refused::NotNow { why: format!("the API server: {}", roost_supervise::Chain(error)) }
}

impl KubeletDoor {
    async fn hold(&self, spawning: Spawning, order: &Order) -> Result<String, Refused> {
        let words = format!("since {:.0} by {order}", self.work.host.clock.now());
        let held = self.work.steering.hold(spawning, &words).await;
        held.map_err(|error| untold(&error))?;
        Ok("the node is cordoned and makes no new VMs; what is under way goes on".to_owned())
    }

    /// Every VM is saved, pushed and removed; the pods stay and wake when the drain is over.
    async fn drain(&self, order: &Order) -> Result<String, Refused> {
        self.hold(Spawning::Draining, order).await?;
        let (mut asked, mut failed) = (0, Vec::new());
        for pod in self.pods.objects() {
            match self.work.steering.hibernate(&pod).await {
                Ok(was_asked) => asked += usize::from(was_asked),
                Err(error) => failed.push(format!("{}: {error}", pod.name_any())),
            }
        }
        if failed.is_empty() {
            return Ok(format!("the node is cordoned, and {asked} VMs are put to sleep"));
        }
        let failed = failed.join("; ");
        Err(not_now(&format!("{asked} VMs are put to sleep, drain again for the others: {failed}")))
    }

    async fn resume(&self) -> Result<String, Refused> {
        self.work.steering.release().await.map_err(|error| untold(&error))?;
        let mut woken = 0;
        for pod in self.pods.objects() {
            let was_drained = self.work.steering.wake(&pod).await;
            woken += usize::from(was_drained.map_err(|error| untold(&error))?);
            // One that was held back has not changed, so nothing else has it looked at.
            self.work.trigger.signal(Key::of(pod.as_ref()));
        }
        Ok(format!("new VMs are made again, and {woken} VMs wake that a drain put to sleep"))
    }

    /// Whatever failed before is tried now.
    fn recheck(&self, id: &str) -> Result<String, Refused> {
        let unknown = || Refused::Unknown { what: format!("pod {id}") };
        let (namespace, name) = id.split_once('/').ok_or_else(unknown)?;
        let key = Key::new(namespace, name);
        self.pods.get(&key).ok_or_else(unknown)?;
        let now = self.work.host.clock.now();
        self.work.table.change(&key, |seen| {
            if let Some(failure) = &mut seen.failure {
                failure.retry = now;
            }
        });
        self.work.trigger.signal(key);
        Ok(format!("pod {id} is looked at now"))
    }
}
