//! The model of a host: what VMs, snapshots and images there are, and what `cocoon` says about wrong requests.

use std::collections::BTreeMap;

use jiff::Timestamp;
use roost_microvm::{
    Backend, CloneFrom, CloneOptions, ImageRecord, Nic, RunOptions, SnapshotRecord, StaticAddress,
    VmConfig, VmRecord, VmState,
};
use serde::{Deserialize, Serialize};

const GIB: u64 = 1 << 30;
const SMALLEST_MEMORY: u64 = 512 << 20;
const SMALLEST_STORAGE: u64 = 10 * GIB;

/// What `cocoon` prints after `Error: `.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

fn refuse<T>(text: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal(text.into()))
}

/// A simulated host. Records are those that the command prints.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Host {
    vms: BTreeMap<String, VmRecord>,
    snapshots: BTreeMap<String, SnapshotRecord>,
    images: BTreeMap<String, ImageRecord>,
    /// What each guest remembers, by VM id: it travels with snapshots, so that a test sees whether memory was kept.
    memory: BTreeMap<String, String>,
    /// The same of each snapshot, by its name.
    kept: BTreeMap<String, String>,
    made: u64,
    /// What every card of a new VM has, instead of an address by DHCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    static_address: Option<StaticAddress>,
}

impl Host {
    /// Cards of VMs that are made from now on.
    pub fn cards_are_static(&mut self, address: Option<StaticAddress>) {
        self.static_address = address;
    }

    pub fn vms(&self) -> impl Iterator<Item = &VmRecord> {
        self.vms.values()
    }

    pub fn snapshots(&self) -> impl Iterator<Item = &SnapshotRecord> {
        self.snapshots.values()
    }

    /// By id, name, or an id's beginning of three or more characters that only one has.
    pub fn find(&self, reference: &str) -> Option<&VmRecord> {
        let exact =
            self.vms.get(reference).or_else(|| self.vms.values().find(|vm| vm.name() == reference));
        exact.or_else(|| {
            let mut found =
                self.vms.values().filter(|vm| reference.len() >= 3 && vm.id.starts_with(reference));
            found.next().filter(|_| found.next().is_none())
        })
    }

    pub fn inspect(&self, reference: &str) -> Result<VmRecord, Refusal> {
        self.find(reference)
            .cloned()
            .map_or_else(|| refuse(format!("inspect: vm {reference}: VM not found")), Ok)
    }

    fn id_of(&self, reference: &str) -> Result<String, Refusal> {
        self.find(reference)
            .map(|vm| vm.id.clone())
            .map_or_else(|| refuse(format!("vm {reference}: VM not found")), Ok)
    }

    pub fn pull_image(&mut self, image: &str, now: Timestamp) -> Result<(), Refusal> {
        if image.is_empty() || image.contains("missing") {
            return refuse(format!("pull {image}: manifest unknown"));
        }
        let is_url = image.starts_with("http://") || image.starts_with("https://");
        let kind = if is_url { "cloudimg" } else { "oci" };
        self.put_image(image, kind, now);
        Ok(())
    }

    pub fn put_image(&mut self, name: &str, kind: &str, now: Timestamp) {
        let record = ImageRecord {
            id: format!("sha256:{:064x}", name.len()),
            name: name.to_owned(),
            kind: kind.to_owned(),
            size: GIB,
            created_at: Some(now),
        };
        self.images.entry(name.to_owned()).or_insert(record);
    }

    pub fn image(&self, name: &str) -> Result<ImageRecord, Refusal> {
        self.images
            .get(name)
            .cloned()
            .map_or_else(|| refuse(format!("image \"{name}\": not found in any backend")), Ok)
    }

    pub fn images(&self) -> impl Iterator<Item = &ImageRecord> {
        self.images.values()
    }

    pub fn run(&mut self, options: &RunOptions, now: Timestamp) -> Result<VmRecord, Refusal> {
        check_name(&options.name)?;
        if options.windows && options.backend.is_firecracker() {
            return refuse("--fc and --windows are mutually exclusive");
        }
        let storage = match options.storage.as_deref() {
            Some(text) => size(text)?,
            None => SMALLEST_STORAGE,
        };
        let (cpu, memory) = (options.cpus.unwrap_or(2), options.memory.unwrap_or(GIB));
        if cpu < 1 || memory < SMALLEST_MEMORY || storage < SMALLEST_STORAGE {
            return refuse("create VM: cpu, memory or storage below the minimum");
        }
        let Some(image) = self.images.get(&options.image) else {
            return refuse(format!(
                "image \"{0}\" not resolved: oci: not found; cloudimg: not found",
                options.image
            ));
        };
        let config = VmConfig {
            name: options.name.clone(),
            cpu: u32::try_from(cpu).unwrap_or(u32::MAX),
            memory,
            storage,
            image: options.image.clone(),
            image_digest: image.id.clone(),
            image_type: image.kind.clone(),
            network: options.network.clone().unwrap_or_default(),
            windows: options.windows,
            no_direct_io: options.no_direct_io,
        };
        self.create("create VM", config, backend(&options.backend), 1, now)
    }

