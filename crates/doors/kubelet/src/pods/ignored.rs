//! Fields of a pod that a VM cannot follow. The pod's owner is told once, instead of wondering.

use k8s_openapi::api::core::v1::{Pod, PodSecurityContext, Probe, Volume};

/// Their paths, as `kubectl explain` names them.
pub(super) fn ignored_fields(pod: &Pod) -> Vec<String> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let mut found = Vec::new();
    let mut note = |is_set: bool, path: &str| {
        if is_set {
            found.push(path.to_owned());
        }
    };
    let is_full = |list: Option<usize>| list.is_some_and(|length| length > 0);
    let volumes = spec.volumes.iter().flatten().filter(|volume| !is_account(volume)).count();
    note(volumes > 0, "spec.volumes");
    note(is_full(spec.init_containers.as_ref().map(Vec::len)), "spec.initContainers");
    note(is_full(spec.ephemeral_containers.as_ref().map(Vec::len)), "spec.ephemeralContainers");
    note(spec.containers.len() > 1, "spec.containers[1:]");
    note(spec.active_deadline_seconds.is_some(), "spec.activeDeadlineSeconds");
    note(spec.hostname.is_some(), "spec.hostname");
    note(spec.dns_config.is_some(), "spec.dnsConfig");
    note(is_full(spec.host_aliases.as_ref().map(Vec::len)), "spec.hostAliases");
    note(spec.host_network == Some(true), "spec.hostNetwork");
    let starts_again = spec.restart_policy.as_deref().is_none_or(|policy| policy == "Always");
    note(!starts_again, "spec.restartPolicy");
    // The API server gives every pod an empty one.
    let none = PodSecurityContext::default();
    let is_empty = spec.security_context.as_ref().is_none_or(|it| *it == none);
    note(!is_empty, "spec.securityContext");
    let Some(container) = spec.containers.first() else { return found };
    note(is_full(container.command.as_ref().map(Vec::len)), "spec.containers[0].command");
    note(is_full(container.args.as_ref().map(Vec::len)), "spec.containers[0].args");
    note(is_full(container.env.as_ref().map(Vec::len)), "spec.containers[0].env");
    note(is_full(container.env_from.as_ref().map(Vec::len)), "spec.containers[0].envFrom");
    note(container.lifecycle.is_some(), "spec.containers[0].lifecycle");
    note(container.security_context.is_some(), "spec.containers[0].securityContext");
    note(container.working_dir.is_some(), "spec.containers[0].workingDir");
    for (probe, path) in [
        (&container.startup_probe, "spec.containers[0].startupProbe.grpc"),
        (&container.readiness_probe, "spec.containers[0].readinessProbe.grpc"),
        (&container.liveness_probe, "spec.containers[0].livenessProbe.grpc"),
    ] {
        note(probe.as_ref().is_some_and(|probe: &Probe| probe.grpc.is_some()), path);
    }
    found
}

/// The token that every pod is given, wanted or not.
fn is_account(volume: &Volume) -> bool {
    volume.name.starts_with("kube-api-access-")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_vm_cannot_follow_is_named_by_its_path() {
        let pod: Pod = serde_json::from_value(json!({"metadata": {}, "spec": {
            "restartPolicy": "Never", "securityContext": {"runAsUser": 1000},
            "volumes": [{"name": "kube-api-access-x", "projected": {}}, {"name": "data", "emptyDir": {}}],
            "containers": [
                {"name": "agent", "command": ["sh"], "env": [{"name": "A", "value": "b"}], "livenessProbe": {"grpc": {"port": 1}}},
                {"name": "side"},
            ],
        }}))
        .unwrap();
        assert_eq!(
            ignored_fields(&pod),
            [
                "spec.volumes",
                "spec.containers[1:]",
                "spec.restartPolicy",
                "spec.securityContext",
                "spec.containers[0].command",
                "spec.containers[0].env",
                "spec.containers[0].livenessProbe.grpc"
            ]
        );
        let plain: Pod = serde_json::from_value(json!({"metadata": {}, "spec": {
            "restartPolicy": "Always", "securityContext": {},
            "volumes": [{"name": "kube-api-access-x", "projected": {}}],
            "containers": [{"name": "agent", "readinessProbe": {"tcpSocket": {"port": 22}}}],
        }}))
        .unwrap();
        assert_eq!(ignored_fields(&plain), [] as [&str; 0]);
    }
}
