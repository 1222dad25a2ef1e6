//! What this machine has, and what of it pods may use.

use std::collections::BTreeMap;
use std::path::Path;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Amount;

/// Bytes and whole processors of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resources {
    pub(crate) cpus: u64,
    pub(crate) memory: u64,
    pub(crate) storage: u64,
    pub(crate) storage_free: u64,
    pub(crate) huge_pages: u64,
    pub(crate) pods: u64,
}

/// What the node offers instead of what the machine has, each for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResourceOverrides {
    pub cpus: Option<u64>,
    pub memory: Option<u64>,
    pub storage: Option<u64>,
    pub huge_pages: Option<u64>,
}

impl ResourceOverrides {
    /// What pods may be given. Pressure is told by what the machine has, whatever is said here.
    pub(crate) fn over(&self, detected: Resources) -> Resources {
        Resources {
            cpus: self.cpus.unwrap_or(detected.cpus),
            memory: self.memory.unwrap_or(detected.memory),
            storage: self.storage.unwrap_or(detected.storage),
            storage_free: self.storage.unwrap_or(detected.storage_free),
            huge_pages: self.huge_pages.unwrap_or(detected.huge_pages),
            pods: detected.pods,
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("finding out {what} of this machine")]
pub(crate) struct ResourceError {
    what: &'static str,
    source: std::io::Error,
}

impl Resources {
    /// As the machine has it. `root`: the folder that VMs' disks are in.
    pub(crate) fn detect(root: &Path, pods: u64) -> Result<Self, ResourceError> {
        let error = |what| move |source| ResourceError { what, source };
        let cpus =
            std::thread::available_parallelism().map_err(error("the processors"))?.get() as u64;
        let meminfo = std::fs::read_to_string("/proc/meminfo").map_err(error("the memory"))?;
        let disk = rustix::fs::statvfs(root).map_err(|errno| error("the storage")(errno.into()))?;
        let kilobytes = |name: &str| field(&meminfo, name).unwrap_or_default() * 1024;
        Ok(Self {
            cpus,
            memory: kilobytes("MemTotal:"),
            storage: disk.f_blocks * disk.f_frsize,
            storage_free: disk.f_bavail * disk.f_frsize,
            huge_pages: field(&meminfo, "HugePages_Total:").unwrap_or_default()
                * kilobytes("Hugepagesize:"),
            pods,
        })
    }

    pub(crate) fn capacity(&self) -> BTreeMap<String, Amount> {
        self.amounts(self.cpus, self.memory, self.storage, self.huge_pages)
    }

    /// Less what is kept for the host itself, rounded down.
    pub(crate) fn allocatable(&self, reserve_percent: u64) -> BTreeMap<String, Amount> {
        let left = |value: u64| {
            let kept = u128::from(value) * u128::from(100 - reserve_percent.min(100)) / 100;
            u64::try_from(kept).unwrap_or(u64::MAX)
        };
        self.amounts(
            left(self.cpus),
            left(self.memory),
            left(self.storage_free),
            left(self.huge_pages),
        )
    }

    fn amounts(
        &self,
        cpus: u64,
        memory: u64,
        storage: u64,
        huge_pages: u64,
    ) -> BTreeMap<String, Amount> {
        let amount = |value: u64| Amount(value.to_string());
        let mut all = BTreeMap::from([
            ("cpu".to_owned(), amount(cpus)),
            ("memory".to_owned(), amount(memory)),
            ("ephemeral-storage".to_owned(), amount(storage)),
            ("pods".to_owned(), amount(self.pods)),
        ]);
        if self.huge_pages > 0 {
            all.insert("hugepages-2Mi".to_owned(), amount(huge_pages));
        }
        all
    }
}

fn field(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_rounded_down() {
        let host = Resources {
            cpus: 32,
            memory: 128 << 30,
            storage: 1000,
            storage_free: 100,
            huge_pages: 0,
            pods: 256,
        };
        let left = host.allocatable(20);
        assert_eq!(left["cpu"].0, "25");
        assert_eq!(left["memory"].0, ((128_u64 << 30) * 4 / 5).to_string());
        assert_eq!(left["ephemeral-storage"].0, "80", "of what is free, not of all");
        assert_eq!(left["pods"].0, "256");
        assert!(!left.contains_key("hugepages-2Mi"));
        assert_eq!(host.allocatable(0)["cpu"].0, "32");
        assert_eq!(host.allocatable(100)["cpu"].0, "0");
    }

    /// One override froze everything else at its value of the start, the free disk among it.
    #[test]
    fn an_override_is_about_itself_alone() {
        let detected = |free: u64| Resources {
            cpus: 4,
            memory: 1000,
            storage: 10_000,
            storage_free: free,
            huge_pages: 7,
            pods: 10,
        };
        let more_cpus = ResourceOverrides { cpus: Some(32), ..ResourceOverrides::default() };
        for free in [9000, 100] {
            assert_eq!(more_cpus.over(detected(free)), Resources { cpus: 32, ..detected(free) });
        }
        let disk = ResourceOverrides { storage: Some(500), ..ResourceOverrides::default() };
        let offered = disk.over(detected(100));
        assert_eq!((offered.storage, offered.storage_free, offered.memory), (500, 500, 1000));
    }

    #[test]
    fn this_machine_has_something() {
        let here = Resources::detect(Path::new("/"), 10).unwrap();
        assert!(here.cpus > 0 && here.memory > 0 && here.storage > 0);
    }
}
