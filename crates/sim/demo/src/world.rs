//! The two servers that the demo embeds, and what is in them before the first job.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context as _;
use http::Request;
use roost_cds::{HATCHERY_TYPE, WorkerConfig, v2};
use roost_cds_sim::{CdsApi, Worker};
use roost_clock::{Clock, Random};
use roost_vcenter_sim::{
    GuestEffect, GuestProgram, GuestReply, GuestRun, GuestWork, TemplateOptions, Vcenter,
};
use roost_vim::{Body, SendFuture, Transport};
use serde_json::json;

use super::config::{DEBIAN, HATCHERY, REGION, TOKEN, TOKEN_V2, UBUNTU};

/// What others have in the datacenter: enough to see that none of it matters to us.
pub(super) const FOREIGN_VMS: usize = 320;
const HOSTS: usize = 6;
/// A template that the models name and the vCenter has not.
pub(super) const MISSING_TEMPLATE: &str = "windows95";

/// A vCenter and a CDS API, in this process.
#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) vcenter: Vcenter,
    pub(super) cds: CdsApi,
}

impl World {
    pub(super) fn start(
        seed: &Random,
        clock: &Arc<dyn Clock>,
        foreign_vms: usize,
    ) -> anyhow::Result<Self> {
        let template = |name: &str| TemplateOptions {
            cpus: 2,
            memory_mb: 2048,
            disk_gb: 20,
            ..TemplateOptions::new(name)
        };
        let options = roost_vcenter_sim::Options {
            hosts: HOSTS,
            standalone_hosts: 0,
            vms: foreign_vms,
            templates: vec![template(DEBIAN), template(UBUNTU)],
            seed: seed.fork("vcenter").seed(),
            ..roost_vcenter_sim::Options::default()
        };
        let vcenter = Vcenter::start(options, Arc::clone(clock));
        let options = roost_cds_sim::Options {
            url: "http://cds.demo.invalid".into(),
            ..roost_cds_sim::Options::new(seed.fork("cds").seed())
        };
        let options = options.consumer(HATCHERY, TOKEN).hatchery(HATCHERY, TOKEN_V2, REGION);
        let cds = CdsApi::start(options, Arc::clone(clock)).context("starting the CDS API")?;
        for template in [DEBIAN, UBUNTU, MISSING_TEMPLATE] {
            cds.add_v2_model(&model_path(template), as_code(template));
        }
        let (api, on) = (cds.clone(), Arc::clone(clock));
        vcenter.script_guests(move |program: &GuestProgram| be_a_worker(program, &api, &on));
        Ok(Self { vcenter, cds })
    }

    pub(super) fn door(&self) -> Arc<dyn Transport> {
        Arc::new(Door(self.vcenter.clone()))
    }
}

pub(super) fn model_path(template: &str) -> v2::AsCodePath {
    v2::AsCodePath {
        project: "DEMO".into(),
        vcs: "github".into(),
        repository: "roost/models".into(),
        name: template.into(),
        branch: "master".into(),
    }
}

/// As jobs name it.
pub(super) fn model_name(template: &str) -> String {
    let v2::AsCodePath { project, vcs, repository, name, .. } = model_path(template);
    format!("{project}/{vcs}/{repository}/{name}")
}

fn as_code(template: &str) -> v2::Model {
    v2::Model {
        name: template.into(),
        os_arch: "linux/amd64".into(),
        model_type: HATCHERY_TYPE.into(),
        spec: v2::ModelSpec(json!({ "image": template })),
        ..v2::Model::default()
    }
}

/// The launch script is what has a worker's configuration in its environment. All that matters of it here is the worker, which talks to the
/// API until its job is done, and the shutdown that the script ends with. Other programs are left to the simulator.
fn be_a_worker(program: &GuestProgram, cds: &CdsApi, clock: &Arc<dyn Clock>) -> Option<GuestReply> {
    let config = program.variable(WorkerConfig::VARIABLE)?;
    let environment = BTreeMap::from([(WorkerConfig::VARIABLE.to_owned(), config.to_owned())]);
    let (cds, clock) = (cds.clone(), Arc::clone(clock));
    let work = GuestWork::new(move || {
        let worker = Worker::from_env(&environment, Arc::new(cds.clone()), Arc::clone(&clock));
        async move {
            let ended = match worker {
                Ok(worker) => worker.run().await.is_ok(),
                Err(_) => false,
            };
            GuestRun::exits(i32::from(!ended)).then(GuestEffect::PowerOff)
        }
    });
    Some(work.into())
}

/// The vCenter's in-process door.
#[derive(Debug)]
struct Door(Vcenter);

impl Transport for Door {
    fn send(&self, request: Request<Body>) -> SendFuture {
        let vcenter = self.0.clone();
        Box::pin(async move { vcenter.handle(request).await })
    }
}
