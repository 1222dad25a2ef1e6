use std::path::PathBuf;

use k8s_openapi::api::core::v1::Pod;
use roost_microvm::{Backend, Quantity, Shares};

use super::key;
use super::names::Role;

/// What a pod asks of a VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VmSpec {
    pub(crate) name: String,
    pub(crate) image: String,
    pub(crate) mode: Mode,
    pub(crate) os: Os,
    pub(crate) storage: Option<String>,
    pub(crate) network: Option<String>,
    pub(crate) snapshot_policy: SnapshotPolicy,
    pub(crate) managed: bool,
    pub(crate) force_pull: bool,
    pub(crate) fork_from: Option<String>,
    pub(crate) clone_from_dir: Option<PathBuf>,
    pub(crate) backend: Backend,
    pub(crate) no_direct_io: bool,
    pub(crate) probe_port: Option<u16>,
    pub(crate) hibernate: bool,
    pub(crate) restore_from_hibernate: bool,
    pub(crate) keep_snapshot: bool,
    /// Of VMs that somebody else runs.
    pub(crate) given_id: Option<String>,
    pub(crate) given_ip: Option<String>,
    /// Where its screen is. Shown, never used.
    pub(crate) vnc_port: Option<u16>,
    pub(crate) role: Role,
    pub(crate) cpus: Option<u64>,
    pub(crate) memory: Option<u64>,
    /// What the VM gets of the host.
    pub(crate) shares: Shares,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Clone,
    Run,
    Static,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Os {
    Linux,
    Windows,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SnapshotPolicy {
    Always,
    MainOnly,
    Never,
}

impl SnapshotPolicy {
    /// Whether a VM of this role is saved before it is deleted.
    pub(crate) fn saves(self, role: Role) -> bool {
        match self {
            Self::Always => true,
            Self::MainOnly => role == Role::Main,
            Self::Never => false,
        }
    }
}

/// What is wrong with a pod's annotations. The first three say what the operator's users know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SpecError {
    #[error("pod {pod} missing vm.cocoonstack.io/name annotation")]
    NoName { pod: String },
    #[error(
        "vm.cocoonstack.io/name {name:?} is no name of a VM: up to 63 letters, digits, dots, dashes and underscores"
    )]
    BadName { name: String },
    #[error("vm.cocoonstack.io/clone-from-dir {path:?} must be an absolute path")]
    RelativeDir { path: String },
    #[error("vm.cocoonstack.io/clone-from-dir {path:?} must be a canonical path")]
    OddDir { path: String },
    #[error("vm.cocoonstack.io/clone-from-dir is incompatible with mode=run")]
    DirAndRun,
    #[error("vm.cocoonstack.io/clone-from-dir is incompatible with fork-from {source_vm:?}")]
    DirAndFork { source_vm: String },
    #[error("vm.cocoonstack.io/probe-port {text:?} is no port")]
    BadPort { text: String },
}

impl VmSpec {
    pub(crate) fn of(pod: &Pod) -> Result<Self, SpecError> {
        let (spec, problem) = Self::read(pod);
        problem.map_or(Ok(spec), Err)
    }

