//! One login per vCenter and user, however many pools name it.

use std::collections::HashMap;
use std::fmt::Debug;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use roost_fleet::{AddressPlan, Fleet, Limits, OpenError};
use roost_supervise::Chain;
use roost_vim::wire::MoRef;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::login::Login;
use super::marker::FORGE;

/// A vCenter that could not be reached is tried again after this time. One that refuses the login counts it towards a locked account, so it is
/// long.
const AGAIN: Duration = Duration::from_mins(2);

const FOLLOW_AGAIN: Duration = Duration::from_secs(10);

/// Opens vCenters. The binary and tests have their own ways.
pub trait Connect: Debug + Send + Sync + 'static {
    /// The fleet must recognise [`ForgeVms`](super::ForgeVms).
    fn connect(&self, login: &Login) -> Connecting;
}

pub type Connecting = Pin<Box<dyn Future<Output = Result<Fleet, OpenError>> + Send>>;

/// One vCenter that is open.
#[derive(Debug, Clone)]
pub struct Site {
    pub fleet: Fleet,
}

impl Site {
    /// Wants to see what is in this datacenter.
    pub fn cover(&self, datacenter: &MoRef) {
        self.fleet.cover(datacenter);
    }
}

/// Whether a vCenter can be worked with.
#[derive(Debug, Clone)]
pub enum SiteState {
    Open(Site),
    Connecting,
    Failed { why: String },
}

#[derive(Debug)]
enum Slot {
    Open { site: Site, follow: AbortHandle },
    Connecting,
    Failed { why: String, at: Instant },
}

/// All vCenters of this process. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Sites {
    shared: Arc<Shared>,
}

struct Shared {
    connect: Arc<dyn Connect>,
    slots: Mutex<HashMap<(String, String), (Login, Slot)>>,
    /// Told when one is open, or could not be opened, and of every change in one.
    told: Arc<dyn Fn(&Site) + Send + Sync>,
    failed: Arc<dyn Fn() + Send + Sync>,
}

impl Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sites").finish_non_exhaustive()
    }
}

impl Sites {
    /// `told` is called with every vCenter that was opened; `failed` when one could not be.
    pub fn new(
        connect: Arc<dyn Connect>,
        told: impl Fn(&Site) + Send + Sync + 'static,
        failed: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let (told, failed) = (Arc::new(told), Arc::new(failed));
        Self { shared: Arc::new(Shared { connect, slots: Mutex::default(), told, failed }) }
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<(String, String), (Login, Slot)>> {
        self.shared.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The vCenter of a login. Begins to open it if nobody has; a changed password opens it anew.
    pub fn of(&self, login: &Login) -> SiteState {
        let key = (login.server.clone(), login.username.clone());
        let mut slots = self.slots();
        if let Some((known, slot)) = slots.get(&key) {
            match slot {
                Slot::Open { site, .. } if known == login => return SiteState::Open(site.clone()),
                Slot::Connecting => return SiteState::Connecting,
                Slot::Failed { why, at } if known == login && at.elapsed() < AGAIN => {
                    return SiteState::Failed { why: why.clone() };
                }
                Slot::Open { .. } | Slot::Failed { .. } => {}
            }
        }
        let before = slots.insert(key.clone(), (login.clone(), Slot::Connecting));
        drop(slots);
        if let Some((_, Slot::Open { site, follow })) = before {
            follow.abort();
            tokio::spawn(async move { site.fleet.shut_down().await });
        }
        let (sites, login) = (self.clone(), login.clone());
        tokio::spawn(async move { sites.open(key, login).await });
        SiteState::Connecting
    }

    async fn open(&self, key: (String, String), login: Login) {
        match self.shared.connect.connect(&login).await {
            Ok(fleet) => {
                fleet.open_account(FORGE, Limits::default(), AddressPlan::default());
                let site = Site { fleet };
                let following = site.fleet.clone();
                let follow = tokio::spawn(async move {
                    while let Err(error) = following.follow().await {
                        tracing::error!("the view of the vCenter ended: {}", Chain(&error));
                        tokio::time::sleep(FOLLOW_AGAIN).await;
                    }
                });
                let slot = Slot::Open { site: site.clone(), follow: follow.abort_handle() };
                self.slots().insert(key, (login, slot));
                (self.shared.told)(&site);
            }
            Err(error) => {
                let why = Chain(&error).to_string();
                tracing::warn!(server = login.server, "no vCenter: {why}");
                self.slots().insert(key, (login, Slot::Failed { why, at: Instant::now() }));
                (self.shared.failed)();
            }
        }
    }

    /// All that are open.
    pub fn open_ones(&self) -> Vec<Site> {
        let slots = self.slots();
        let open = slots.values().filter_map(|(_, slot)| match slot {
            Slot::Open { site, .. } => Some(site.clone()),
            Slot::Connecting | Slot::Failed { .. } => None,
        });
        open.collect()
    }

    /// Stops to look, as a crash does.
    pub(crate) fn abandon(&self) {
        for (_, (_, slot)) in self.slots().drain() {
            if let Slot::Open { follow, .. } = slot {
                follow.abort();
            }
        }
    }

    /// Logs out everywhere.
    pub async fn shut_down(&self) {
        let all: Vec<_> = self.slots().drain().collect();
        for (_, (_, slot)) in all {
            if let Slot::Open { site, follow } = slot {
                follow.abort();
                site.fleet.shut_down().await;
            }
        }
    }
}
