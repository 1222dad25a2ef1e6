//! Sizes by name: which one a job gets, what it takes of the limits, what must stay free for smaller ones, and how a disk grows.

use std::collections::HashMap;
use std::fmt;

/// What a VM takes of the resource limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Footprint {
    pub cpus: u32,
    pub memory_mb: u64,
}

impl fmt::Display for Footprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} vCPUs, {} MB RAM", self.cpus, self.memory_mb)
    }
}

/// A size. What it leaves open is as in the template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flavor {
    pub name: String,
    pub cpus: Option<u32>,
    pub memory_mb: Option<u64>,
    pub disk_gb: Option<u64>,
}

impl Flavor {
    /// What a VM of this flavor takes; `None` if that depends on a template that is not known.
    pub fn footprint(&self, template: Option<Footprint>) -> Option<Footprint> {
        Some(Footprint {
            cpus: self.cpus.or(template.map(|t| t.cpus))?,
            memory_mb: self.memory_mb.or(template.map(|t| t.memory_mb))?,
        })
    }
}

/// What a worker takes: its flavor's size, else that of its template (D12). `None` if that is not known.
pub fn footprint_of(flavor: Option<&Flavor>, template: Option<Footprint>) -> Option<Footprint> {
    flavor.map_or(template, |flavor| flavor.footprint(template))
}

/// The configured flavors, in the order of the file. No two names differ by case only.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flavors {
    list: Vec<Flavor>,
    default: Option<String>,
}

/// Why a list of flavors cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlavorsError {
    /// `index` is that of the second one.
    #[error("is the same flavor as {first:?}: upper and lower case are not told apart")]
    Twice { index: usize, first: String },
    #[error("{name:?} is not one of the flavors: {known}")]
    NoSuchDefault { name: String, known: String },
}

/// Who named the flavor, from the strongest to the weakest (D2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedBy {
    /// `runs-on.flavor` of a V2 job.
    RunsOn,
    /// The worker model, V1 or V2.
    Model,
    /// A `flavor` requirement of a V1 job.
    Requirement,
    /// `defaultFlavor`.
    Default,
}

impl fmt::Display for NamedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RunsOn => "the job's runs-on",
            Self::Model => "the worker model",
            Self::Requirement => "the job's requirement",
            Self::Default => "defaultFlavor",
        })
    }
}

/// What job and model say about the flavor. Empty text is as good as none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlavorWish<'a> {
    pub runs_on: Option<&'a str>,
    pub model: Option<&'a str>,
    pub requirement: Option<&'a str>,
}

/// A flavor that nobody configured: the job is refused by name before it is taken (D3).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("flavor {name:?}, named by {by}, is not one of the flavors: {known}")]
pub struct UnknownFlavor {
    pub name: String,
    pub by: NamedBy,
    pub known: String,
}

impl Flavor {
    /// As [`Flavors::reserve_beside`], with the smallest flavor of all.
    pub(crate) fn reserve_for(&self, smallest: Option<Footprint>, count: u32) -> Footprint {
        let Some(smallest) = smallest else { return Footprint::default() };
        let (cpus, memory_mb) = (self.cpus.unwrap_or(0), self.memory_mb.unwrap_or(0));
        Footprint {
            cpus: if smallest.cpus < cpus { smallest.cpus.saturating_mul(count) } else { 0 },
            memory_mb: if smallest.memory_mb < memory_mb {
                smallest.memory_mb.saturating_mul(count.into())
            } else {
                0
            },
        }
    }
}

