//! Which bootstrap providers go together, and what each of them needs.

use super::Problems;
use crate::api::VirtualMachine;
use crate::api::vm::{Bootstrap, InlineSysprep};

const AT: &str = "spec.bootstrap";

pub(super) fn check(vm: &VirtualMachine, old: Option<&VirtualMachine>, problems: &mut Problems) {
    let Some(bootstrap) = &vm.spec.bootstrap else { return };
    exclusive(bootstrap, problems);
    if let Some(cloud_init) = &bootstrap.cloud_init {
        problems.when(
            cloud_init.cloud_config.is_some() && cloud_init.raw_cloud_config.is_some(),
            format!("{AT}.cloudInit"),
            "cloudConfig and rawCloudConfig are mutually exclusive",
        );
    }
    if let Some(sysprep) = &bootstrap.sysprep {
        let field = format!("{AT}.sysprep");
        match (&sysprep.sysprep, &sysprep.raw_sysprep) {
            (Some(_), Some(_)) => {
                problems.at(field, "sysprep and rawSysprep are mutually exclusive");
            }
            (None, None) => problems.at(field, "either sysprep or rawSysprep must be provided"),
            (Some(inline), None) => inline_sysprep(vm, inline, problems),
            (None, Some(_)) => {}
        }
    }
    if let Some(config) = &bootstrap.v_app_config {
        problems.when(
            !config.properties.is_empty() && !config.raw_properties.is_empty(),
            format!("{AT}.vAppConfig"),
            "properties and rawProperties are mutually exclusive",
        );
        for (index, property) in config.properties.iter().enumerate() {
            let field = format!("{AT}.vAppConfig.properties[{index}]");
            problems.when(property.key.is_empty(), format!("{field}.key"), "is required");
            let has_both = property.value.from.is_some() && property.value.value.is_some();
            problems.when(
                has_both,
                format!("{field}.value"),
                "from and value are mutually exclusive",
            );
        }
    }
    if let Some(old) = old.and_then(|old| old.spec.bootstrap.as_ref()) {
        let changed = provider(old).is_some() && provider(old) != provider(bootstrap);
        problems.when(changed, AT, "the bootstrap provider cannot be changed");
    }
}

fn exclusive(bootstrap: &Bootstrap, problems: &mut Problems) {
    let others = [
        ("linuxPrep", bootstrap.linux_prep.is_some()),
        ("sysprep", bootstrap.sysprep.is_some()),
        ("vAppConfig", bootstrap.v_app_config.is_some()),
    ];
    for (name, is_set) in others {
        problems.when(
            bootstrap.cloud_init.is_some() && is_set,
            format!("{AT}.cloudInit"),
            format!("CloudInit may not be used with {name}"),
        );
    }
    problems.when(
        bootstrap.linux_prep.is_some() && bootstrap.sysprep.is_some(),
        format!("{AT}.linuxPrep"),
        "LinuxPrep may not be used with sysprep",
    );
}

fn provider(bootstrap: &Bootstrap) -> Option<&'static str> {
    if bootstrap.cloud_init.is_some() {
        Some("cloudInit")
    } else if bootstrap.linux_prep.is_some() {
        Some("linuxPrep")
    } else if bootstrap.sysprep.is_some() {
        Some("sysprep")
    } else if bootstrap.v_app_config.is_some() {
        Some("vAppConfig")
    } else {
        None
    }
}

fn inline_sysprep(vm: &VirtualMachine, inline: &InlineSysprep, problems: &mut Problems) {
    let at = format!("{AT}.sysprep.sysprep");
    if let Some(gui) = inline.gui_unattended.as_ref().filter(|gui| gui.auto_logon) {
        let at = format!("{at}.guiUnattended");
        let needed = "autoLogon needs it";
        problems.when(gui.auto_logon_count == 0, format!("{at}.autoLogonCount"), needed);
        let has_password = gui.password.as_ref().is_some_and(|of| !of.name.is_empty());
        problems.when(!has_password, format!("{at}.password"), needed);
    }
    let Some(identification) = &inline.identification else { return };
    let at = format!("{at}.identification");
    let domain = vm.spec.network.as_ref().map(|of| of.domain_name.as_str()).unwrap_or_default();
    let has_password =
        identification.domain_admin_password.as_ref().is_some_and(|of| !of.name.is_empty());
    let is_workgroup = !identification.join_workgroup.is_empty();
    let joins_domain = !identification.domain_admin.is_empty() || has_password;
    problems.when(
        is_workgroup && (joins_domain || !identification.domain_ou.is_empty()),
        &at,
        "joinWorkgroup and a domain are mutually exclusive",
    );
    if joins_domain && !is_workgroup {
        problems.when(domain.is_empty(), "spec.network.domainName", "joining a domain needs it");
        let needed = "joining a domain needs it";
        problems.when(identification.domain_admin.is_empty(), format!("{at}.domainAdmin"), needed);
        problems.when(!has_password, format!("{at}.domainAdminPassword"), needed);
    }
}
