//! Every label, annotation, finalizer and group, as it stands on the wire.

pub const GROUP: &str = "agent-forge.containeroo.ch";
pub const VERSION: &str = "v1alpha1";

pub const POOL_FINALIZER: &str = "agent-forge.containeroo.ch/vsphere-agent-pool";
pub const AGENT_FINALIZER: &str = "agent-forge.containeroo.ch/vsphere-agent";

/// On a VsphereAgent: its pool. The same words as the pool's finalizer.
pub const POOL_LABEL: &str = "agent-forge.containeroo.ch/vsphere-agent-pool";
pub const CREATED_FOR: &str = "agent-forge.containeroo.ch/created-for";
pub const FOR_AGENT_MACHINE: &str = "agent-machine";
pub const FOR_ADOPTED: &str = "adopted";
/// Made ahead of demand.
pub const FOR_SPARE: &str = "spare";
/// On a VsphereAgent, on an Agent, and in the selector of an AgentMachine: the pin that joins the three.
pub const AGENT_MACHINE_LABEL: &str = "agent-forge.containeroo.ch/agent-machine";
pub const VM_NAME: &str = "agent-forge.containeroo.ch/vm-name";
/// Tells pools apart that share an InfraEnv.
pub const NODEPOOL_LABEL: &str = "agent-forge.containeroo.ch/nodepool";
pub const FORCE_ISO_REFRESH: &str = "agent-forge.containeroo.ch/force-iso-refresh";

/// On a VsphereAgent whose VM was made for nobody or for another: the AgentMachine that has it now.
pub const CLAIMED_BY: &str = "agent-forge.containeroo.ch/claimed-by";
/// On a Secret with a login: the namespaces, separated by commas, whose pools may use it. `*` means all.
pub const ALLOWED_NAMESPACES: &str = "agent-forge.containeroo.ch/allowed-namespaces";
/// On a VsphereAgent that its pool gives up: the Agent that goes after the VM.
pub const DELETE_AGENT: &str = "agent-forge.containeroo.ch/delete-agent";
/// On a pool or VsphereAgent: a bound worker may be destroyed with it.
pub const FORCE_DELETE: &str = "agent-forge.containeroo.ch/force-delete";
/// On a pool: no VM is made, changed or deleted.
pub const PAUSED: &str = "agent-forge.containeroo.ch/paused";
/// On a pool whose deletions are frozen: `approve` lets the VMs go that the freeze names, anything else has everything looked at anew.
pub const RESUME_DELETIONS: &str = "agent-forge.containeroo.ch/resume-deletions";
/// On a VsphereAgent: it is never deleted by its pool.
pub const PROTECT: &str = "agent-forge.containeroo.ch/protect";

pub const NODE_POOL_ANNOTATION: &str = "hypershift.openshift.io/nodePool";
pub const NODEPOOL_ROLE: &str = "hypershift.openshift.io/nodepool-role";
pub const AGENT_MACHINE_REF: &str = "agentMachineRef";
pub const INFRA_ENV_LABEL: &str = "infraenvs.agent-install.openshift.io";
pub const CAPI_PAUSED: &str = "cluster.x-k8s.io/paused";

/// In the VM's `extraConfig` from its create request on: `namespace/pool/uid of the VsphereAgent`.
pub const OWNER_KEY: &str = "guestinfo.agentforge.owner";

/// The lease of the upstream manager, so that the two never work at the same time.
pub const LEASE: &str = "agent-forge-operator.containeroo.ch";