impl Flavors {
    pub fn new(list: Vec<Flavor>, default: Option<String>) -> Result<Self, FlavorsError> {
        let mut before: HashMap<String, &str> = HashMap::new();
        for (index, flavor) in list.iter().enumerate() {
            if let Some(first) = before.insert(folded(&flavor.name), &flavor.name) {
                return Err(FlavorsError::Twice { index, first: first.to_owned() });
            }
        }
        let flavors = Self { list, default: default.filter(|name| !name.is_empty()) };
        match &flavors.default {
            Some(name) if flavors.get(name).is_none() => {
                Err(FlavorsError::NoSuchDefault { name: name.clone(), known: flavors.names() })
            }
            _ => Ok(flavors),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Flavor> {
        self.list.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn get(&self, name: &str) -> Option<&Flavor> {
        self.list.iter().find(|flavor| same(&flavor.name, name))
    }

    /// The flavor for a job, `None` for the template's size.
    ///
    /// Without any configured flavor nothing is resized, whatever jobs and models ask for.
    pub fn resolve(&self, wish: FlavorWish<'_>) -> Result<Option<&Flavor>, UnknownFlavor> {
        if self.list.is_empty() {
            return Ok(None);
        }
        let named = [
            (wish.runs_on, NamedBy::RunsOn),
            (wish.model, NamedBy::Model),
            (wish.requirement, NamedBy::Requirement),
            (self.default.as_deref(), NamedBy::Default),
        ];
        let first = named.into_iter().find_map(|(name, by)| {
            let name = name.map(str::trim).filter(|name| !name.is_empty())?;
            Some((name, by))
        });
        let Some((name, by)) = first else { return Ok(None) };
        self.get(name).map(Some).ok_or_else(|| UnknownFlavor {
            name: name.to_owned(),
            by,
            known: self.names(),
        })
    }

    /// The one with the fewest CPUs, then the least memory, of those that say both.
    pub fn smallest(&self) -> Option<Footprint> {
        let sized = self.list.iter().filter_map(|flavor| flavor.footprint(None));
        sized.min_by_key(|footprint| (footprint.cpus, footprint.memory_mb))
    }

    /// What must stay free beside a worker of `flavor`, so that `count` workers of the smallest flavor still fit (D13).
    ///
    /// CPUs and memory are kept free each on their own, and only for a flavor that takes more of it: the smallest never waits for itself. Bites only with `maxCpus` or `maxMemoryMB`.
    pub fn reserve_beside(&self, flavor: &Flavor, count: u32) -> Footprint {
        flavor.reserve_for(self.smallest(), count)
    }

    /// For messages.
    pub(crate) fn names(&self) -> String {
        Self::list_names(self.list.iter().map(|flavor| &flavor.name))
    }

    pub(crate) fn list_names<'a>(names: impl Iterator<Item = &'a String>) -> String {
        let names: Vec<&str> = names.map(String::as_str).collect();
        if names.is_empty() { "there are none".to_owned() } else { names.join(", ") }
    }
}

/// Names that are the same have the same of these.
pub(crate) fn folded(name: &str) -> String {
    name.to_lowercase()
}

/// Flavor names are compared without regard to case, as CDS does.
pub fn same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other) || one.to_lowercase() == other.to_lowercase()
}

/// The first disk of a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstDisk {
    pub capacity_kb: u64,
    /// Whether it only holds what differs from a parent: a linked clone.
    pub is_delta: bool,
}

/// Why a flavor's disk size cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiskError {
    #[error("the VM has no disk that could have {wanted_gb} GB")]
    NoDisk { wanted_gb: u64 },
    #[error(
        "the first disk has {have_gb} GB and is a linked clone's, which vSphere does not grow to {wanted_gb} GB; \
         clone from a template without snapshots"
    )]
    LinkedClone { have_gb: u64, wanted_gb: u64 },
}

const KB_PER_GB: u64 = 1024 * 1024;

