//! The annotations between the operator that makes pods and the kubelet that runs them. They are a wire format: spelled as its users spell them.

mod lifecycle;
mod names;
mod spec;

pub(crate) use self::lifecycle::{Intent, LifecycleState, observed_generation};
pub(crate) use self::names::{fork_snapshot, import_snapshot};
pub(crate) use self::spec::{Mode, Os, SpecError, VmSpec, named_vm};

/// The keys. Booleans are the word `true`; anything else is false.
pub mod key {
    pub const VM_NAME: &str = "vm.cocoonstack.io/name";
    pub const IMAGE: &str = "cocoonset.cocoonstack.io/image";
    pub const MODE: &str = "cocoonset.cocoonstack.io/mode";
    pub const OS: &str = "cocoonset.cocoonstack.io/os";
    pub const STORAGE: &str = "cocoonset.cocoonstack.io/storage";
    pub const NETWORK: &str = "cocoonset.cocoonstack.io/network";
    pub const SNAPSHOT_POLICY: &str = "cocoonset.cocoonstack.io/snapshot-policy";
    pub const MANAGED: &str = "cocoonset.cocoonstack.io/managed";
    pub const FORCE_PULL: &str = "cocoonset.cocoonstack.io/force-pull";
    pub const GENERATION: &str = "cocoonset.cocoonstack.io/generation";
    pub const FORK_FROM: &str = "vm.cocoonstack.io/fork-from";
    pub const CLONE_FROM_DIR: &str = "vm.cocoonstack.io/clone-from-dir";
    pub const BACKEND: &str = "vm.cocoonstack.io/backend";
    pub const NO_DIRECT_IO: &str = "vm.cocoonstack.io/no-direct-io";
    pub const PROBE_PORT: &str = "vm.cocoonstack.io/probe-port";
    pub const HIBERNATE: &str = "vm.cocoonstack.io/hibernate";
    pub const RESTORE_FROM_HIBERNATE: &str = "vm.cocoonstack.io/restore-from-hibernate";
    pub const KEEP_SNAPSHOT: &str = "vm.cocoonstack.io/keep-snapshot-on-delete";
    pub const VM_ID: &str = "vm.cocoonstack.io/id";
    pub const VM_IP: &str = "vm.cocoonstack.io/ip";
    pub const VNC_PORT: &str = "vm.cocoonstack.io/vnc-port";
    pub const POST_CLONE_HINT: &str = "vm.cocoonstack.io/post-clone-hint";
    pub const POST_CLONE_STATE: &str = "vm.cocoonstack.io/post-clone-state";
    pub const LIFECYCLE_STATE: &str = "vm.cocoonstack.io/lifecycle-state";
    pub const LIFECYCLE_GENERATION: &str = "vm.cocoonstack.io/lifecycle-observed-generation";
    pub const LIFECYCLE_MESSAGE: &str = "vm.cocoonstack.io/lifecycle-state-message";
    pub const POOL: &str = "cocoonstack.io/pool";
    pub const CPU_CLASS: &str = "cocoonstack.io/snapshot-cpu-class";
    /// Which runtime a node has, where it is not that of cocoon.
    pub const RUNTIME: &str = "cocoonstack.io/runtime";
    /// On a pod: a drain of the node has put its VM to sleep, and whoever ends the drain wakes it.
    pub const DRAINED: &str = "roost.dev/drained";
    /// On the node: `paused` or `draining`.
    pub const SPAWNING: &str = "roost.dev/spawning";
    /// On the node: who said so, when and why.
    pub const SPAWNING_HELD: &str = "roost.dev/spawning-held";
}
