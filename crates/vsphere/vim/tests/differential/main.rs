//! One script of calls, run through our client against `vcsim` and against our own simulator: what it observes must agree.
//!
//! Both servers are simulators, but of different authors. Where they differ, the table below says so and why; a row that is
//! no longer true fails the test as well.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

mod areas;
mod provisioning;
mod script;
mod servers;

use std::collections::BTreeMap;

use crate::script::Observations;

/// A step on which the two servers are known to differ.
struct Difference {
    step: &'static str,
    vcsim: &'static str,
    ours: &'static str,
    /// Which of them is right, and how we know: sections are those of the vSphere reference.
    because: &'static str,
}

const VCENTER: &[Difference] = &[
    Difference {
        step: "power on of a template",
        vcsim: r#""fault InvalidState""#,
        ours: r#""fault NotSupported""#,
        because: "vCenter answers NotSupported (4.4)",
    },
    Difference {
        step: "annotation after the clone",
        vcsim: "Now",
        ours: "Already",
        because: "vcsim drops the annotation of a clone's configuration, vCenter keeps it (7.5)",
    },
    SUMMARY_ANNOTATION,
    Difference {
        step: "rename to a name that is taken",
        vcsim: r#""fault InvalidArgument""#,
        ours: r#""taken""#,
        because: "vCenter answers DuplicateName with the object that has the name (4.4, 7.5)",
    },
    Difference {
        step: "processes without a login",
        vcsim: "0",
        ours: r#""fault InvalidGuestLogin""#,
        because: "vcsim checks no guest login for this call (5.3)",
    },
    Difference {
        step: "events of class VmRenamedEvent",
        vcsim: "false",
        ours: "true",
        because: "vcsim does not post it (6.3)",
    },
    Difference {
        step: "how the clone was told",
        vcsim: r#"["VmClonedEvent"]"#,
        ours: r#"["VmDeployedEvent"]"#,
        because: "vCenter posts VmDeployedEvent when the source is a template (6.3)",
    },
];

const ESXI: &[Difference] = &[SUMMARY_ANNOTATION];

const SUMMARY_ANNOTATION: Difference = Difference {
    step: "the new annotation",
    vcsim: r#"["config.annotation=changed & <escaped>", "summary.config.annotation unset"]"#,
    ours: r#"["config.annotation=changed & <escaped>", "summary.config.annotation=changed & <escaped>"]"#,
    because: "vcsim does not keep the summary in step with the configuration (2.5)",
};

#[tokio::test(flavor = "multi_thread")]
async fn both_vcenters_look_the_same_to_the_client() {
    let Some(vcsim) = servers::vcsim(false).await else { return };
    let ours = servers::our_simulator(false).await;
    compare(&script::vcenter(&vcsim.client).await, &script::vcenter(&ours.client).await, VCENTER);
}

const AREAS: &[Difference] = &[
    Difference {
        step: "items left",
        vcsim: "None",
        ours: "Some(0)",
        because: "vcsim writes null for a library without items, a vCenter an empty list",
    },
    Difference {
        step: "policies",
        vcsim: r#"{"Host-local PMem Default Storage Policy", "VM Encryption Policy", "VVol No Requirements Policy", "vSAN Default Storage Policy"}"#,
        ours: r#"{"VM Encryption Policy", "VVol No Requirements Policy", "vSAN Default Storage Policy"}"#,
        because: "which policies a server has at the start depends on its release and its hosts",
    },
    Difference {
        step: "its VM",
        vcsim: r#"["runtime.connectionState=connected"]"#,
        ours: r#"["runtime.connectionState=disconnected"]"#,
        because: "vcsim does not carry the state of a host to its VMs",
    },
    Difference {
        step: "disconnect again",
        vcsim: "()",
        ours: r#""fault HostNotConnected""#,
        because: "vcsim does not look at the state that the host is in",
    },
    Difference {
        step: "a datacenter of that name",
        vcsim: "()",
        ours: r#""fault DuplicateName""#,
        because: "the API has this fault for a name that is taken in the folder",
    },
    Difference {
        step: "destroy the datacenter",
        vcsim: r#""fault ResourceInUse""#,
        ours: "()",
        because: "the API destroys an entity with its contents; vcsim wants a datacenter to be empty",
    },
    Difference {
        step: "what is left of it",
        vcsim: r#"["name=DC9"]"#,
        ours: r#""fault ManagedObjectNotFound""#,
        because: "follows from the row above",
    },
];

const INVENTORY: &[Difference] = &[Difference {
    step: "DC0_C0_APP0_VM0",
    vcsim: r#"["parentVApp unset", "resourcePool=VirtualApp", "parent=Folder", "runtime.powerState=poweredOn"]"#,
    ours: r#"["parentVApp=VirtualApp", "resourcePool=VirtualApp", "parent=Folder", "runtime.powerState=poweredOn"]"#,
    because: "the schema says that a VM in a vApp names it; vcsim never sets the property",
}];

