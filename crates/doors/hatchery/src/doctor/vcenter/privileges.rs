//! Which privileges each call of the hatchery needs, and on what.
//!
//! VMs that are yet to be made get theirs from the folder that they are made in, so what will be done to them is asked of the folder.

use super::facts::{Rights, Source};
use super::wish::Wish;
use roost_doctor::{Fact, Finding};

/// A privilege, the call that needs it, and what that call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Need {
    pub(super) privilege: &'static str,
    call: &'static str,
    purpose: &'static str,
}

const fn need(privilege: &'static str, call: &'static str, purpose: &'static str) -> Need {
    Need { privilege, call, purpose }
}

const CLONE: &str = "CloneVM_Task";
const RECONFIGURE: &str = "ReconfigVM_Task";

pub(super) const ON_DATACENTER: &[Need] =
    &[need("System.Read", "WaitForUpdatesEx", "VMs and their changes are seen")];

pub(super) const ON_POOL: &[Need] = &[
    need("System.Read", "WaitForUpdatesEx", "what is left in the pool is seen"),
    need("Resource.AssignVMToPool", CLONE, "a clone goes into the pool"),
];

pub(super) const ON_DATASTORE: &[Need] =
    &[need("Datastore.AllocateSpace", CLONE, "a clone gets its disks")];

pub(super) const ON_NETWORK: &[Need] =
    &[need("Network.Assign", CLONE, "a clone's card is put on the network")];

const TEMPLATE_SOURCE: Need =
    need("VirtualMachine.Provisioning.DeployTemplate", CLONE, "a template is cloned");
const VM_SOURCE: Need = need("VirtualMachine.Provisioning.Clone", CLONE, "a VM is cloned");
const CUSTOMIZE: Need =
    need("VirtualMachine.Provisioning.Customize", CLONE, "a clone gets its name and address");

pub(super) fn on_template(source: Source) -> Vec<Need> {
    let clone = match source {
        Source::Template => TEMPLATE_SOURCE,
        Source::Vm => VM_SOURCE,
    };
    vec![clone, CUSTOMIZE]
}

const FOLDER: &[Need] = &[
    need("VirtualMachine.Inventory.CreateFromExisting", CLONE, "a clone goes into the folder"),
    need("VirtualMachine.Config.AddNewDisk", CLONE, "a clone gets its disks"),
    need("VirtualMachine.Config.EditDevice", CLONE, "a clone's card is put on the network"),
    need("VirtualMachine.Config.Rename", RECONFIGURE, "a spare becomes a worker"),
    need("VirtualMachine.Config.Annotation", RECONFIGURE, "a VM says whose it is and what for"),
    need("VirtualMachine.Interact.PowerOn", "PowerOnVM_Task", "a worker is started"),
    need("VirtualMachine.Interact.PowerOff", "PowerOffVM_Task", "a spare waits, a worker ends"),
    need("VirtualMachine.Inventory.Delete", "Destroy_Task", "a worker that has ended is deleted"),
    need(
        "VirtualMachine.GuestOperations.Execute",
        "StartProgramInGuest",
        "the worker's script runs",
    ),
    need(
        "VirtualMachine.GuestOperations.Query",
        "ListProcessesInGuest",
        "it is seen how the script ended",
    ),
];

const SIZES: &[Need] = &[
    need("VirtualMachine.Config.CPUCount", RECONFIGURE, "a spare gets the CPUs of a flavor"),
    need("VirtualMachine.Config.Memory", RECONFIGURE, "a spare gets the memory of a flavor"),
];

const DISK: Need =
    need("VirtualMachine.Config.DiskExtend", RECONFIGURE, "a spare gets the disk of a flavor");

const MAKE_TEMPLATE: Need = need(
    "VirtualMachine.Provisioning.MarkAsTemplate",
    "MarkAsTemplate",
    "the template of a V1 worker model is made",
);

pub(super) fn on_folder(wish: &Wish) -> Vec<Need> {
    let mut needs = FOLDER.to_vec();
    if !wish.flavors.is_empty() {
        needs.extend(SIZES);
    }
    if wish.flavors.iter().any(|flavor| flavor.disk_gb.is_some()) {
        needs.push(DISK);
    }
    if wish.makes_templates {
        needs.push(MAKE_TEMPLATE);
    }
    needs
}

