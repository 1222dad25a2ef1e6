//! `[hatchery.vsphere]` itself: the vCenter, where VMs go, how long they live.

use std::fmt;
use std::time::Duration;

use roost_fleet::AddressPlan;
use roost_settings::{Key, Reader, SecretSource, Surroundings};
use roost_vim::{Thumbprint, TlsTrust};

use super::SECTION;
use super::address_file::{AddressFile, NetworkFile};
use super::keys::vsphere as keys;

/// How the vCenter is reached and where in it VMs go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vcenter {
    pub user: String,
    /// Host, or host and port, or a URL.
    pub endpoint: String,
    pub password: SecretSource,
    /// Which certificate of it is believed.
    pub trust: TlsTrust,
    pub place: Place,
}

/// Where VMs go. `None` is the only one there is, or the datacenter's own folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    pub datacenter: String,
    pub datastore: Option<String>,
    pub network: Option<String>,
    pub folder: Option<String>,
    pub resource_pool: Option<String>,
    pub card: CardType,
}

/// The types of network card that `cardName` may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CardType {
    #[default]
    E1000,
    E1000e,
    Vmxnet,
    Vmxnet2,
    Vmxnet3,
    Pcnet32,
    Sriov,
}

impl CardType {
    const ALL: [Self; 7] = [
        Self::E1000,
        Self::E1000e,
        Self::Vmxnet,
        Self::Vmxnet2,
        Self::Vmxnet3,
        Self::Pcnet32,
        Self::Sriov,
    ];

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|card| card.as_str().eq_ignore_ascii_case(text))
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::E1000 => "e1000",
            Self::E1000e => "e1000e",
            Self::Vmxnet => "vmxnet",
            Self::Vmxnet2 => "vmxnet2",
            Self::Vmxnet3 => "vmxnet3",
            Self::Pcnet32 => "pcnet32",
            Self::Sriov => "sriov",
        }
    }
}

impl fmt::Display for CardType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How long VMs live and how often that is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetimes {
    /// From start to end of a worker.
    pub worker: Duration,
    /// From start to registration.
    pub registration: Duration,
    /// A powered-off worker that CDS does not know is deleted this long after its start.
    pub finished_grace: Duration,
    /// Between two clean-ups.
    pub cleanup_interval: Duration,
    /// VMs being deleted at the same time; at least 1.
    pub deletions_at_once: usize,
}

/// `workerTTL` 0.
const WORKER_MINUTES: u64 = 120;
/// `workerRegistrationTTL` 0.
const REGISTRATION_MINUTES: u64 = 10;
/// `finishedWorkerGracePeriod` 0.
const FINISHED_SECONDS: u64 = 180;
/// `killAwolServersInterval` 0: two minutes as the specification says, though CDS 0.57 says one.
const CLEANUP_SECONDS: u64 = 120;

/// `maxConcurrentDeletions` 0: a server deletes some eight VMs at a time; the rest would only wait there instead of here.
const DELETIONS_AT_ONCE: usize = 16;

pub(super) fn vcenter(reader: &Reader<'_>, surroundings: &dyn Surroundings) -> Option<Vcenter> {
    let user = reader.mandatory(&keys::USER);
    let endpoint = reader.mandatory(&keys::ENDPOINT);
    if endpoint.as_deref().is_some_and(|endpoint| endpoint.contains(['@', ' '])) {
        reader.problem(&keys::ENDPOINT, "must be a host or a URL, without user name or password");
    }
    let password = reader.mandatory_secret(&keys::PASSWORD, surroundings);
    let trust = trust(reader);
    let datacenter = reader.mandatory(&keys::DATACENTER);
    let card = reader.text(&keys::CARD_NAME);
    let parsed = if card.is_empty() { Some(CardType::default()) } else { CardType::parse(&card) };
    if parsed.is_none() {
        let all = CardType::ALL.map(CardType::as_str).join(", ");
        reader.problem(&keys::CARD_NAME, format!("must be one of {all}; is {card:?}"));
    }
    let (datastore, network) = (reader.filled(&keys::DATASTORE), reader.filled(&keys::NETWORK));
    let (folder, resource_pool) =
        (reader.filled(&keys::FOLDER), reader.filled(&keys::RESOURCE_POOL));
    Some(Vcenter {
        user: user?,
        endpoint: endpoint?,
        password: password?.0,
        trust: trust?,
        place: Place {
            datacenter: datacenter?,
            datastore,
            network,
            folder,
            resource_pool,
            card: parsed?,
        },
    })
}