/// The new capacity in KB of the first disk, or `None` if it stays. A disk never shrinks (D6).
pub fn grow_disk(disk: Option<FirstDisk>, wanted_gb: u64) -> Result<Option<u64>, DiskError> {
    let Some(disk) = disk else { return Err(DiskError::NoDisk { wanted_gb }) };
    let wanted_kb = wanted_gb.saturating_mul(KB_PER_GB);
    if wanted_kb <= disk.capacity_kb {
        return Ok(None);
    }
    if disk.is_delta {
        return Err(DiskError::LinkedClone { have_gb: disk.capacity_kb / KB_PER_GB, wanted_gb });
    }
    Ok(Some(wanted_kb))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flavor(name: &str, cpus: u32, memory_mb: u64) -> Flavor {
        Flavor { name: name.into(), cpus: Some(cpus), memory_mb: Some(memory_mb), disk_gb: None }
    }

    fn usual(default: Option<&str>) -> Flavors {
        let list =
            vec![flavor("Small", 2, 4096), flavor("medium", 4, 8192), flavor("large", 8, 16384)];
        Flavors::new(list, default.map(str::to_owned)).unwrap()
    }

    #[test]
    fn d2_the_job_outranks_the_model_which_outranks_the_requirement_which_outranks_the_default() {
        let flavors = usual(Some("MEDIUM"));
        for (runs_on, model, requirement, wanted) in [
            (Some("large"), Some("small"), Some("medium"), "large"),
            (None, Some("small"), Some("large"), "Small"),
            (Some(""), Some(" "), Some("LARGE"), "large"),
            (None, None, None, "medium"),
        ] {
            let wish = FlavorWish { runs_on, model, requirement };
            assert_eq!(flavors.resolve(wish).unwrap().unwrap().name, wanted, "{wish:?}");
        }
        assert_eq!(usual(None).resolve(FlavorWish::default()), Ok(None), "the template's size");
    }

    #[test]
    fn d3_an_unknown_flavor_is_refused_by_name() {
        let wish = FlavorWish { model: Some("Huge"), ..FlavorWish::default() };
        assert_eq!(
            usual(None).resolve(wish).unwrap_err().to_string(),
            r#"flavor "Huge", named by the worker model, is not one of the flavors: Small, medium, large"#
        );
    }

    #[test]
    fn s_13_7_without_configured_flavors_nothing_is_resized() {
        let wish = FlavorWish { runs_on: Some("huge"), ..FlavorWish::default() };
        assert_eq!(Flavors::default().resolve(wish), Ok(None));
    }

    #[test]
    fn d1_names_that_differ_by_case_only_are_one_name() {
        let twice =
            Flavors::new(vec![flavor("a", 1, 4), flavor("B", 1, 4), flavor("b", 2, 4)], None);
        assert_eq!(twice, Err(FlavorsError::Twice { index: 2, first: "B".into() }));
        assert_eq!(usual(None).get("sMALL").unwrap().name, "Small");
        let default = Flavors::new(vec![flavor("a", 1, 4)], Some("b".into())).unwrap_err();
        assert_eq!(default.to_string(), r#""b" is not one of the flavors: a"#);
    }

    #[test]
    fn d13_the_reserve_is_for_the_smallest_flavor_in_cpus_and_memory() {
        let flavors = usual(None);
        for (name, count, cpus, memory_mb) in
            [("large", 2, 4, 8192), ("medium", 3, 6, 12288), ("small", 2, 0, 0), ("large", 0, 0, 0)]
        {
            let reserve = flavors.reserve_beside(flavors.get(name).unwrap(), count);
            assert_eq!(reserve, Footprint { cpus, memory_mb }, "{count} beside {name}");
        }
    }

    #[test]
    fn d13_a_flavor_that_is_larger_in_memory_only_reserves_memory_only() {
        let flavors =
            Flavors::new(vec![flavor("a", 2, 4096), flavor("fat", 2, 32768)], None).unwrap();
        let reserve = flavors.reserve_beside(flavors.get("fat").unwrap(), 1);
        assert_eq!(reserve, Footprint { cpus: 0, memory_mb: 4096 });
    }

    #[test]
    fn what_a_flavor_leaves_open_is_the_templates() {
        let open = Flavor { cpus: None, ..flavor("memory", 0, 8192) };
        let template = Footprint { cpus: 2, memory_mb: 1024 };
        assert_eq!(open.footprint(Some(template)), Some(Footprint { cpus: 2, memory_mb: 8192 }));
        assert_eq!(open.footprint(None), None);
        assert_eq!(footprint_of(None, Some(template)), Some(template), "D12");
        assert_eq!(footprint_of(Some(&open), Some(template)), open.footprint(Some(template)));
    }

    #[test]
    fn d6_a_disk_grows_and_never_shrinks_and_a_linked_clone_says_why_it_cannot() {
        let disk = |gb: u64, is_delta| Some(FirstDisk { capacity_kb: gb * KB_PER_GB, is_delta });
        assert_eq!(grow_disk(disk(20, false), 50), Ok(Some(50 * KB_PER_GB)));
        assert_eq!(grow_disk(disk(50, false), 50), Ok(None));
        assert_eq!(grow_disk(disk(80, true), 50), Ok(None), "large enough already");
        assert_eq!(
            grow_disk(disk(20, true), 50),
            Err(DiskError::LinkedClone { have_gb: 20, wanted_gb: 50 })
        );
        assert_eq!(grow_disk(None, 50), Err(DiskError::NoDisk { wanted_gb: 50 }));
    }
}
