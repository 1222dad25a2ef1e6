//! Shares of the host for one VM, by control group: a clone has the size of its snapshot, whatever its pod asks for.

use std::io;
use std::path::{Path, PathBuf};

use crate::quantity::Quantity;

/// Where a host of today has its control groups.
const ROOT: &str = "/sys/fs/cgroup";
/// The length of the time in which a quota counts.
const PERIOD_MICROS: u64 = 100_000;
/// What the kernel accepts at least.
const SHORTEST_QUOTA: u64 = 1_000;

/// What a pod asks for. What is `None` is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shares {
    pub cpu_request: Option<Quantity>,
    pub cpu_limit: Option<Quantity>,
    /// Bytes.
    pub memory_request: Option<u64>,
    /// Bytes.
    pub memory_limit: Option<u64>,
}

impl Shares {
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// File and content, in the order in which they are written. What is not asked for is set back to the kernel's default.
    fn files(&self) -> [(&'static str, String); 4] {
        let or = |value: Option<u64>, default: &str| {
            value.map_or_else(|| default.to_owned(), |value| value.to_string())
        };
        let quota = self
            .cpu_limit
            .map(|limit| limit.milli().saturating_mul(PERIOD_MICROS / 1000).max(SHORTEST_QUOTA));
        [
            ("cpu.weight", or(self.cpu_request.map(weight), "100")),
            ("cpu.max", format!("{} {PERIOD_MICROS}", or(quota, "max"))),
            ("memory.low", or(self.memory_request, "0")),
            // Beyond it the VM is slowed down and what it does not use is taken back. A hard limit would kill it.
            ("memory.high", or(self.memory_limit, "max")),
        ]
    }
}

/// Kubernetes' shares, 1024 for a processor, on the kernel's scale from 1 to 10000.
fn weight(request: Quantity) -> u64 {
    let shares = (request.milli().saturating_mul(1024) / 1000).clamp(2, 262_144);
    1 + (shares - 2) * 9999 / 262_142
}

/// The control groups of all VMs, each below one parent.
#[derive(Debug, Clone)]
pub struct Cgroups {
    root: PathBuf,
    parent: String,
}

impl Cgroups {
    /// `None` if this host has no control groups of version 2. Nothing is made before it is needed.
    pub fn find(parent: &str) -> Option<Self> {
        Self::below(Path::new(ROOT), parent)
    }

    fn below(root: &Path, parent: &str) -> Option<Self> {
        let is_there = root.join("cgroup.controllers").exists();
        is_there.then(|| Self { root: root.to_owned(), parent: parent.to_owned() })
    }

    fn folder(&self, vm: &str) -> PathBuf {
        self.root.join(&self.parent).join(format!("vm-{vm}.scope"))
    }

    /// Puts the VM's process where its pod's shares hold. May be repeated.
    pub fn place(&self, vm: &str, pid: u32, shares: &Shares) -> io::Result<()> {
        let (parent, folder) = (self.root.join(&self.parent), self.folder(vm));
        std::fs::create_dir_all(&parent)?;
        // Children share processors and memory only where their parents say so.
        for above in [&self.root, &parent] {
            std::fs::write(above.join("cgroup.subtree_control"), "+cpu +memory")?;
        }
        std::fs::create_dir_all(&folder)?;
        for (file, content) in shares.files() {
            std::fs::write(folder.join(file), content)?;
        }
        std::fs::write(folder.join("cgroup.procs"), pid.to_string())
    }

    /// After the VM is gone. One that is still busy is left to the next time.
    pub fn remove(&self, vm: &str) {
        // The kernel's files in it go with it.
        let _ = std::fs::remove_dir(self.folder(vm));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_limits_become_the_kernels_numbers() {
        let quantity = |text: &str| Some(text.parse::<Quantity>().unwrap());
        let shares = Shares {
            cpu_request: quantity("500m"),
            cpu_limit: quantity("1500m"),
            memory_request: Some(1 << 30),
            memory_limit: Some(2 << 30),
        };
        let files: Vec<String> =
            shares.files().iter().map(|(_, content)| content.clone()).collect();
        assert_eq!(files, ["20", "150000 100000", "1073741824", "2147483648"]);
        let nothing: Vec<String> =
            Shares::default().files().iter().map(|(_, content)| content.clone()).collect();
        assert_eq!(nothing, ["100", "max 100000", "0", "max"]);
        for (request, wanted) in [("1m", 1), ("1", 39), ("2", 79), ("500", 10_000)] {
            assert_eq!(weight(request.parse().unwrap()), wanted, "{request}");
        }
        let tiny = Shares { cpu_limit: quantity("1m"), ..Shares::default() };
        assert_eq!(tiny.files()[1].1, "1000 100000", "what the kernel accepts at least");
    }

    #[test]
    fn a_vm_is_placed_and_its_group_goes_with_it() {
        let root = std::env::temp_dir().join(format!("roost-cgroup-{}", std::process::id()));
        std::fs::create_dir_all(&root).unwrap();
        assert!(Cgroups::below(&root, "cocoon.slice").is_none(), "a host without control groups");
        std::fs::write(root.join("cgroup.controllers"), "cpu memory").unwrap();
        let groups = Cgroups::below(&root, "cocoon.slice").unwrap();
        let shares = Shares { memory_limit: Some(7), ..Shares::default() };
        groups.place("VM1", 4242, &shares).unwrap();
        let read = |file: &str| {
            std::fs::read_to_string(root.join("cocoon.slice/vm-VM1.scope").join(file)).unwrap()
        };
        assert_eq!((read("cgroup.procs").as_str(), read("memory.high").as_str()), ("4242", "7"));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