fn trust(reader: &Reader<'_>) -> Option<TlsTrust> {
    let mut ways = Vec::new();
    if reader.boolean(&keys::INSECURE) {
        ways.push((&keys::INSECURE, Some(TlsTrust::Insecure)));
    }
    if let Some(file) = reader.filled(&keys::CA_FILE) {
        ways.push((&keys::CA_FILE, Some(TlsTrust::CaFile(file.into()))));
    }
    if let Some(text) = reader.filled(&keys::THUMBPRINT) {
        let thumbprint = text.parse::<Thumbprint>();
        if let Err(error) = &thumbprint {
            reader.problem(&keys::THUMBPRINT, error.to_string());
        }
        ways.push((&keys::THUMBPRINT, thumbprint.ok().map(TlsTrust::Thumbprint)));
    }
    match ways.as_slice() {
        [] => Some(TlsTrust::System),
        [(_, trust)] => trust.clone(),
        [.., (key, _)] => {
            reader.problem(key, "is one way too many: use one of caFile, thumbprint and insecure");
            None
        }
    }
}

pub(super) fn lifetimes(reader: &Reader<'_>) -> Option<Lifetimes> {
    let worker = duration(reader, &keys::WORKER_TTL, 60, WORKER_MINUTES);
    let registration = duration(reader, &keys::WORKER_REGISTRATION_TTL, 60, REGISTRATION_MINUTES);
    let finished_grace = duration(reader, &keys::FINISHED_GRACE, 1, FINISHED_SECONDS);
    let cleanup_interval = duration(reader, &keys::KILL_AWOL_INTERVAL, 1, CLEANUP_SECONDS);
    Some(Lifetimes {
        worker: worker?,
        registration: registration?,
        finished_grace: finished_grace?,
        cleanup_interval: cleanup_interval?,
        deletions_at_once: match reader.amount(&keys::DELETIONS_AT_ONCE, u64::from(u16::MAX))? {
            0 => DELETIONS_AT_ONCE,
            some => usize::try_from(some).unwrap_or(DELETIONS_AT_ONCE),
        },
    })
}

/// A number of units of so many seconds each; 0 is `if_zero` units.
pub(super) fn duration(
    reader: &Reader<'_>,
    key: &Key,
    unit_secs: u64,
    if_zero: u64,
) -> Option<Duration> {
    let number = reader.amount(key, u64::from(u32::MAX))?;
    let number = if number == 0 { if_zero } else { number };
    Some(Duration::from_secs(number * unit_secs))
}

pub(super) fn addresses(reader: &Reader<'_>) -> Option<AddressPlan> {
    let networks = reader.tables(&keys::NETWORKS, "networks[].");
    let file = AddressFile {
        iprange: reader.text(&keys::IPRANGE),
        gateway: reader.text(&keys::GATEWAY),
        subnet_mask: reader.text(&keys::SUBNET_MASK),
        dns: reader.text(&keys::DNS),
        networks: networks
            .iter()
            .map(|network| NetworkFile {
                iprange: network.reader.text(&keys::NETWORK_IPRANGE),
                gateway: network.reader.text(&keys::NETWORK_GATEWAY),
                subnet_mask: network.reader.text(&keys::NETWORK_MASK),
            })
            .collect(),
    };
    let plan = file.plan();
    let (problems, warnings) = match &plan {
        Ok(plan) => (&[][..], plan.warnings()),
        Err(problems) => (problems.as_slice(), &[][..]),
    };
    for problem in problems {
        reader.problem_at(
            &format!("{}.{}", SECTION.root, problem.path),
            line_of(reader, &problem.path),
            &problem.message,
        );
    }
    for warning in warnings {
        reader.warn_at(
            &format!("{}.{}", SECTION.root, warning.path),
            line_of(reader, &warning.path),
            &warning.message,
        );
    }
    plan.ok()
}

/// The line of `gateway` or `networks[1].gateway`.
fn line_of(reader: &Reader<'_>, path: &str) -> Option<usize> {
    if let Some((index, name)) =
        path.strip_prefix("networks[").and_then(|rest| rest.split_once("]."))
    {
        let networks = reader.tables(&keys::NETWORKS, "networks[].");
        let key = [&keys::NETWORK_IPRANGE, &keys::NETWORK_GATEWAY, &keys::NETWORK_MASK]
            .into_iter()
            .find(|key| key.name() == name)?;
        return networks.get(index.parse::<usize>().ok()?)?.reader.line(key);
    }
    let legacy = [&keys::IPRANGE, &keys::GATEWAY, &keys::SUBNET_MASK, &keys::DNS];
    legacy.into_iter().find(|key| key.path == path).and_then(|key| reader.line(key))
}
