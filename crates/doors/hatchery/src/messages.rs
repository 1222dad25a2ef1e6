//! What the people who wait for a V2 job read in its log, word for word as CDS writes it.

use std::fmt::Display;
use std::time::Duration;

use roost_cds::GoDuration;

use crate::flavor::Flavor;

pub fn starting(hatchery: &str, worker: &str, model: &str) -> String {
    format!("Hatchery \"{hatchery}\" is starting the worker \"{worker}\" from model \"{model}\"")
}

/// `None` for the template's size. A flavor that leaves CPUs or memory to the template says 0, as CDS does.
pub fn size(worker: &str, flavor: Option<&Flavor>) -> String {
    let Some(Flavor { name, cpus, memory_mb, disk_gb }) = flavor else {
        return format!("Worker \"{worker}\" will use template resources (no flavor)");
    };
    let disk = disk_gb.map(|gb| format!(", {gb} GB disk")).unwrap_or_default();
    let (cpus, memory_mb) = (cpus.unwrap_or(0), memory_mb.unwrap_or(0));
    format!(
        "Worker \"{worker}\" will use flavor \"{name}\" ({cpus} vCPUs, {memory_mb} MB RAM{disk})"
    )
}

pub fn failed(
    hatchery: &str,
    worker: &str,
    model: &str,
    after: Duration,
    error: &dyn Display,
) -> String {
    let after = GoDuration(after);
    format!(
        "Error while Hatchery {hatchery} spawns worker {worker} with model {model} after {after}, err: {error}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_read_as_cds_writes_them() {
        assert_eq!(
            starting("h1", "keen-bohr", "debian12"),
            r#"Hatchery "h1" is starting the worker "keen-bohr" from model "debian12""#
        );
        let mut flavor =
            Flavor { name: "large".into(), cpus: Some(8), memory_mb: Some(16384), disk_gb: None };
        let large = r#"Worker "w" will use flavor "large" (8 vCPUs, 16384 MB RAM)"#;
        assert_eq!(size("w", Some(&flavor)), large);
        flavor.disk_gb = Some(60);
        assert_eq!(size("w", Some(&flavor)), large.replace("RAM)", "RAM, 60 GB disk)"));
        assert_eq!(size("w", None), r#"Worker "w" will use template resources (no flavor)"#);
        assert_eq!(
            failed("h1", "w", "m", Duration::from_secs(65), &"no address"),
            "Error while Hatchery h1 spawns worker w with model m after 1m5s, err: no address"
        );
    }
}
