//! One vCenter and everything that doors share about it.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use roost_clock::Clock;
use roost_supervise::Chain;
use roost_vim::wire::MoRef;
use roost_vim::{CallError, Client, Observer, Remedy, Settings, Transport};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use crate::{
    AddressPlan, CloseUp, DoorName, Guard, GuardRules, Journal, JournalSize, Ledger, LedgerTimes,
    Limits, Machines, Mirror, PhaseDeadlines, PhaseHook, Recognise, Timelines,
};

/// A vCenter that does not answer at the start is asked again for this long.
const PATIENCE: Duration = Duration::from_mins(5);
const PAUSE: Duration = Duration::from_secs(10);

/// What a fleet is opened with.
#[derive(Debug)]
pub struct FleetSettings {
    /// Address, login and trust; its hooks count calls.
    pub vcenter: Settings,
    pub transport: Arc<dyn Transport>,
    pub clock: Arc<dyn Clock>,
    /// How each door recognises its VMs. The first that claims a VM has it.
    pub doors: Vec<Arc<dyn Recognise>>,
    /// Hears of every phase that ends.
    pub phases: Option<Arc<dyn PhaseHook>>,
    pub rules: FleetRules,
}

/// What a configuration may say about the core itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FleetRules {
    pub guard: GuardRules,
    pub journal: JournalSize,
    pub deadlines: PhaseDeadlines,
    pub ledger: LedgerTimes,
}

/// Why a vCenter cannot be worked with.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Trying again does not help and may lock the account.
    #[error("the vCenter refuses the login of {user}")]
    LoginRefused { user: String },
    #[error("connecting to the vCenter")]
    Connect { source: CallError },
}

impl OpenError {
    /// What keeps a vCenter from being asked at all, such as an address that is none.
    pub fn unusable(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        let source = Arc::new(std::io::Error::other(error));
        Self::Connect { source: CallError::Connection { method: "Login", source } }
    }
}

/// One vCenter: one login, one property stream, one ledger, however many doors there are. A handle; clones share it.
#[derive(Debug, Clone)]
pub struct Fleet {
    shared: Arc<Shared>,
    /// Whoever has it may work with it and not log out.
    is_lent: bool,
}

#[derive(Debug)]
struct Shared {
    client: Client,
    clock: Arc<dyn Clock>,
    mirror: Mirror,
    close_up: CloseUp,
    machines: Machines,
    ledger: SharedLedger,
    journal: Journal,
    timelines: Timelines,
    guard: GuardRules,
    containers: Mutex<Vec<MoRef>>,
    covered: Notify,
    following: tokio::sync::Mutex<()>,
}

/// The ledger behind its lock. Nobody waits for anything while holding it.
#[derive(Debug, Clone, Default)]
pub struct SharedLedger(Arc<Mutex<Ledger>>);

impl SharedLedger {
    pub fn new(ledger: Ledger) -> Self {
        Self(Arc::new(Mutex::new(ledger)))
    }

