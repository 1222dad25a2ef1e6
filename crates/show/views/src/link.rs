use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How the server is seen that carries VMs out: a vCenter, or what a host of microVMs runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkView {
    /// What it is called.
    #[serde(default = "vcenter")]
    pub server: String,
    pub connected: bool,
    /// The inventory is complete and follows the vCenter.
    pub synced: bool,
    pub last_contact: Option<Timestamp>,
    /// How often the inventory had to be read anew.
    pub resyncs: u64,
    pub trouble: Option<String>,
    /// All VMs of the datacenter, not only ours.
    pub vms_seen: u64,
    /// `None` if calls are not counted.
    pub calls: Option<CallsView>,
}

/// What it is where nothing else is said.
fn vcenter() -> String {
    LinkView::VCENTER.to_owned()
}

impl LinkView {
    pub const VCENTER: &str = "vCenter";
}

impl Default for LinkView {
    fn default() -> Self {
        Self {
            server: vcenter(),
            connected: false,
            synced: false,
            last_contact: None,
            resyncs: 0,
            trouble: None,
            vms_seen: 0,
            calls: None,
        }
    }
}

/// What was asked of the vCenter since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallsView {
    pub logins: u64,
    pub calls: u64,
    pub last_minute: u64,
    pub faults: u64,
    /// The median of the last calls that do not wait for news.
    pub latency_ms: Option<u64>,
}

/// The link and how it was lately.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkDetail {
    pub link: LinkView,
    /// The last half hour, oldest first. Minutes in which nothing was asked are there with zeros.
    pub minutes: Vec<LinkMinute>,
    /// By method, the busiest first.
    pub methods: Vec<MethodView>,
    /// The last ones, oldest first.
    pub faults: Vec<FaultView>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkMinute {
    pub began: Timestamp,
    pub calls: u64,
    pub faults: u64,
    pub logins: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MethodView {
    pub method: String,
    pub calls: u64,
    pub faults: u64,
    /// The median of the last ones. For the one that waits for news, how long it waits.
    pub latency_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FaultView {
    pub at: Timestamp,
    pub method: String,
    /// The server's own name for it.
    pub kind: String,
}
