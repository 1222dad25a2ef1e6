//! What must be true once everybody had time, whatever happened before. The campaign and its own tests share it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::ListParams;
use roost_cocoon_sim::EpochRegistry;
use roost_kubelet::key;

use crate::lab::{Lab, is_ready};

/// What guests remember, by the uid of their pods: no sleep may lose it.
pub(crate) type Remembered = BTreeMap<String, String>;

pub(crate) fn vm_name(name: &str) -> String {
    format!("vk-default-{name}")
}

pub(crate) fn is_true(pod: &Pod, key: &str) -> bool {
    pod.annotations().get(key).is_some_and(|value| value == "true")
}

fn has_tag(registry: &EpochRegistry, vm: &str, tag: &str) -> bool {
    registry.tags().contains(&format!("{vm}:{tag}"))
}

/// One sentence for each thing that is not as it should be.
pub(crate) async fn problems(
    lab: &Lab,
    registry: &EpochRegistry,
    remembered: &Remembered,
) -> Vec<String> {
    let pods = lab.pods().list(&ListParams::default()).await.unwrap().items;
    let vms: BTreeMap<String, (String, bool)> = lab.host.with_host(|host| {
        let vm = |vm: &roost_microvm::VmRecord| {
            (vm.name().to_owned(), (vm.id.clone(), vm.state.is_running()))
        };
        host.vms().map(vm).collect()
    });
    let mut wrong = Vec::new();
    for pod in &pods {
        let vm = pod.annotations()[key::VM_NAME].clone();
        let memory = remembered.get(&pod.uid().unwrap_or_default());
        let sleeps = is_true(pod, key::HIBERNATE);
        let source = pod.annotations().get(key::FORK_FROM);
        // A fork whose source is away waits for it.
        let waits = source.is_some_and(|source| !vms.contains_key(source));
        let so_far = wrong.len();
        match vms.get(&vm) {
            _ if pod.metadata.deletion_timestamp.is_some() => {
                wrong.push(format!("{vm} is still to be deleted"));
            }
            Some(_) if sleeps => wrong.push(format!("{vm} does not sleep")),
            None if sleeps && memory.is_some() && !has_tag(registry, &vm, "hibernate") => {
                wrong.push(format!("{vm} sleeps and nothing of it is kept"));
            }
            None if sleeps || waits && memory.is_none() => {}
            None => wrong.push(format!("{vm} has no VM")),
            Some((id, is_running)) => {
                if !is_running || !is_ready(pod) {
                    wrong.push(format!("{vm} does not run or is not ready"));
                }
                if pod.annotations().get(key::VM_ID) != Some(id) {
                    wrong.push(format!("{vm} names another VM than it has"));
                }
                if has_tag(registry, &vm, "hibernate") {
                    wrong.push(format!("{vm} is awake beside an old snapshot of itself"));
                }
                let has = lab.host.with_host(|host| host.memory(&vm).map(str::to_owned));
                if let Some(memory) = memory.filter(|memory| has.as_ref() != Some(memory)) {
                    wrong.push(format!("{vm} has lost its memory: {memory}, not {has:?}"));
                }
            }
        }
        // What the operator waits for. A failure is told until it asks anew.
        let rest = if sleeps { "hibernated" } else { "ready" };
        let said = pod.annotations().get(key::LIFECYCLE_STATE).map_or("nothing", String::as_str);
        if wrong.len() == so_far && said != rest && said != "failed" && !waits {
            wrong.push(format!("{vm} says {said}, not {rest}"));
        }
    }
    let wanted: Vec<&String> = pods.iter().map(|pod| &pod.annotations()[key::VM_NAME]).collect();
    for name in vms.keys().filter(|name| !wanted.contains(name)) {
        wrong.push(format!("{name} is a VM without a pod"));
    }
    wrong
}
