use std::fs;
use std::path::{Path, PathBuf};

use roost_cds_sim::demo_hatchery_key;

use super::{CdsSim, VcenterSim};

/// The folder of one test: logs, keys, configuration.
#[derive(Debug)]
pub(crate) struct Site {
    folder: PathBuf,
}

impl Site {
    /// `name` is the test's own; what an earlier run left there goes.
    pub(crate) fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Self { folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes the configuration of a hatchery between both simulators; see [`Self::write_config_for`].
    pub(crate) fn write_config(
        &self,
        vcenter: &VcenterSim,
        cds: &CdsSim,
        vsphere: &str,
        more: &str,
    ) -> PathBuf {
        self.write_config_for(&vcenter.toml(), cds, vsphere, more)
    }

    /// Writes the configuration of a hatchery: what `roost sim cds` printed, unchanged but for the port, which the system picks, and what the
    /// vCenter needs. `vsphere` is added to `[hatchery.vsphere]`; `more` to the end, where `[hatchery.vsphere.commonConfiguration.provision]`
    /// is open.
    pub(crate) fn write_config_for(
        &self,
        vcenter: &str,
        cds: &CdsSim,
        vsphere: &str,
        more: &str,
    ) -> PathBuf {
        fs::write(self.file("hatchery-key.pem"), demo_hatchery_key().expose()).unwrap();
        let printed = cds.toml().replace("port = 8086", "addr = \"127.0.0.1\"\nport = 0");
        let text = format!(
            "[hatchery.vsphere]\n{vcenter}\n{vsphere}\n\
             [[hatchery.vsphere.models]]\n\
             modelVMWare = \"debian12\"\nusername = \"root\"\npassword = \"demo\"\n\n\
             {printed}\n{more}\n"
        );
        let path = self.file("roost.toml");
        fs::write(&path, text).unwrap();
        path
    }
}