    /// What can be read, and the first thing that cannot. A VM that runs already goes on by what is readable.
    pub(crate) fn read(pod: &Pod) -> (Self, Option<SpecError>) {
        let mut problem = None;
        let mut note = |error: SpecError| {
            problem.get_or_insert(error);
        };
        let empty = std::collections::BTreeMap::new();
        let annotations = pod.metadata.annotations.as_ref().unwrap_or(&empty);
        let text = |key: &str| {
            annotations.get(key).map(|value| value.trim()).filter(|value| !value.is_empty())
        };
        let owned = |key: &str| text(key).map(str::to_owned);
        let is_true = |key: &str| annotations.get(key).is_some_and(|value| value == "true");
        let name = text(key::VM_NAME).map(|name| fill_in(name, pod)).unwrap_or_default();
        if name.is_empty() {
            note(SpecError::NoName { pod: key_of(pod) });
        } else if !is_name(&name) {
            note(SpecError::BadName { name: name.clone() });
        }
        let mode = match text(key::MODE).map(str::to_ascii_lowercase).as_deref() {
            Some("run") => Mode::Run,
            Some("static") => Mode::Static,
            _ => Mode::Clone,
        };
        let os = match text(key::OS) {
            Some("windows") => Os::Windows,
            None | Some("linux") => Os::Linux,
            Some(_) => Os::Other,
        };
        let snapshot_policy = match text(key::SNAPSHOT_POLICY) {
            Some("main-only") => SnapshotPolicy::MainOnly,
            Some("never") => SnapshotPolicy::Never,
            _ => SnapshotPolicy::Always,
        };
        let fork_from = owned(key::FORK_FROM);
        let clone_from_dir = text(key::CLONE_FROM_DIR).map(folder).transpose();
        let clone_from_dir = clone_from_dir.unwrap_or_else(|error| {
            note(error);
            None
        });
        if clone_from_dir.is_some() {
            if mode == Mode::Run {
                note(SpecError::DirAndRun);
            }
            if let Some(source_vm) = fork_from.clone() {
                note(SpecError::DirAndFork { source_vm });
            }
        }
        let probe_port = text(key::PROBE_PORT).map(port).transpose().unwrap_or_else(|error| {
            note(error);
            None
        });
        let storage = text(key::STORAGE).map(|size| {
            size.parse::<Quantity>()
                .map_or_else(|_| size.to_owned(), |size| size.value().to_string())
        });
        let resource = |name: &str| resource(pod, name);
        let spec = Self {
            image: owned(key::IMAGE).unwrap_or_default(),
            mode,
            os,
            storage,
            network: owned(key::NETWORK),
            snapshot_policy,
            managed: is_true(key::MANAGED),
            force_pull: is_true(key::FORCE_PULL),
            fork_from,
            clone_from_dir,
            backend: Backend::new(text(key::BACKEND).unwrap_or_default()),
            no_direct_io: is_true(key::NO_DIRECT_IO),
            probe_port,
            hibernate: is_true(key::HIBERNATE),
            restore_from_hibernate: is_true(key::RESTORE_FROM_HIBERNATE),
            keep_snapshot: is_true(key::KEEP_SNAPSHOT),
            given_id: owned(key::VM_ID),
            given_ip: owned(key::VM_IP),
            vnc_port: text(key::VNC_PORT).and_then(|text| port(text).ok()),
            role: Role::of(pod, &name),
            cpus: resource("cpu").map(Quantity::value),
            memory: resource("memory").map(Quantity::value),
            shares: shares(pod),
            name,
        };
        (spec, problem)
    }

    /// Whether the annotations make a copy of another guest. A wake makes one too, whatever they say.
    pub(crate) fn is_copy(&self) -> bool {
        self.mode != Mode::Run
            || self.restore_from_hibernate
            || self.fork_from.is_some()
            || self.clone_from_dir.is_some()
    }
}

/// The VM that a pod speaks of, by id and by name, however wrong its other annotations are.
pub(crate) fn named_vm(pod: &Pod) -> Vec<String> {
    let annotations = pod.metadata.annotations.as_ref();
    let text = |key: &str| Some(annotations?.get(key)?.trim()).filter(|text| !text.is_empty());
    let name = text(key::VM_NAME).map(|name| fill_in(name, pod));
    text(key::VM_ID).map(str::to_owned).into_iter().chain(name).collect()
}

fn key_of(pod: &Pod) -> String {
    let meta = &pod.metadata;
    format!(
        "{}/{}",
        meta.namespace.as_deref().unwrap_or_default(),
        meta.name.as_deref().unwrap_or_default()
    )
}

/// Pods of one template have one annotation, and each needs a VM of its own name.
fn fill_in(name: &str, pod: &Pod) -> String {
    let of = |part: &Option<String>| part.clone().unwrap_or_default();
    name.replace("$(POD_NAMESPACE)", &of(&pod.metadata.namespace))
        .replace("$(POD_NAME)", &of(&pod.metadata.name))
}

fn is_name(name: &str) -> bool {
    name.len() <= 63
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || ['.', '_', '-'].contains(&c))
}

/// An absolute path that is its own cleaned form: nothing in it climbs out of where it seems to be.
fn folder(text: &str) -> Result<PathBuf, SpecError> {
    let path = || text.to_owned();
    let Some(rest) = text.strip_prefix('/') else {
        return Err(SpecError::RelativeDir { path: path() });
    };
    let is_odd = !rest.is_empty()
        && rest.split('/').any(|part| part.is_empty() || part == "." || part == "..");
    if is_odd { Err(SpecError::OddDir { path: path() }) } else { Ok(text.into()) }
}

