//! A vCenter that does not let the service in.

mod wire;

use wire::{CdsSim, Site, VcenterSim, roost};

#[tokio::test]
async fn a_wrong_password_ends_the_service_after_one_login_with_a_code_that_systemd_knows() {
    let site = Site::new("refused");
    let vcenter = VcenterSim::start(&site, &["--login", "roost:another"]);
    let cds = CdsSim::start(&site, &[]);
    let config = site.write_config(&vcenter, &cds, "", "");
    let output = roost(&["run", "-c", config.to_str().unwrap()])
        .current_dir(site.folder())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(77), "{said}");
    let last = said.lines().last().unwrap();
    assert!(last.contains("refuses the login of roost: check hatchery.vsphere.user"), "{said}");
    let counters = vcenter.control.get("counters").await;
    assert_eq!(counters["calls"]["Login"], 1, "{counters}");
    let unit = include_str!("../../deploy/systemd/roost.service");
    assert!(unit.contains("\nRestartPreventExitStatus=77\n"));
}
