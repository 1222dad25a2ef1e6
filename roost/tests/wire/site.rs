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

    /// Writes the configuration of a hatchery between both simulators: what `roost sim cds` printed, unchanged but for the port, which
    /// the system picks, and what the vCenter needs. `vsphere` is added to `[hatchery.vsphere]`, `tables` to the end.
    pub(crate) fn write_config(
        &self,
        vcenter: &VcenterSim,
        cds: &CdsSim,
        vsphere: &str,
        tables: &str,
    ) -> PathBuf {
        fs::write(self.file("hatchery-key.pem"), demo_hatchery_key().expose()).unwrap();
        let (endpoint, thumbprint) = (vcenter.endpoint(), vcenter.thumbprint());
        let printed = cds.toml().replace("port = 8086", "addr = \"127.0.0.1\"\nport = 0");
        let text = format!(
            "[hatchery.vsphere]\n\
             user = \"roost\"\npassword = \"demo\"\n\
             endpoint = \"{endpoint}\"\nthumbprint = \"{thumbprint}\"\n\
             datacenterString = \"DC0\"\nnetworkString = \"DC0_DVPG0\"\n\
             {vsphere}\n\
             [[hatchery.vsphere.models]]\n\
             modelVMWare = \"debian12\"\nusername = \"root\"\npassword = \"demo\"\n\n\
             {printed}\n{tables}\n"
        );
        let path = self.file("roost.toml");
        fs::write(&path, text).unwrap();
        path
    }
}
