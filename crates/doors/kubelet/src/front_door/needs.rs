//! What a person has to look at.

use std::collections::BTreeMap;

use roost_controller::Key;
use roost_views::words::count;
use roost_views::{NeedKind, NeedView};

use super::WORDS;
use crate::pods::Tracked;

/// What failed so often will hardly succeed by itself. Fewer failures are what a registry that restarts costs.
const OFTEN: u32 = 5;

/// By the step that a pod stands at.
pub(super) fn advice(gate: &str) -> Option<&'static str> {
    Some(match gate {
        "annotations" => {
            "Whoever made the pod has to correct its annotations: the reason names the one. It goes on when they are changed."
        }
        "spawning" => "Somebody holds new VMs back on this node: `roost resume` lets them go on.",
        "network" => {
            "Run the script that the pod's annotation has in its guest, or delete the pod and have it made anew."
        }
        _ => return None,
    })
}

/// Pods whose VM fails again and again, by what the runtime or the registry says.
pub(super) fn failing(pods: &[(Key, Tracked)]) -> Vec<NeedView> {
    let mut alike: BTreeMap<&str, Vec<&Key>> = BTreeMap::new();
    for (key, pod) in pods {
        if let Some(failure) = pod.failure.as_ref().filter(|it| it.attempts >= OFTEN) {
            alike.entry(&failure.message).or_default().push(key);
        }
    }
    let need = |(message, keys): (&str, Vec<&Key>)| {
        let number = keys.len() as u64;
        NeedView {
            kind: NeedKind::Stuck,
            door: WORDS.name.to_owned(),
            words: format!("{} failed {OFTEN} times or more: {message}", count(number, "pod", "pods")),
            advice: "See what the runtime or the registry says with `roost doctor kubelet`; `roost recheck` tries a pod again at once.".to_owned(),
            since: None,
            count: number,
            names: keys.iter().take(NeedView::NAMES).map(ToString::to_string).collect(),
            href: format!("/{}", WORDS.path()),
            runbook: Some("kubelet-pods-fail".to_owned()),
        }
    };
    alike.into_iter().map(need).collect()
}
