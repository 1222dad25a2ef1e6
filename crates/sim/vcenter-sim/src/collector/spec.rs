//! A `PropertyFilterSpec` made ready to run: names resolved, traversals numbered.

use std::collections::BTreeMap;
use std::sync::Arc;

use roost_vim_wire::types::{PropertyFilterSpec, SelectionSpec};
use roost_vim_wire::{MoRef, MoType};

use crate::call::Failure;
use crate::property;

/// The paths that are asked of one kind of object.
pub(super) type Asked = Arc<[Arc<str>]>;

/// Index of a [`Step`].
pub(super) type StepId = usize;

#[derive(Debug)]
pub(super) struct Spec {
    pub steps: Vec<Step>,
    /// Where to start, and the step that stands for having started there.
    pub starts: Vec<(MoRef, StepId)>,
    pub reports_missing: bool,
    /// Whether a step can lead back to itself, so that objects may hold each other in.
    pub is_cyclic: bool,
    pub source: PropertyFilterSpec,
    asked: BTreeMap<MoType, Option<Asked>>,
}

/// One way to reach objects: along `path` of objects of `kind`. A start has neither.
#[derive(Debug, Default)]
pub(super) struct Step {
    kind: String,
    pub path: String,
    /// Whether the objects it reaches are reported, and not only passed through.
    pub reports: bool,
    pub next: Vec<StepId>,
}

impl Step {
    pub(super) fn starts_from(&self, obj: &MoRef) -> bool {
        obj.kind.is_a(&self.kind)
    }
}

impl Spec {
    pub(super) fn compile(source: PropertyFilterSpec) -> Result<Self, Failure> {
        if source.object_set.is_empty() || source.prop_set.is_empty() {
            return Err(Failure::invalid_argument(if source.prop_set.is_empty() {
                "propSet"
            } else {
                "objectSet"
            }));
        }
        let mut numbering = Numbering::default();
        for start in &source.object_set {
            numbering.collect(&start.select_set);
        }
        for index in 0..numbering.found.len() {
            numbering.steps[index].next = numbering.resolve(&numbering.found[index].select_set)?;
        }
        let mut starts = Vec::new();
        let mut start_steps = Vec::new();
        for start in &source.object_set {
            let next = numbering.resolve(&start.select_set)?;
            starts.push((start.obj.clone(), numbering.steps.len() + start_steps.len()));
            start_steps.push(Step { reports: start.skip != Some(true), next, ..Step::default() });
        }
        let mut steps = numbering.steps;
        steps.extend(start_steps);
        Ok(Self {
            is_cyclic: is_cyclic(&steps),
            reports_missing: source.report_missing_objects_in_results == Some(true),
            steps,
            starts,
            source,
            asked: BTreeMap::new(),
        })
    }

    /// The paths asked of objects of this kind, in the order they were asked; `None` if such objects are not asked for at all.
    pub(super) fn asked(&mut self, kind: &MoType) -> Option<Asked> {
        if let Some(asked) = self.asked.get(kind) {
            return asked.clone();
        }
        let fitting: Vec<_> =
            self.source.prop_set.iter().filter(|set| kind.is_a(&set.kind)).collect();
        let mut paths: Vec<Arc<str>> = Vec::new();
        let mut add = |path: &str| {
            if !paths.iter().any(|known| **known == *path) {
                paths.push(path.into());
            }
        };
        for set in &fitting {
            if set.all == Some(true) {
                for path in property::all_of(kind) {
                    add(path);
                }
            }
            for path in &set.path_set {
                add(path);
            }
        }
        let asked = (!fitting.is_empty()).then(|| paths.into());
        self.asked.insert(kind.clone(), asked.clone());
        asked
    }

    /// The steps that lead on from an object that was reached by `via`.
    pub(super) fn onward(&self, obj: &MoRef, via: StepId) -> impl Iterator<Item = StepId> {
        self.steps[via].next.iter().copied().filter(|step| self.steps[*step].starts_from(obj))
    }
}

#[derive(Debug, Default)]
struct Numbering<'a> {
    found: Vec<&'a SelectionSpec>,
    steps: Vec<Step>,
}

impl<'a> Numbering<'a> {
    /// Numbers all traversals, also those inside others: a name is good in the whole filter.
    fn collect(&mut self, set: &'a [SelectionSpec]) {
        for spec in set.iter().filter(|spec| spec.path.is_some()) {
            self.found.push(spec);
            self.steps.push(Step {
                kind: spec.kind.clone().unwrap_or_default(),
                path: spec.path.clone().unwrap_or_default(),
                reports: spec.skip != Some(true),
                next: Vec::new(),
            });
            self.collect(&spec.select_set);
        }
    }

    fn resolve(&self, set: &[SelectionSpec]) -> Result<Vec<StepId>, Failure> {
        let place = |spec: &SelectionSpec| {
            if spec.path.is_some() {
                self.found.iter().position(|known| std::ptr::eq(*known, spec))
            } else {
                self.found.iter().position(|known| known.name.is_some() && known.name == spec.name)
            }
        };
        set.iter()
            .map(|spec| place(spec).ok_or_else(|| Failure::invalid_argument("selectSet")))
            .collect()
    }
}

fn is_cyclic(steps: &[Step]) -> bool {
    (0..steps.len()).any(|start| {
        let (mut seen, mut ahead) = (vec![false; steps.len()], steps[start].next.clone());
        while let Some(step) = ahead.pop() {
            if step == start {
                return true;
            }
            if !std::mem::replace(&mut seen[step], true) {
                ahead.extend(&steps[step].next);
            }
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use roost_vim_wire::types::{ObjectSpec, PropertySpec};

    use super::*;

    fn spec(prop_set: Vec<PropertySpec>, select_set: Vec<SelectionSpec>) -> Result<Spec, Failure> {
        let obj = MoRef::new(MoType::Folder, "group-d1");
        let start = ObjectSpec { obj, skip: Some(true), select_set };
        Spec::compile(PropertyFilterSpec {
            prop_set,
            object_set: vec![start],
            ..PropertyFilterSpec::default()
        })
    }

    #[test]
    fn a_name_leads_back_into_its_own_traversal() {
        let mut down = SelectionSpec::traverse("Folder", "childEntity");
        down.name = Some("down".into());
        down.select_set =
            vec![SelectionSpec::named("down"), SelectionSpec::traverse("Datacenter", "vmFolder")];
        let spec = spec(vec![PropertySpec::new("VirtualMachine", &[])], vec![down]).unwrap();
        assert_eq!(spec.steps[0].next, [0, 1]);
        assert!(spec.is_cyclic);
        assert_eq!(spec.starts[0].1, 2);
        assert!(!spec.steps[2].reports);
    }

    #[test]
    fn an_unknown_name_is_refused() {
        let refused =
            spec(vec![PropertySpec::new("Folder", &[])], vec![SelectionSpec::named("nowhere")]);
        assert_eq!(refused.unwrap_err().fault.class, "InvalidArgument");
    }

    #[test]
    fn paths_of_all_fitting_types_are_merged_once() {
        let sets = vec![
            PropertySpec::new("ManagedEntity", &["name", "parent"]),
            PropertySpec::new("VirtualMachine", &["name", "runtime.powerState"]),
        ];
        let mut spec = spec(sets, vec![]).unwrap();
        let vm: Vec<_> =
            spec.asked(&MoType::VirtualMachine).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(vm, ["name", "parent", "runtime.powerState"]);
        assert_eq!(spec.asked(&MoType::Folder).unwrap().len(), 2);
        assert_eq!(spec.asked(&MoType::Task), None);
    }
}
