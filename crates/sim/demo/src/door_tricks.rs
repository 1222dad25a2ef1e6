//! What somebody who looks on can do to the world of one Kubernetes door. It runs in real time.

use std::time::Duration;

use roost_cocoon_sim::{Fault, SimRuntime};
use roost_door::{Demonstration, Refused, Trick};
use roost_kube_sim::KubeSim;
use roost_vcenter_sim::{Action, Outage, Rule, Vcenter};

use super::CONSOLE_TOKEN;

/// Long enough to see banners and the recovery, short enough to wait for.
const OUTAGE: Duration = Duration::from_secs(30);
/// Changes of VMs that fail or hang.
const SOME: u64 = 5;

/// The servers of one demo.
#[derive(Debug)]
pub(super) struct DoorTricks {
    pub(super) kube: KubeSim,
    /// Of doors that have one.
    pub(super) vcenter: Option<Vcenter>,
    /// Of the kubelet.
    pub(super) host: Option<SimRuntime>,
}

impl Demonstration for DoorTricks {
    fn pace(&self) -> String {
        "simulated servers, real time".to_owned()
    }

    fn token(&self) -> String {
        CONSOLE_TOKEN.to_owned()
    }

    fn tricks(&self) -> Vec<Trick> {
        let trick = |name, words: &str, about| Trick { name, words: words.to_owned(), about };
        let cut = trick("cut-kube", "Cut off the API server", "it is away for 30 seconds");
        let mut tricks = vec![cut];
        if self.vcenter.is_some() {
            tricks.extend([
                trick("restart-vcenter", "Restart vCenter", "refuses all calls for 30 seconds"),
                trick("hang-calls", "Hang calls", "the next 5 changes of VMs are never answered"),
            ]);
        }
        if self.host.is_some() {
            tricks.push(trick("break-runtime", "Break the runtime", "its next 5 lists fail"));
        }
        tricks.push(trick("mend", "Mend everything", "takes back what was broken"));
        tricks
    }

    fn play(&self, name: &str) -> Result<String, Refused> {
        Ok(match name {
            "cut-kube" => {
                self.kube.restart(OUTAGE);
                "the API server is away, and is back in 30 seconds".to_owned()
            }
            "restart-vcenter" if let Some(vcenter) = &self.vcenter => {
                vcenter.restart(Outage { lasts: OUTAGE, refuses: true });
                "the vCenter restarts, and is back in 30 seconds".to_owned()
            }
            "hang-calls" if let Some(vcenter) = &self.vcenter => {
                vcenter.faults().add(Rule::new("*VM_Task", Action::Hang).times(SOME));
                format!("the next {SOME} changes of VMs are not answered")
            }
            "break-runtime" if let Some(host) = &self.host => {
                let times = u32::try_from(SOME).unwrap_or(u32::MAX);
                host.add_fault(
                    Fault::of("vm list").fails("the runtime does not answer").times(times),
                );
                "the runtime does not answer for a while".to_owned()
            }
            "mend" => {
                if let Some(vcenter) = &self.vcenter {
                    vcenter.faults().clear();
                }
                self.kube.restart(Duration::ZERO);
                "what was broken is mended; a vCenter that restarts takes its time".to_owned()
            }
            other => return Err(Refused::Unknown { what: format!("trick {other}") }),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use roost_clock::{Clock, SimClock};
    use roost_cocoon_sim::Timings;
    use roost_kube_sim::Options;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn every_trick_that_is_offered_can_be_played_and_no_other() {
        let clock: Arc<dyn Clock> = Arc::new(SimClock::new());
        let kube = KubeSim::start(Options::default(), Arc::clone(&clock));
        let client = kube.client();
        let answers = async || client.apiserver_version().await.is_ok();
        let options = roost_vcenter_sim::Options::default();
        let vcenter = Some(Vcenter::start(options, Arc::clone(&clock)));
        let host = Some(SimRuntime::new(clock, Timings::default()));
        let all = DoorTricks { kube: kube.clone(), vcenter, host };
        for trick in all.tricks() {
            assert!(all.play(trick.name).is_ok(), "{trick:?}");
            if trick.name == "cut-kube" {
                assert!(!answers().await);
            }
        }
        assert!(answers().await, "mended");
        let none = DoorTricks { kube, vcenter: None, host: None };
        assert!(none.play("restart-vcenter").is_err(), "there is none");
        assert_eq!(none.tricks().len(), 2);
    }
}
