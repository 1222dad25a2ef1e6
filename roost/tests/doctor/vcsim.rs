//! A vCenter that we did not write.

use roost_oracle::{Vcsim, VcsimOptions};

use crate::examination::{Examination, doctor};
use crate::wire::{CdsSim, Site};

#[test]
fn vcsim_is_examined_as_far_as_it_goes() {
    let options =
        VcsimOptions { vms: 2, standalone_hosts: 0, tls: true, ..VcsimOptions::default() };
    let Some(vcsim) = Vcsim::start(options) else { return };
    let site = Site::new("doctor-vcsim");
    let cds = CdsSim::start(&site, &[]);
    let vcenter = |password: &str| {
        format!(
            "user = \"{}\"\npassword = \"{password}\"\nendpoint = \"{}\"\ninsecure = true\n\
             datacenterString = \"DC0\"\nnetworkString = \"VM Network\"\n",
            vcsim.username(),
            vcsim.endpoint(),
        )
    };
    let models = "[[hatchery.vsphere.models]]\nmodelVMWare = \"DC0_C0_RP0_VM0\"\nusername = \"u\"\npassword = \"p\"\n";
    let examine = |password: &str| {
        site.write_config_for(&vcenter(password), &cds, models, "maxWorker = 10");
        Examination::of(&doctor(&site, &["-c", "roost.toml", "--json"]))
    };
    let found = examine(vcsim.password());
    found.expect("warn", "certificate", "not verified");
    found.expect("pass", "login", vcsim.username());
    found.expect("warn", "version", "vCenter Server 6.5");
    for check in ["clock", "datacenter", "folder", "datastore", "network", "privileges", "own VMs"]
    {
        found.expect("pass", check, "");
    }
    found.expect("fail", "template", "debian12: no virtual machine");
    let refused = examine("wrong");
    refused.expect_failures(&["login"]);
    refused.expect("fail", "login", "refuses");
}
