use roost_views::{Gauges, LaneView, Part, QueueView, RequestState, RequestView, VmView};

use crate::Summary;

impl Summary {
    /// The numbers that follow from a door's requests and VMs, for doors that have no others.
    pub fn of(requests: &[RequestView], vms: &[VmView], ready: bool) -> Self {
        let waiting = requests.iter().filter(|it| it.state == RequestState::Waiting);
        let oldest = waiting.max_by_key(|request| request.waited_secs);
        Self {
            ready,
            queue: QueueView::of(requests),
            what_binds: oldest.and_then(|request| Some(request.verdict.as_ref()?.reason.clone())),
            oldest: oldest.map(|request| request.id.clone()),
            // The page has those that every door has.
            tiles: Vec::new(),
            lanes: lanes(vms),
            gauges: Gauges::default(),
        }
    }
}

/// One for each phase that a VM is in, in the order of a VM's life.
fn lanes(vms: &[VmView]) -> Vec<LaneView> {
    let mut lanes: Vec<(Part, LaneView)> = Vec::new();
    for vm in vms {
        let Some(phase) = &vm.phase else { continue };
        let is_its =
            |(part, lane): &(Part, LaneView)| *part == phase.part && lane.phase == phase.label;
        let known = lanes.iter().position(is_its);
        let place = known.unwrap_or_else(|| {
            let lane = LaneView {
                phase: phase.label.clone(),
                words: phase.words.clone(),
                part: phase.part,
                count: 0,
                names: Vec::new(),
            };
            lanes.push((phase.part, lane));
            lanes.len() - 1
        });
        let lane = &mut lanes[place].1;
        lane.count += 1;
        if lane.names.len() < LaneView::NAMES {
            lane.names.push(vm.name.clone());
        }
    }
    lanes.sort_by_key(|(part, lane)| (*part, lane.phase.clone()));
    lanes.into_iter().map(|(_, lane)| lane).collect()
}
