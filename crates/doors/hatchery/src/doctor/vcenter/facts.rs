//! What was seen of a vCenter.

use std::net::IpAddr;

use roost_vim::wire::MoRef;

use super::privileges::Need;
use super::wish::Wanted;
use roost_doctor::Fact;
use roost_doctor::Skew;

#[derive(Debug)]
pub(super) struct Facts {
    pub(super) session: Session,
    pub(super) skew: Fact<Skew>,
    pub(super) datacenter: Fact<Place>,
    pub(super) folder: Fact<Place>,
    pub(super) pool: Fact<Pool>,
    pub(super) datastore: Fact<Datastore>,
    pub(super) network: Fact<Network>,
    pub(super) templates: Vec<(Wanted, Fact<Template>)>,
    pub(super) rights: Fact<Vec<Rights>>,
    pub(super) machines: Fact<Vec<Machine>>,
}

impl Facts {
    /// Nothing else could be asked, because of this.
    pub(super) fn unknown(session: Session, wanted: &[Wanted], why: &str) -> Self {
        fn skip<T>(why: &str) -> Fact<T> {
            Fact::Skipped(why.to_owned())
        }
        Self {
            session,
            skew: skip(why),
            datacenter: skip(why),
            folder: skip(why),
            pool: skip(why),
            datastore: skip(why),
            network: skip(why),
            templates: wanted.iter().map(|wanted| (wanted.clone(), skip(why))).collect(),
            rights: skip(why),
            machines: skip(why),
        }
    }
}

/// How the login went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Session {
    Open(About),
    /// The server knows neither this user nor this password.
    Refused {
        user: String,
    },
    /// The password cannot be had here.
    NoPassword(String),
    /// What answers does not do so as a vCenter does.
    NoApi(String),
}

/// What the server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct About {
    pub(super) user: String,
    pub(super) full_name: String,
    pub(super) is_vcenter: bool,
    pub(super) api_version: String,
    pub(super) has_guest_operations: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) path: String,
    pub(super) object: MoRef,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pool {
    pub(super) place: Place,
    /// `None` if the server does not tell.
    pub(super) runtime: Option<PoolRuntime>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PoolRuntime {
    pub(super) max_cpu_mhz: u64,
    pub(super) free_cpu_mhz: u64,
    pub(super) max_memory_mb: u64,
    pub(super) free_memory_mb: u64,
    pub(super) is_red: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Datastore {
    pub(super) place: Place,
    /// Whether the hosts of the resource pool have it; `None` if that is not known.
    pub(super) is_at_pool: Option<bool>,
    pub(super) is_accessible: bool,
    /// In words of the server, unless it is `normal`.
    pub(super) maintenance: Option<String>,
    pub(super) capacity_gb: u64,
    pub(super) free_gb: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Network {
    pub(super) place: Place,
    /// Whether the hosts of the resource pool have it; `None` if that is not known.
    pub(super) is_at_pool: Option<bool>,
    pub(super) kind: &'static str,
    pub(super) is_accessible: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    pub(super) place: Place,
    pub(super) source: Source,
    pub(super) guest: String,
    pub(super) cpus: u32,
    pub(super) memory_mb: u64,
    pub(super) disks: usize,
    /// Of all disks together.
    pub(super) disk_gb: u64,
    /// The type of each network card.
    pub(super) cards: Vec<String>,
    /// Whether clones can share its disk instead of copying it.
    pub(super) is_shareable: bool,
    pub(super) tools: Tools,
}

/// Any VM can be cloned; only a template cannot be powered on by mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Template,
    Vm,
}

impl Source {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Template => "template",
            Self::Vm => "VM",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tools {
    Installed,
    Old,
    Missing,
    Unknown,
}

/// What the session may do to an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rights {
    /// `folder /DC0/vm`
    pub(super) object: String,
    pub(super) needs: Vec<Need>,
    /// The privileges that it lacks.
    pub(super) lacking: Vec<String>,
}

/// A VM or template of the datacenter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Machine {
    pub(super) name: String,
    pub(super) is_template: bool,
    /// The hatchery that its annotation names.
    pub(super) owner: Option<String>,
    pub(super) is_spare: bool,
    pub(super) is_doomed: bool,
    pub(super) job: Option<String>,
    /// Has, was given or will have.
    pub(super) addresses: Vec<IpAddr>,
    /// The id of its folder.
    pub(super) folder: Option<String>,
}

impl Machine {
    pub(super) fn is_of(&self, hatchery: &str) -> bool {
        self.owner.as_deref() == Some(hatchery)
    }
}