const CHECK: &str = "privileges";

pub(super) fn judge(rights: &Fact<Vec<Rights>>) -> Vec<Finding> {
    match rights {
        Fact::Known(rights) if rights.is_empty() => {
            vec![Finding::skip(CHECK, "none of the objects was found")]
        }
        Fact::Known(rights) => rights.iter().map(on_object).collect(),
        Fact::Failed(why) | Fact::Unanswered(why) => {
            let finding = Finding::warn(CHECK, format!("the vCenter does not tell them: {why}"));
            vec![finding.advice("compare the user's role with the list in docs/doctor.md")]
        }
        Fact::Skipped(why) => vec![Finding::skip(CHECK, why)],
    }
}

fn on_object(rights: &Rights) -> Finding {
    let is_lacking = |need: &&Need| rights.lacking.iter().any(|id| id == need.privilege);
    let lacking: Vec<&Need> = rights.needs.iter().filter(is_lacking).collect();
    let (object, all) = (&rights.object, rights.needs.len());
    if lacking.is_empty() {
        return Finding::pass(CHECK, format!("{object}: {all} of {all}"));
    }
    let told = |need: &&Need| {
        let Need { privilege, call, purpose } = need;
        format!("{privilege}, for {call}: {purpose}")
    };
    Finding::fail(CHECK, format!("{object}: {} of {all} are missing", lacking.len()))
        .details(lacking.iter().map(told))
        .advice(
            "add them to the role that the user has there, and let the role propagate to children",
        )
}

#[cfg(test)]
mod tests {
    use crate::flavor::{Flavor, Flavors};

    use super::super::wish::tests::wish;
    use super::*;
    use roost_doctor::Verdict;

    #[test]
    fn each_missing_privilege_is_named_with_the_call_that_needs_it() {
        let rights = Rights {
            object: "folder /DC0/vm".into(),
            needs: on_folder(&wish()),
            lacking: vec!["VirtualMachine.Interact.PowerOn".into(), "Not.Asked".into()],
        };
        let findings = judge(&Fact::Known(vec![rights.clone()]));
        assert_eq!(findings[0].verdict, Verdict::Fail);
        assert_eq!(
            findings[0].details,
            ["VirtualMachine.Interact.PowerOn, for PowerOnVM_Task: a worker is started"]
        );
        let whole = Rights { lacking: Vec::new(), ..rights };
        assert_eq!(judge(&Fact::Known(vec![whole]))[0].verdict, Verdict::Pass);
        assert_eq!(judge(&Fact::Known(Vec::new()))[0].verdict, Verdict::Skip);
        assert_eq!(judge(&Fact::Failed("NotSupported".into()))[0].verdict, Verdict::Warn);
    }

    #[test]
    fn the_page_lists_every_privilege() {
        let page = include_str!("../../../../../../docs/doctor.md");
        let all = [ON_DATACENTER, ON_POOL, ON_DATASTORE, ON_NETWORK, FOLDER, SIZES].concat();
        let others = [TEMPLATE_SOURCE, VM_SOURCE, CUSTOMIZE, DISK, MAKE_TEMPLATE];
        for need in all.iter().chain(&others) {
            assert!(page.contains(&format!("`{}`", need.privilege)), "{need:?}");
        }
    }

    #[test]
    fn only_what_the_configuration_will_use_is_asked_for() {
        let mut wish = wish();
        let has = |wish: &Wish, part: &str| {
            on_folder(wish).iter().any(|need| need.privilege.ends_with(part))
        };
        assert!(
            !has(&wish, "CPUCount") && !has(&wish, "DiskExtend") && !has(&wish, "MarkAsTemplate")
        );
        let small = Flavor { name: "s".into(), cpus: Some(1), memory_mb: None, disk_gb: Some(40) };
        wish.flavors = Flavors::new(vec![small], None).unwrap();
        wish.makes_templates = true;
        assert!(has(&wish, "CPUCount") && has(&wish, "DiskExtend") && has(&wish, "MarkAsTemplate"));
        assert_ne!(on_template(Source::Template), on_template(Source::Vm));
    }
}