    pub fn clone_vm(
        &mut self,
        options: &CloneOptions,
        now: Timestamp,
    ) -> Result<VmRecord, Refusal> {
        check_name(&options.name)?;
        let snapshot = match &options.from {
            CloneFrom::Snapshot(name) => self.snapshots.get(name).cloned().map_or_else(
                || refuse(format!("inspect snapshot {name}: snapshot not found")),
                Ok,
            )?,
            CloneFrom::Folder(path) => SnapshotRecord {
                cpu: 2,
                memory: GIB,
                storage: SMALLEST_STORAGE,
                image: path.display().to_string(),
                nics: 1,
                hypervisor: backend(&options.backend),
                ..SnapshotRecord::default()
            },
        };
        let config = VmConfig {
            name: options.name.clone(),
            cpu: snapshot.cpu,
            memory: snapshot.memory,
            storage: snapshot.storage,
            image: snapshot.image.clone(),
            image_digest: snapshot.image_digest.clone(),
            image_type: snapshot.image_type.clone(),
            network: options.network.clone().unwrap_or(snapshot.network.clone()),
            windows: snapshot.windows,
            no_direct_io: options.no_direct_io,
        };
        let nics = options.nics.unwrap_or(snapshot.nics);
        let kept = self.kept.get(&snapshot.name).cloned();
        let vm = self.create("clone VM", config, snapshot.hypervisor, nics, now)?;
        if let Some(kept) = kept {
            self.memory.insert(vm.id.clone(), kept);
        }
        Ok(vm)
    }

    fn create(
        &mut self,
        verb: &str,
        config: VmConfig,
        hypervisor: Backend,
        nics: u32,
        now: Timestamp,
    ) -> Result<VmRecord, Refusal> {
        if let Some(other) = self.vms.values().find(|vm| vm.name() == config.name) {
            let (name, id) = (&config.name, &other.id);
            return refuse(format!(
                "{verb}: reserve VM record: vm name \"{name}\" already exists (id: {id})"
            ));
        }
        self.made += 1;
        let id = id(self.made);
        let nic = |index: u32| Nic {
            tap: format!("tap{}-{index}", &id[..8]),
            mac: mac(self.made, index),
            network: self.static_address.clone(),
            ..Nic::default()
        };
        let vm = VmRecord {
            hypervisor,
            state: VmState::Running,
            config,
            pid: 0,
            socket_path: None,
            network_configs: (0..nics).map(nic).collect(),
            created_at: Some(now),
            started_at: Some(now),
            id: id.clone(),
        };
        self.vms.insert(id, vm.clone());
        Ok(vm)
    }

    /// What the guest remembers. A fresh guest remembers nothing.
    pub fn memory(&self, reference: &str) -> Option<&str> {
        self.memory.get(&self.find(reference)?.id).map(String::as_str)
    }

    pub fn remember(&mut self, reference: &str, what: &str) -> Result<(), Refusal> {
        let id = self.id_of(reference)?;
        self.memory.insert(id, what.to_owned());
        Ok(())
    }

    /// What a snapshot keeps of its guest's memory.
    pub fn kept(&self, snapshot: &str) -> &str {
        self.kept.get(snapshot).map_or("", String::as_str)
    }

    pub fn set_process(&mut self, id: &str, pid: u32) {
        if let Some(vm) = self.vms.get_mut(id) {
            vm.pid = pid;
        }
    }

    /// A VM that runs already stays as it is.
    pub fn start(&mut self, reference: &str, now: Timestamp) -> Result<VmRecord, Refusal> {
        let id = self.id_of(reference)?;
        let vm = self.vms.entry(id).or_default();
        if !vm.state.is_running() {
            (vm.state, vm.started_at) = (VmState::Running, Some(now));
            self.memory.remove(&vm.id);
        }
        Ok(vm.clone())
    }

    pub fn stop(&mut self, reference: &str) -> Result<VmRecord, Refusal> {
        let id = self.id_of(reference)?;
        let vm = self.vms.entry(id).or_default();
        (vm.state, vm.pid) = (VmState::Stopped, 0);
        Ok(vm.clone())
    }

