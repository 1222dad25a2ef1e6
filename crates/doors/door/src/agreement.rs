//! What people compare on one page must agree.

use std::collections::BTreeMap;

use roost_views::{QueueView, RequestState, RequestView, Served, VmKind, VmView};

use crate::FrontDoor;

/// What is wrong if the numbers of a door contradict each other: each request that has a VM stands where its VM does, and the headline counts the
/// requests that are listed. To be asked at one moment, while nothing changes.
pub fn disagreement(door: &dyn FrontDoor) -> Option<String> {
    let (requests, vms) = (door.requests(), door.vms());
    let headline = door.summary().queue.in_order();
    let listed = QueueView::of(&requests).in_order();
    if headline != listed {
        return Some(format!("the headline counts {headline:?}, the list has {listed:?}"));
    }
    standing(&requests, &vms)
}

/// The same of lists, such as those that an API gave.
pub fn standing(requests: &[RequestView], vms: &[VmView]) -> Option<String> {
    let mut serving: BTreeMap<_, Vec<&VmView>> = BTreeMap::new();
    for vm in vms.iter().filter(|vm| !matches!(vm.kind, VmKind::Spare | VmKind::Template)) {
        if let Some(request) = &vm.request {
            serving.entry(request).or_default().push(vm);
        }
    }
    let state = |vm: &VmView| {
        let part = vm.phase.as_ref().map(|phase| phase.part).unwrap_or_default();
        RequestState::of(Served::By(part), None)
    };
    for request in requests {
        let vms = serving.remove(&request.id).unwrap_or_default();
        // Of an attempt before this one a VM may still be there, and goes.
        let (its, others): (Vec<&VmView>, Vec<&VmView>) =
            vms.into_iter().partition(|vm| request.vm.as_ref() == Some(&vm.name));
        let is_served = matches!(
            request.state,
            RequestState::Starting
                | RequestState::Joining
                | RequestState::Working
                | RequestState::Leaving
        );
        let agrees = match its.as_slice() {
            // One that is ordered may not be seen yet.
            [] => !is_served || request.state == RequestState::Starting,
            all => all.iter().any(|vm| state(vm) == request.state),
        };
        if !agrees || others.iter().any(|vm| state(vm) != RequestState::Leaving) {
            let seen: Vec<_> = its.iter().chain(&others).map(|vm| (&vm.name, state(vm))).collect();
            let (id, state) = (&request.id, request.state.as_str());
            return Some(format!("{id} is {state}, its VMs are {seen:?}"));
        }
    }
    let unknown = serving.into_keys().next()?;
    Some(format!("a VM serves {unknown}, which is not listed"))
}
