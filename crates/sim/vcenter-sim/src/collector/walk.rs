//! Which objects a specification selects right now.

use std::collections::{HashSet, VecDeque};

use roost_vim_wire::{Fault, MoRef};

use super::spec::{Spec, StepId};
use crate::call::Failure;
use crate::inventory::NoSuchProperty;
use crate::property::Reading;

/// What a walk found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Each object once, in the order it was first reached.
    pub objects: Vec<MoRef>,
    /// Starts that do not exist, if the caller wants to be told so.
    pub missing: Vec<MoRef>,
}

pub(super) fn walk(reading: &Reading<'_>, spec: &mut Spec) -> Result<Found, Failure> {
    let mut found = Found::default();
    let (mut passed, mut reported) = (HashSet::new(), HashSet::new());
    let mut ahead: VecDeque<(MoRef, StepId)> = VecDeque::new();
    for (start, step) in check_starts(reading, spec, &mut found.missing)? {
        ahead.push_back((start, step));
    }
    while let Some((obj, via)) = ahead.pop_front() {
        let leads_on = spec.onward(&obj, via).next().is_some();
        if leads_on && !passed.insert((obj.clone(), via)) {
            continue;
        }
        for step in spec.onward(&obj, via) {
            let targets = reading
                .refs(&obj, &spec.steps[step].path)
                .map_err(|error| invalid_property(&error))?;
            ahead.extend(targets.into_iter().map(|target| (target, step)));
        }
        if spec.steps[via].reports
            && spec.asked(&obj.kind).is_some()
            && reported.insert(obj.clone())
        {
            found.objects.push(obj);
        }
    }
    Ok(found)
}

/// The starts that exist. One that does not fails the whole call, unless the caller asked to be told in the answer.
pub(super) fn check_starts(
    reading: &Reading<'_>,
    spec: &Spec,
    missing: &mut Vec<MoRef>,
) -> Result<Vec<(MoRef, StepId)>, Failure> {
    let mut present = Vec::new();
    for (start, step) in &spec.starts {
        if reading.world.has(start, reading.session.unwrap_or_default()) {
            present.push((start.clone(), *step));
        } else if spec.reports_missing {
            missing.push(start.clone());
        } else {
            return Err(Failure::not_found(start));
        }
    }
    Ok(present)
}

pub(super) fn invalid_property(error: &NoSuchProperty) -> Failure {
    let fault = Fault::of("InvalidProperty").with("name", &error.path);
    Failure::new(fault, format!("The property '{}' is not known to this type.", error.path))
}
