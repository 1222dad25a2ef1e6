//! The kinds `VsphereAgentPool` and `VsphereAgent`: data only. What they mean is in the modules that use them.

mod defaults;
mod domains;
mod go_duration;
pub mod names;
mod object;
mod owned_vm;
mod pool;
mod vsphere_agent;

use roost_controller::crd::{CrdError, parse_crds};

pub use defaults::{MAX_ATTEMPTS, PoolDefaults};
pub use go_duration::parse_duration;
pub use object::{VsphereAgent, VsphereAgentPool};
pub use owned_vm::{OwnedVm, Phase, Reason};
pub use pool::{
    ActionKind, AgentSpec, CleanupPolicy, CleanupSpec, DiscoverySpec, DomainStatus, ExtraDisk,
    ExtraNetwork, FailureDomain, FirmwareName, IsoSpec, IsoStatus, IsoVersion, NameRef,
    PlannedAction, PoolSpec, PoolStatus, ScalingSpec, SecretRef, TemplateSpec, VsphereSpec,
};
pub use vsphere_agent::{VsphereAgentSpec, VsphereAgentStatus};

/// The definitions of both kinds.
pub fn crds()
-> Result<Vec<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition>, CrdError>
{
    let mut all = parse_crds(include_str!("../../crds/vsphereagentpools.yaml"))?;
    all.extend(parse_crds(include_str!("../../crds/vsphereagents.yaml"))?);
    Ok(all)
}
