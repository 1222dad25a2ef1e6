use roost_fleet::VmId;

use super::{Spare, SpareState};
use crate::config::{SpareKind, SpareModel};

/// The spares that serve a worker of this model and flavor, best first: those made with the same flavor, then neutral ones, which are
/// resized at the claim; the oldest of each first. A spare made for another flavor stays for its own jobs (D4, C.8.3).
///
/// Candidates only: the ledger promises each to one job.
pub fn claimable(spares: &[Spare], model: &SpareModel, flavor: Option<&str>) -> Vec<VmId> {
    let flavor = flavor.map(str::to_lowercase);
    let wanted = SpareKind { model: model.clone(), flavor };
    let neutral = SpareKind { model: model.clone(), flavor: None };
    let rank = |spare: &Spare| match &spare.kind {
        kind if *kind == wanted => Some(0),
        kind if *kind == neutral => Some(1),
        _ => None,
    };
    let mut serving: Vec<_> = spares
        .iter()
        .filter(|spare| spare.state == SpareState::Ready)
        .filter(|spare| !spare.is_outdated && !spare.shares_address)
        .filter_map(|spare| Some((rank(spare)?, spare.born, &spare.vm)))
        .collect();
    serving.sort();
    serving.into_iter().map(|(_, _, vm)| vm.clone()).collect()
}