    /// The guest or its hypervisor died: nobody asked for it.
    pub fn crash(&mut self, reference: &str) -> Result<VmRecord, Refusal> {
        let id = self.id_of(reference)?;
        let vm = self.vms.entry(id).or_default();
        vm.state = VmState::Stale;
        Ok(vm.clone())
    }

    pub fn remove(&mut self, reference: &str, force: bool) -> Result<VmRecord, Refusal> {
        let id = self.id_of(reference)?;
        if !force && self.vms.get(&id).is_some_and(|vm| vm.state.is_running()) {
            return refuse(format!("vm {reference}: running (force required)"));
        }
        self.memory.remove(&id);
        self.vms.remove(&id).map_or_else(|| refuse(format!("vm {reference}: VM not found")), Ok)
    }

    pub fn resize_nics(&mut self, reference: &str, nics: u32) -> Result<(), Refusal> {
        let id = self.id_of(reference)?;
        let made = self.made;
        let vm = self.vms.entry(id).or_default();
        if vm.hypervisor.is_firecracker() {
            return refuse("backend does not support net resize");
        }
        let short = vm.id.get(..8).unwrap_or_default().to_owned();
        let nic = |index: u32| Nic {
            tap: format!("tap{short}-{index}"),
            mac: mac(made, index),
            ..Nic::default()
        };
        let kept = vm.network_configs.len();
        let wanted = usize::try_from(nics).unwrap_or_default();
        vm.network_configs.truncate(wanted);
        for index in kept..wanted {
            vm.network_configs.push(nic(u32::try_from(index).unwrap_or_default()));
        }
        Ok(())
    }

    pub fn save_snapshot(
        &mut self,
        name: &str,
        reference: &str,
        now: Timestamp,
    ) -> Result<SnapshotRecord, Refusal> {
        let vm = self
            .find(reference)
            .cloned()
            .map_or_else(|| refuse(format!("vm {reference}: VM not found")), Ok)?;
        if self.snapshots.contains_key(name) {
            return refuse(format!("snapshot name \"{name}\" already exists"));
        }
        if !vm.state.is_running() {
            return refuse(format!("snapshot save: vm {reference} is not running"));
        }
        self.made += 1;
        let record = SnapshotRecord {
            id: id(self.made),
            name: name.to_owned(),
            cpu: vm.config.cpu,
            memory: vm.config.memory,
            storage: vm.config.storage,
            image: vm.config.image.clone(),
            image_digest: vm.config.image_digest.clone(),
            image_type: vm.config.image_type.clone(),
            network: vm.config.network.clone(),
            windows: vm.config.windows,
            nics: u32::try_from(vm.network_configs.len()).unwrap_or_default(),
            hypervisor: vm.hypervisor.clone(),
            created_at: Some(now),
            ..SnapshotRecord::default()
        };
        self.snapshots.insert(name.to_owned(), record.clone());
        let memory = self.memory.get(&vm.id).cloned().unwrap_or_default();
        self.kept.insert(name.to_owned(), memory);
        Ok(record)
    }

    pub fn snapshot(&self, name: &str) -> Result<SnapshotRecord, Refusal> {
        self.snapshots.get(name).cloned().map_or_else(|| refuse("inspect: snapshot not found"), Ok)
    }

    pub fn remove_snapshot(&mut self, name: &str) -> Result<SnapshotRecord, Refusal> {
        self.kept.remove(name);
        let text = || format!("rm: resolve \"{name}\": snapshot not found");
        self.snapshots.remove(name).map_or_else(|| refuse(text()), Ok)
    }

    /// Takes the record of an archive under a new name and id.
    pub fn import_snapshot(
        &mut self,
        name: &str,
        record: SnapshotRecord,
        memory: &str,
        now: Timestamp,
    ) -> Result<SnapshotRecord, Refusal> {
        if let Some(other) = self.snapshots.get(name) {
            return refuse(format!("snapshot name \"{name}\" already in use by {}", other.id));
        }
        self.made += 1;
        let record = SnapshotRecord {
            id: id(self.made),
            name: name.to_owned(),
            created_at: Some(now),
            ..record
        };
        self.snapshots.insert(name.to_owned(), record.clone());
        self.kept.insert(name.to_owned(), memory.to_owned());
        Ok(record)
    }
}

fn backend(wanted: &Backend) -> Backend {
    if wanted.as_str().is_empty() {
        Backend::new(Backend::CLOUD_HYPERVISOR)
    } else {
        wanted.clone()
    }
}