#[tokio::test(flavor = "multi_thread")]
async fn libraries_tags_hosts_and_clusters_look_the_same_to_the_client() {
    let Some(vcsim) = servers::full_vcsim().await else { return };
    let ours = servers::full_simulator().await;
    let (theirs, mine) =
        (areas::inventory(&vcsim.client).await, areas::inventory(&ours.client).await);
    compare(&theirs, &mine, INVENTORY);
    compare(&areas::areas(&vcsim.client).await, &areas::areas(&ours.client).await, AREAS);
}

const PROVISIONING: &[Difference] = &[
    Difference {
        step: "delete the disk object again",
        vcsim: r#""fault InvalidArgument""#,
        ours: r#""fault NotFound""#,
        because: "the API has NotFound for a disk that does not exist",
    },
    Difference {
        step: "register nothing",
        vcsim: r#""fault NotFound""#,
        ours: r#""fault FileNotFound""#,
        because: "the API has NotFound and faults of files for this; ours names the file",
    },
    Difference {
        step: "upgrade again",
        vcsim: r#""fault InvalidState""#,
        ours: r#""fault AlreadyUpgraded""#,
        because: "the API has this fault for hardware that is up to date",
    },
    Difference {
        step: "upgrade to what is older",
        vcsim: r#""fault InvalidState""#,
        ours: r#""fault AlreadyUpgraded""#,
        because: "follows from the row above",
    },
    Difference {
        step: "it is renamed",
        vcsim: r#""fault MethodNotFound""#,
        ours: "()",
        because: "vcsim has no method for it",
    },
    Difference {
        step: "it is renamed again",
        vcsim: r#""fault MethodNotFound""#,
        ours: r#""fault AlreadyExists""#,
        because: "follows from the row above: the name is taken",
    },
    Difference {
        step: "it exists",
        vcsim: "Some(false)",
        ours: "Some(true)",
        because: "follows from the rows above",
    },
    Difference {
        step: "delete the specification",
        vcsim: r#""fault MethodNotFound""#,
        ours: "()",
        because: "vcsim has no method for it",
    },
    Difference {
        step: "delete the specification again",
        vcsim: r#""fault MethodNotFound""#,
        ours: r#""fault NotFound""#,
        because: "follows from the row above",
    },
    Difference {
        step: "an instant clone",
        vcsim: r#""fault MethodNotFound""#,
        ours: "()",
        because: "vcsim has no method for it",
    },
    Difference {
        step: "remove the permission again",
        vcsim: "()",
        ours: r#""fault NotFound""#,
        because: "the API has NotFound for a permission that does not exist",
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn disks_registrations_specifications_and_placement_look_the_same_to_the_client() {
    let Some(vcsim) = servers::usual_vcsim().await else { return };
    let ours = servers::usual_simulator().await;
    let (theirs, mine) = (
        provisioning::provisioning(&vcsim.client).await,
        provisioning::provisioning(&ours.client).await,
    );
    compare(&theirs, &mine, PROVISIONING);
}

#[tokio::test(flavor = "multi_thread")]
async fn both_hosts_look_the_same_to_the_client() {
    let Some(vcsim) = servers::vcsim(true).await else { return };
    let ours = servers::our_simulator(true).await;
    compare(&script::host(&vcsim.client).await, &script::host(&ours.client).await, ESXI);
}

fn compare(vcsim: &Observations, ours: &Observations, known: &[Difference]) {
    let steps: Vec<_> = vcsim.iter().map(|(step, _)| step).collect();
    assert_eq!(
        steps,
        ours.iter().map(|(step, _)| step).collect::<Vec<_>>(),
        "the script took different ways"
    );
    let mut known: BTreeMap<_, _> =
        known.iter().map(|difference| (difference.step, difference)).collect();
    let mut problems = Vec::new();
    for ((step, theirs), (_, mine)) in vcsim.iter().zip(ours) {
        match known.remove(step.as_str()) {
            Some(row) if row.vcsim == theirs && row.ours == mine => {}
            Some(row) => problems.push(format!(
                "{step}: the known difference ({}) has changed:\n   vcsim: {theirs}\n   ours:  {mine}",
                row.because
            )),
            None if theirs == mine => {}
            None => problems.push(format!("{step}:\n   vcsim: {theirs}\n   ours:  {mine}")),
        }
    }
    problems
        .extend(known.keys().map(|step| format!("{step}: is in the table but not in the script")));
    assert!(problems.is_empty(), "{} differences:\n{}", problems.len(), problems.join("\n"));
}
