//! What the API server is told about a pod. Times that have not changed stay as they were.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use roost_microvm::Progress;

use super::table::{Activity, Tracked, Waiting};

/// The status of a pod. `hibernate`: its annotations ask for it.
pub(super) fn status(
    pod: &Pod,
    seen: &Tracked,
    hibernate: bool,
    host_ip: &str,
    now: Timestamp,
) -> PodStatus {
    let before = pod.status.clone().unwrap_or_default();
    let stage = Stage::of(seen, hibernate);
    let is_ready = stage == Stage::Running && seen.ready;
    let container = container(pod, &before, seen, &stage, is_ready, now);
    let address =
        seen.address.map(|address| address.to_string()).filter(|_| stage == Stage::Running);
    let (reason, message) = match (&stage, &seen.failure) {
        (Stage::Ended { reason, message }, _) => {
            (Some((*reason).to_owned()), Some(message.clone()))
        }
        (Stage::Waiting { .. }, Some(failure)) => {
            (Some("ProviderFailed".to_owned()), Some(failure.message.clone()))
        }
        _ => (None, None),
    };
    PodStatus {
        phase: Some(stage.phase().to_owned()),
        reason,
        message,
        start_time: before.start_time.clone().or(Some(Time(seen.started.unwrap_or(now)))),
        host_ip: Some(host_ip.to_owned()),
        host_ips: Some(vec![HostIP { ip: host_ip.to_owned() }]),
        pod_ips: address.clone().map(|ip| vec![PodIP { ip }]),
        pod_ip: address,
        conditions: Some(conditions(&before, &stage, is_ready, seen, now)),
        container_statuses: Some(container.into_iter().collect()),
        observed_generation: pod.metadata.generation,
        qos_class: before.qos_class.clone(),
        ..PodStatus::default()
    }
}

/// Where a pod stands.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stage {
    Waiting {
        reason: &'static str,
    },
    /// No VM and none is wanted: no container status, because the operator takes one that runs for a finished wake.
    Hibernated,
    Running,
    Ended {
        reason: &'static str,
        message: String,
    },
}

impl Stage {
    fn of(seen: &Tracked, hibernate: bool) -> Self {
        if let Some(ending) = &seen.ending {
            return Self::Ended { reason: ending.reason, message: ending.message.clone() };
        }
        match seen.activity {
            Some(Activity::Creating(waiting) | Activity::Waking(waiting)) => {
                Self::Waiting { reason: waiting.reason() }
            }
            _ if seen.vm.is_some() => Self::Running,
            _ if hibernate => Self::Hibernated,
            _ if seen.failure.is_some() => Self::Waiting { reason: "ProviderFailed" },
            _ => Self::Waiting { reason: Waiting::Queued.reason() },
        }
    }

    fn phase(&self) -> &'static str {
        match self {
            Self::Waiting { .. } | Self::Hibernated => "Pending",
            Self::Running => "Running",
            Self::Ended { .. } => "Failed",
        }
    }
}

fn container(
    pod: &Pod,
    before: &PodStatus,
    seen: &Tracked,
    stage: &Stage,
    is_ready: bool,
    now: Timestamp,
) -> Option<ContainerStatus> {
    if *stage == Stage::Hibernated {
        return None;
    }
    let spec = pod.spec.as_ref().and_then(|spec| spec.containers.first());
    let name = spec.map_or("agent", |container| container.name.as_str());
    let earlier =
        before.container_statuses.as_deref().unwrap_or_default().iter().find(|it| it.name == name);
    let earlier_start =
        earlier.and_then(|it| it.state.as_ref()?.running.as_ref()?.started_at.clone());
    let restarted = seen.restarted.map(Time);
    let started = match (restarted, earlier_start) {
        (Some(restarted), Some(earlier)) if earlier.0 >= restarted.0 => earlier,
        (Some(restarted), _) => restarted,
        (None, Some(earlier)) => earlier,
        (None, None) => Time(seen.started.unwrap_or(now)),
    };
    // In tenths: each of them is a write.
    let tenths = seen.transfer.as_ref().and_then(Progress::tenths);
    let progress = tenths.map(|tenths| format!("{} % are here", tenths * 10));
    let state = match stage {
        Stage::Waiting { reason } => ContainerState {
            waiting: Some(ContainerStateWaiting {
                reason: Some((*reason).to_owned()),
                message: seen.failure.as_ref().map(|failure| failure.message.clone()).or(progress),
            }),
            ..ContainerState::default()
        },
        Stage::Running => ContainerState {
            running: Some(ContainerStateRunning { started_at: Some(started) }),
            ..ContainerState::default()
        },
        Stage::Ended { reason, message } => {
            let finished = earlier
                .and_then(|it| it.state.as_ref()?.terminated.as_ref()?.finished_at.clone())
                .unwrap_or(Time(now));
            ContainerState {
                terminated: Some(ContainerStateTerminated {
                    exit_code: 1,
                    reason: Some((*reason).to_owned()),
                    message: Some(message.clone()),
                    finished_at: Some(finished),
                    ..ContainerStateTerminated::default()
                }),
                ..ContainerState::default()
            }
        }
        Stage::Hibernated => ContainerState::default(),
    };
    let vm = seen.vm.as_ref();
    Some(ContainerStatus {
        name: name.to_owned(),
        image: vm
            .map(|vm| vm.config.image.clone())
            .filter(|image| !image.is_empty())
            .unwrap_or_else(|| {
                spec.and_then(|container| container.image.clone()).unwrap_or_default()
            }),
        image_id: vm.map(|vm| vm.config.image_digest.clone()).unwrap_or_default(),
        container_id: vm.map(|vm| format!("cocoon://{}", vm.id)),
        ready: is_ready,
        started: Some(*stage == Stage::Running),
        restart_count: seen.restarts,
        state: Some(state),
        ..ContainerStatus::default()
    })
}