fn port(text: &str) -> Result<u16, SpecError> {
    text.parse()
        .ok()
        .filter(|port| *port > 0)
        .ok_or_else(|| SpecError::BadPort { text: text.to_owned() })
}

/// What the first container requests, else its limit; zero is nothing.
fn resource(pod: &Pod, name: &str) -> Option<Quantity> {
    let (request, limit) = amounts(pod, name);
    request.or(limit)
}

/// Request and limit of the first container.
fn amounts(pod: &Pod, name: &str) -> (Option<Quantity>, Option<Quantity>) {
    let container = pod.spec.as_ref().and_then(|spec| spec.containers.first());
    let Some(resources) = container.and_then(|container| container.resources.as_ref()) else {
        return (None, None);
    };
    let of = |amounts: &Option<
        std::collections::BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>,
    >| {
        amounts.as_ref()?.get(name)?.0.parse::<Quantity>().ok().filter(|amount| !amount.is_zero())
    };
    (of(&resources.requests), of(&resources.limits))
}

fn shares(pod: &Pod) -> Shares {
    let ((cpu_request, cpu_limit), memory) = (amounts(pod, "cpu"), amounts(pod, "memory"));
    Shares {
        cpu_request,
        cpu_limit,
        memory_request: memory.0.map(Quantity::value),
        memory_limit: memory.1.map(Quantity::value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pod;

    #[test]
    fn annotations_become_a_spec_with_their_defaults() {
        let spec = VmSpec::of(&pod("a", &[(key::VM_NAME, "vk-ns-a")])).unwrap();
        assert_eq!(
            (spec.mode, spec.os, spec.snapshot_policy),
            (Mode::Clone, Os::Linux, SnapshotPolicy::Always)
        );
        assert!(!spec.managed && !spec.hibernate && spec.probe_port.is_none());
        let spec = VmSpec::of(&pod(
            "a",
            &[
                (key::VM_NAME, "x"),
                (key::MODE, "Run"),
                (key::MANAGED, "true"),
                (key::HIBERNATE, "True"),
                (key::STORAGE, "20Gi"),
                (key::PROBE_PORT, "22"),
            ],
        ))
        .unwrap();
        assert_eq!(spec.mode, Mode::Run, "modes are read in any case");
        assert!(spec.managed);
        assert!(!spec.hibernate, "only the word `true` is true");
        assert_eq!(spec.storage.as_deref(), Some("21474836480"));
        assert_eq!(spec.probe_port, Some(22));
    }

    #[test]
    fn pods_of_one_template_get_a_name_each() {
        let name = |text| VmSpec::of(&pod("web-7d4-x2", &[(key::VM_NAME, text)])).map(|it| it.name);
        assert_eq!(name("vk-$(POD_NAMESPACE)-$(POD_NAME)").as_deref(), Ok("vk-ns-web-7d4-x2"));
        assert!(matches!(name("vk-$(NODE)"), Err(SpecError::BadName { .. })));
    }

    #[test]
    fn wrong_annotations_are_named() {
        for (case, annotations) in [
            ("no name", vec![]),
            ("a bad name", vec![(key::VM_NAME, "-x")]),
            ("a relative folder", vec![(key::VM_NAME, "x"), (key::CLONE_FROM_DIR, "data")]),
            (
                "a folder that climbs",
                vec![(key::VM_NAME, "x"), (key::CLONE_FROM_DIR, "/data/../etc")],
            ),
            (
                "a folder with mode run",
                vec![(key::VM_NAME, "x"), (key::CLONE_FROM_DIR, "/data"), (key::MODE, "run")],
            ),
            (
                "a folder with a fork",
                vec![(key::VM_NAME, "x"), (key::CLONE_FROM_DIR, "/data"), (key::FORK_FROM, "y")],
            ),
            ("a port that is none", vec![(key::VM_NAME, "x"), (key::PROBE_PORT, "0")]),
        ] {
            assert!(VmSpec::of(&pod("a", &annotations)).is_err(), "{case}");
        }
    }

    #[test]
    fn policies_save_by_role() {
        use SnapshotPolicy::{Always, MainOnly, Never};
        for (policy, main, sub, other) in [
            (Always, true, true, true),
            (MainOnly, true, false, false),
            (Never, false, false, false),
        ] {
            assert_eq!(
                [Role::Main, Role::Sub, Role::Other].map(|role| policy.saves(role)),
                [main, sub, other]
            );
        }
    }
}