/// 26 upper-case base32 characters. The number is mixed, so that ids do not share their beginnings.
fn id(number: u64) -> String {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut mixed =
        u128::from(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) << 64 | u128::from(number);
    let mut text = String::new();
    for _ in 0..26 {
        let letter = usize::try_from(mixed >> 123 & 31).unwrap_or_default();
        text.push(char::from(LETTERS[letter]));
        mixed = mixed.rotate_left(5);
    }
    text
}

fn mac(number: u64, nic: u32) -> String {
    let b = number.to_be_bytes();
    format!("02:00:{:02x}:{:02x}:{:02x}:{:02x}", b[5], b[6], b[7], nic & 0xff)
}

fn check_name(name: &str) -> Result<(), Refusal> {
    let is_word = |c: char| c.is_ascii_alphanumeric();
    let is_good = name.len() <= 63
        && name.starts_with(is_word)
        && name.chars().all(|c| is_word(c) || ['.', '_', '-'].contains(&c));
    if is_good { Ok(()) } else { refuse(format!("invalid VM name \"{name}\"")) }
}

/// Plain bytes, or `512M`, `2G` in binary units.
pub(crate) fn size(text: &str) -> Result<u64, Refusal> {
    let (number, unit) = match text.strip_suffix(['K', 'M', 'G', 'T']) {
        Some(number) => (number, &text[number.len()..]),
        None => (text, ""),
    };
    let shift =
        ["", "K", "M", "G", "T"].iter().position(|name| *name == unit).unwrap_or_default() * 10;
    let parsed = number.parse::<u64>().ok().and_then(|n| n.checked_mul(1 << shift));
    parsed.map_or_else(|| refuse(format!("invalid size \"{text}\"")), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Host {
        let mut host = Host::default();
        host.pull_image("img", Timestamp::UNIX_EPOCH).unwrap();
        host
    }

    fn options(name: &str) -> RunOptions {
        RunOptions { name: name.into(), image: "img".into(), ..RunOptions::default() }
    }

    #[test]
    fn names_are_unique_and_ids_resolve_by_their_beginning() {
        let mut host = host();
        let now = Timestamp::UNIX_EPOCH;
        let vm = host.run(&options("a"), now).unwrap();
        assert_eq!(vm.id.len(), 26);
        assert!(host.run(&options("a"), now).unwrap_err().0.contains("already exists (id: "));
        assert_eq!(host.find(&vm.id[..6]).unwrap().id, vm.id);
        assert!(host.find("nobody").is_none());
        let other = host.run(&options("b"), now).unwrap();
        assert_ne!(vm.mac(), other.mac());
    }

    #[test]
    fn wrong_requests_are_refused_in_cocoons_words() {
        let mut host = host();
        let now = Timestamp::UNIX_EPOCH;
        for (case, options) in [
            ("a bad name", RunOptions { name: "-x".into(), ..options("x") }),
            ("little memory", RunOptions { memory: Some(1024), ..options("x") }),
            ("no such image", RunOptions { image: "other".into(), ..options("x") }),
            (
                "both flags",
                RunOptions {
                    windows: true,
                    backend: Backend::new(Backend::FIRECRACKER),
                    ..options("x")
                },
            ),
            ("a bad size", RunOptions { storage: Some("big".into()), ..options("x") }),
        ] {
            assert!(host.run(&options, now).is_err(), "{case}");
        }
        assert!(host.remove("x", true).unwrap_err().0.contains("VM not found"));
        assert_eq!(host.snapshot("s").unwrap_err().0, "inspect: snapshot not found");
    }

    #[test]
    fn a_snapshot_becomes_a_vm() {
        let mut host = host();
        let now = Timestamp::UNIX_EPOCH;
        host.run(&RunOptions { cpus: Some(4), ..options("a") }, now).unwrap();
        host.remember("a", "count=7").unwrap();
        host.save_snapshot("s", "a", now).unwrap();
        assert!(host.save_snapshot("s", "a", now).unwrap_err().0.contains("already exists"));
        let clone = CloneOptions {
            name: "b".into(),
            from: CloneFrom::Snapshot("s".into()),
            network: None,
            backend: Backend::default(),
            no_direct_io: false,
            pull: false,
            on_demand: false,
            nics: None,
        };
        let vm = host.clone_vm(&clone, now).unwrap();
        assert_eq!((vm.config.cpu, vm.network_configs.len()), (4, 1));
        assert_eq!(host.memory("b"), Some("count=7"));
        host.resize_nics("b", 0).unwrap();
        assert!(host.inspect("b").unwrap().mac().is_none());
    }
}
