//! `roost doctor`: whether what a file or an environment asks for could be done, before it is.

mod agent_forge;
mod cluster;
mod kubelet;
mod vcenter;
mod vm_operator;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use roost_clock::{Clock, SystemClock};
use roost_doctor::{Finding, Section, Telling};
use roost_hatchery::doctor::{SignIn, examine};
use roost_settings::{Problems, Surroundings as _, SystemSurroundings, Table};

use crate::cli::{Doctor, DoctorDoor};
use crate::serve::sections::{self, Cluster, Sections};

/// Succeeds unless a check failed.
pub(crate) async fn run(args: Doctor) -> ExitCode {
    let mut telling = Telling::new(args.json);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    if let Some(door) = args.door {
        of_environment(door, &clock, &mut telling).await;
    } else if let Some(file) = &args.config {
        let sign_in = if args.sign_in { SignIn::Whole } else { SignIn::TokenOnly };
        of_file(file, sign_in, &clock, &mut telling).await;
    }
    if telling.conclude() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The door as its own command would run it here.
async fn of_environment(door: DoctorDoor, clock: &Arc<dyn Clock>, telling: &mut Telling) {
    let here = Cluster::default();
    match door {
        DoctorDoor::VmOperator => {
            let secret = SystemSurroundings.variable("VC_CREDS_SECRET_NAME");
            let home = SystemSurroundings.variable("POD_NAMESPACE");
            let here = Cluster { namespace: home, ..here };
            vm_operator::examine(&here, secret, clock, telling).await;
        }
        DoctorDoor::AgentForge => agent_forge::examine(&here, clock, telling).await,
        DoctorDoor::Kubelet => {
            let variable = |name: &str| SystemSurroundings.variable(name);
            match roost_kubelet::Settings::read(&variable) {
                Ok(settings) => kubelet::examine(&here, &settings, telling).await,
                Err(problems) => {
                    let fail = |problem: String| Finding::fail("environment", problem);
                    let findings = problems.iter().map(|it| fail(it.to_string())).collect();
                    telling.tell(Section { system: "kubelet", about: String::new(), findings });
                }
            }
        }
    }
}

/// Every door that the file names.
async fn of_file(file: &Path, sign_in: SignIn, clock: &Arc<dyn Clock>, telling: &mut Telling) {
    let text = SystemSurroundings.read_file(file);
    let table = text.ok().and_then(|text| Table::parse(&text, &Problems::default()));
    let Some(table) = table else {
        // Says why it cannot be read.
        return examine(file, sign_in, clock, telling).await;
    };
    if !sections::are_alone(&table) {
        examine(file, sign_in, clock, telling).await;
    }
    let problems = Problems::default();
    let sections = Sections::read(&table, &SystemSurroundings, &problems);
    if let Err(invalid) = problems.settle(Some(())) {
        let fail = |problem: &roost_settings::Problem| Finding::fail("file", problem.to_string());
        let findings = invalid.problems.iter().map(fail).collect();
        let about = file.display().to_string();
        telling.tell(Section { system: "sections of other doors", about, findings });
        return;
    }
    if let Some(section) = &sections.vm_operator {
        vm_operator::examine(&section.cluster, section.secret.clone(), clock, telling).await;
    }
    if let Some(cluster) = &sections.agent_forge {
        agent_forge::examine(cluster, clock, telling).await;
    }
    if let Some(section) = &sections.kubelet {
        kubelet::examine(&section.cluster, &section.settings, telling).await;
    }
}
