use std::fmt;
use std::fs;
use std::process::Output;

use serde_json::Value;

use crate::wire::{CdsSim, Site, VcenterSim, roost};

const VSPHERE: &str = r#"
[[hatchery.vsphere.networks]]
iprange = "10.77.0.0/28"
gateway = "10.77.0.1"
subnetMask = "255.255.255.0"

[[hatchery.vsphere.flavors]]
name = "small"
cpus = 1
memoryMB = 1024

[[hatchery.vsphere.workerProvisioning]]
modelVMWare = "debian12"
number = 2
"#;

/// Both simulators and a file for them.
pub(crate) struct Scene {
    pub(crate) site: Site,
    pub(crate) vcenter: VcenterSim,
    pub(crate) cds: CdsSim,
}

impl Scene {
    /// `name` is the test's own.
    pub(crate) fn new(name: &str) -> Self {
        Self::with(name, &[])
    }

    /// `args` are of the embedded vCenter.
    pub(crate) fn with(name: &str, args: &[&str]) -> Self {
        let site = Site::new(name);
        let vcenter = VcenterSim::start(&site, &[&["--pace", "instant"], args].concat());
        let cds = CdsSim::start(&site, &[]);
        let counts = "maxWorker = 5\nmaxConcurrentProvisioning = 5";
        site.write_config(&vcenter, &cds, VSPHERE, counts);
        Self { site, vcenter, cds }
    }

    pub(crate) fn write(&self, text: &str) {
        fs::write(self.site.file("roost.toml"), text).unwrap();
    }

    /// Changes the file.
    pub(crate) fn rewrite(&self, from: &str, to: &str) {
        let text = fs::read_to_string(self.site.file("roost.toml")).unwrap();
        assert!(text.contains(from), "no {from:?} in\n{text}");
        self.write(&text.replace(from, to));
    }

    pub(crate) fn doctor(&self, args: &[&str]) -> Output {
        doctor(&self.site, args)
    }

    pub(crate) fn examine(&self, args: &[&str]) -> Examination {
        Examination::of(&self.doctor(&[&["-c", "roost.toml", "--json"], args].concat()))
    }
}

pub(crate) fn doctor(site: &Site, args: &[&str]) -> Output {
    let mut command = roost(&["doctor"]);
    for name in ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy"]
    {
        command.env_remove(name);
    }
    command.args(args).current_dir(site.folder()).output().unwrap()
}

/// What the doctor found.
pub(crate) struct Examination {
    pub(crate) code: Option<i32>,
    report: Value,
}

impl Examination {
    pub(crate) fn of(output: &Output) -> Self {
        let report = serde_json::from_slice(&output.stdout);
        let words = || String::from_utf8_lossy(&output.stderr).into_owned();
        let found = Self {
            code: output.status.code(),
            report: report.unwrap_or_else(|error| panic!("{error}: {}", words())),
        };
        let is_ok = found.count("fail") == 0;
        assert_eq!(found.report["ok"], is_ok, "{found}");
        assert_eq!(found.code, Some(i32::from(!is_ok)), "{found}");
        found
    }

    fn findings(&self) -> impl Iterator<Item = &Value> {
        let sections = self.report["sections"].as_array().unwrap().iter();
        sections.flat_map(|section| section["findings"].as_array().unwrap())
    }

    pub(crate) fn count(&self, verdict: &str) -> usize {
        self.findings().filter(|finding| finding["verdict"] == verdict).count()
    }

    /// There is such a line, with these words in it, its details or its advice. Returns all of it.
    pub(crate) fn expect(&self, verdict: &str, check: &str, words: &str) -> String {
        let is_meant =
            |finding: &&Value| finding["verdict"] == verdict && finding["check"] == check;
        let mut lines = self.findings().filter(is_meant).map(ToString::to_string);
        let fits = |line: &String| line.contains(&words.replace('"', "\\\""));
        lines
            .find(fits)
            .unwrap_or_else(|| panic!("no {verdict} of {check} with {words:?} in {self}"))
    }

    /// Exactly these checks failed.
    pub(crate) fn expect_failures(&self, checks: &[&str]) {
        let failed = self.findings().filter(|finding| finding["verdict"] == "fail");
        let failed: Vec<&str> = failed.map(|finding| finding["check"].as_str().unwrap()).collect();
        assert_eq!(failed, checks, "{self}");
    }
}

impl fmt::Display for Examination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit {:?}\n{:#}", self.code, self.report)
    }
}