    pub fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fleet {
    /// Logs in. A server that is away is waited for; one that refuses us is not: every further login with a wrong password is one more towards a
    /// locked account.
    pub async fn open(settings: FleetSettings) -> Result<Self, OpenError> {
        let FleetSettings { vcenter, transport, clock, doors, phases, rules } = settings;
        let client = connect(vcenter, transport, &clock).await?;
        Ok(Self::over(client, clock, doors, phases, rules))
    }

    /// The same over a client that is logged in.
    pub fn over(
        client: Client,
        clock: Arc<dyn Clock>,
        doors: Vec<Arc<dyn Recognise>>,
        phases: Option<Arc<dyn PhaseHook>>,
        rules: FleetRules,
    ) -> Self {
        let mirror = Mirror::new(doors, Arc::clone(&clock));
        let timelines = Timelines::new(Arc::clone(&clock), phases);
        let machines =
            Machines::new(client.clone(), mirror.clone(), timelines.clone(), rules.deadlines);
        let shared = Shared {
            client,
            clock,
            close_up: CloseUp::new(mirror.clone()),
            mirror,
            machines,
            ledger: SharedLedger::new(Ledger::new(rules.ledger)),
            journal: Journal::new(rules.journal),
            timelines,
            guard: rules.guard,
            containers: Mutex::default(),
            covered: Notify::new(),
            following: tokio::sync::Mutex::default(),
        };
        Self { shared: Arc::new(shared), is_lent: false }
    }

    /// The same fleet for a door that shares it: what that door shuts down goes on for the others.
    #[must_use]
    pub fn lent(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), is_lent: true }
    }

    /// Whether both are one: one login, one mirror, one ledger.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Lets a door in: opens its account in the ledger.
    pub fn open_account(&self, door: DoorName, limits: Limits, addresses: AddressPlan) {
        self.ledger().open_account(door, limits, addresses);
    }

    /// The VMs and resource pools below this datacenter, folder or cluster are seen from here on.
    pub fn cover(&self, container: &MoRef) {
        let mut containers = self.containers();
        if !containers.contains(container) {
            containers.push(container.clone());
            self.shared.covered.notify_one();
        }
    }

    fn containers(&self) -> MutexGuard<'_, Vec<MoRef>> {
        self.shared.containers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the mirror and the close-up up to date until the client is shut down; ends with an error if it cannot be. Every door may call it in a task of its own: one of
    /// them follows, the others wait to take its place.
    pub async fn follow(&self) -> Result<(), CallError> {
        let _alone = self.shared.following.lock().await;
        let observer = self.observer();
        let mut close_up = pin!(self.shared.close_up.follow(&observer));
        loop {
            let containers = self.containers().clone();
            let more = async {
                while *self.containers() == containers {
                    self.shared.covered.notified().await;
                }
            };
            if containers.is_empty() {
                more.await;
                continue;
            }
            tokio::select! {
                biased;
                ended = self.shared.mirror.follow(&observer, &containers) => return ended,
                ended = &mut close_up => return ended,
                () = more => {}
            }
        }
    }

    /// Reads only: who has this cannot change anything.
    pub fn observer(&self) -> Observer {
        self.shared.client.observer()
    }

    /// For what changes something that is no VM: folders, files, resource pools. VMs are changed by [`machines`](Self::machines).
    pub fn client(&self) -> &Client {
        &self.shared.client
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.clock
    }

    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    pub fn mirror(&self) -> &Mirror {
        &self.shared.mirror
    }

    /// Everything about the VMs that doors look at closely.
    pub fn close_up(&self) -> &CloseUp {
        &self.shared.close_up
    }

    pub fn machines(&self) -> &Machines {
        &self.shared.machines
    }

    pub fn journal(&self) -> &Journal {
        &self.shared.journal
    }

    pub fn timelines(&self) -> &Timelines {
        &self.shared.timelines
    }

    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.shared.ledger.lock()
    }

    pub fn shared_ledger(&self) -> SharedLedger {
        self.shared.ledger.clone()
    }

    /// A guard over the VMs of one owner, by the rules of this fleet.
    pub fn guard(&self, owner: &str) -> Guard {
        Guard::new(owner, self.shared.guard.clone())
    }

    /// Logs out. Does nothing to a fleet that is lent.
    pub async fn shut_down(&self) {
        if self.is_lent {
            return;
        }
        self.shared.client.clone().shutdown().await;
    }
}

async fn connect(
    settings: Settings,
    transport: Arc<dyn Transport>,
    clock: &Arc<dyn Clock>,
) -> Result<Client, OpenError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let connecting =
            Client::connect(settings.clone(), Arc::clone(&transport), Arc::clone(clock));
        match connecting.await {
            Ok(client) => return Ok(client),
            Err(CallError::LoginPaused { user, .. } | CallError::BadCredentials { user, .. }) => {
                return Err(OpenError::LoginRefused { user });
            }
            Err(error) if error.remedy() != Remedy::GiveUp && Instant::now() + PAUSE < deadline => {
                tracing::warn!("the vCenter is asked again in {PAUSE:?}: {}", Chain(&error));
                sleep(PAUSE).await;
            }
            Err(source) => return Err(OpenError::Connect { source }),
        }
    }
}