fn conditions(
    before: &PodStatus,
    stage: &Stage,
    is_ready: bool,
    seen: &Tracked,
    now: Timestamp,
) -> Vec<PodCondition> {
    let mut conditions = before.conditions.clone().unwrap_or_default();
    let word = |is: bool| if is { "True" } else { "False" };
    let why = (!is_ready && !seen.probed.is_empty()).then(|| seen.probed.clone());
    for (kind, status, message) in [
        ("PodScheduled", true, None),
        ("Initialized", true, None),
        ("ContainersReady", is_ready, why.clone()),
        ("Ready", is_ready, why),
    ] {
        let earlier = conditions.iter_mut().find(|condition| condition.type_ == kind);
        let changed = earlier.as_ref().is_none_or(|condition| condition.status != word(status));
        let since = earlier.as_ref().and_then(|condition| condition.last_transition_time.clone());
        let fresh = PodCondition {
            type_: kind.to_owned(),
            status: word(status).to_owned(),
            last_transition_time: if changed { Some(Time(now)) } else { since },
            reason: (!status).then(|| {
                if *stage == Stage::Running { "ContainersNotReady" } else { "PodNotRunning" }
                    .to_owned()
            }),
            message,
            ..PodCondition::default()
        };
        match earlier {
            Some(condition) => *condition = fresh,
            None => conditions.push(fresh),
        }
    }
    conditions
}

#[cfg(test)]
mod tests {
    use roost_microvm::{VmConfig, VmRecord, VmState};

    use super::*;
    use crate::pods::table::{Ending, Failure};
    use crate::testing::pod;

    fn running() -> Tracked {
        let config = VmConfig {
            name: "x".into(),
            image: "repo:1".into(),
            image_digest: "sha256:aa".into(),
            ..VmConfig::default()
        };
        Tracked {
            vm: Some(VmRecord {
                id: "VM1".into(),
                state: VmState::Running,
                config,
                ..VmRecord::default()
            }),
            address: Some([10, 0, 0, 5].into()),
            ready: true,
            started: Some(Timestamp::UNIX_EPOCH),
            ..Tracked::default()
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn a_status_that_says_the_same_is_the_same() {
        let mut pod = pod("a", &[]);
        let first = status(&pod, &running(), false, "192.0.2.1", at(100));
        pod.status = Some(first.clone());
        assert_eq!(
            status(&pod, &running(), false, "192.0.2.1", at(200)),
            first,
            "no time changes by itself"
        );
        let not_ready = Tracked { ready: false, probed: "ping failed".into(), ..running() };
        let second = status(&pod, &not_ready, false, "192.0.2.1", at(300));
        let ready =
            second.conditions.as_ref().unwrap().iter().find(|c| c.type_ == "Ready").unwrap();
        assert_eq!(
            (ready.status.as_str(), ready.last_transition_time.clone()),
            ("False", Some(Time(at(300))))
        );
        let container = &second.container_statuses.unwrap()[0];
        assert_eq!(container.container_id.as_deref(), Some("cocoon://VM1"));
        assert_eq!(container.name, "agent");
    }

    #[test]
    fn a_hibernated_pod_shows_no_container() {
        let gone = Tracked { vm: None, ..running() };
        let shown = status(&pod("a", &[]), &gone, true, "192.0.2.1", at(1));
        assert_eq!(shown.phase.as_deref(), Some("Pending"));
        assert_eq!(shown.container_statuses, Some(Vec::new()));
        assert_eq!(shown.pod_ip, None);
    }

    #[test]
    fn waiting_says_for_what_and_failing_says_why() {
        let creating = Tracked {
            vm: None,
            activity: Some(Activity::Creating(Waiting::PullingSnapshot)),
            ..running()
        };
        let shown = status(&pod("a", &[]), &creating, false, "192.0.2.1", at(1));
        let state = shown.container_statuses.unwrap()[0].state.clone().unwrap().waiting.unwrap();
        assert_eq!(state.reason.as_deref(), Some("PullingSnapshot"));
        let failure =
            Failure::again(None, "CreateBringUpFailed", "clone vm x: no space".into(), at(1));
        let failed = Tracked { vm: None, failure: Some(failure), ..running() };
        let shown = status(&pod("a", &[]), &failed, false, "192.0.2.1", at(1));
        assert_eq!(
            (shown.phase.as_deref(), shown.reason.as_deref()),
            (Some("Pending"), Some("ProviderFailed"))
        );
        let ending = Ending { reason: "VMGone", message: "vm no longer exists".into(), told: true };
        let ended = Tracked { vm: None, ending: Some(ending), ..running() };
        let shown = status(&pod("a", &[]), &ended, false, "192.0.2.1", at(1));
        assert_eq!(shown.phase.as_deref(), Some("Failed"));
        assert_eq!(
            shown.container_statuses.unwrap()[0]
                .state
                .clone()
                .unwrap()
                .terminated
                .unwrap()
                .exit_code,
            1
        );
    }

    #[test]
    fn conditions_of_others_survive() {
        let mut pod = pod("a", &[]);
        let foreign = PodCondition {
            type_: "example.org/gate".into(),
            status: "True".into(),
            ..PodCondition::default()
        };
        pod.status =
            Some(PodStatus { conditions: Some(vec![foreign.clone()]), ..PodStatus::default() });
        let shown = status(&pod, &running(), false, "192.0.2.1", at(1));
        assert!(shown.conditions.unwrap().contains(&foreign));
    }
}
