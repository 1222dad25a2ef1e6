//! Asking the vCenter. One login; everything after it goes through the read-only handle.

use std::sync::Arc;

use crate::annotation::{Annotation, HatcheryVms};
use crate::config::{Config, SystemSurroundings};
use roost_clock::Clock;
use roost_fleet::{Mirror, Vm};
use roost_vim::wire::MoRef;
use roost_vim::wire::methods::CurrentTime;
use roost_vim::wire::types::{
    DatastoreSummary, NetworkSummary, ResourcePoolRuntimeInfo, VirtualDevice,
    VirtualMachineToolsStatus as ToolsStatus,
};
use roost_vim::{
    CallError, Client, Credentials, Deadlines, FindError, Found, HttpTransport, NetworkBacking,
    Observer, Settings,
};
use tokio::time::{Instant, timeout};

use super::facts::{
    About, Datastore, Facts, Machine, Network, Place, Pool, PoolRuntime, Rights, Session, Source,
    Template, Tools,
};
use super::privileges::{self, Need};
use super::wish::Wish;
use roost_doctor::Fact;
use roost_doctor::Skew;
use roost_doctor::{CALL, INVENTORY, LOGIN, QUESTIONS, told, within};

/// `None` if it took longer than anybody waits.
pub(super) async fn collect(config: &Config, wish: &Wish, clock: &Arc<dyn Clock>) -> Option<Facts> {
    let client = match log_in(config, clock).await {
        Ok(client) => client,
        Err(session) => return Some(Facts::unknown(session, &wish.templates, "not logged in")),
    };
    let look = Look { observer: client.observer(), config, wish, clock };
    let facts = timeout(QUESTIONS, look.facts()).await;
    // Also when it was too slow: a session that is left behind counts against the server's limit.
    client.shutdown().await;
    facts.ok()
}

async fn log_in(config: &Config, clock: &Arc<dyn Clock>) -> Result<Client, Session> {
    let vcenter = &config.vcenter;
    let password = vcenter.password.read(&SystemSurroundings);
    let password = password.map_err(|error| Session::NoPassword(told(error)))?;
    let credentials = Credentials::new(&vcenter.user, password.expose());
    let no_api = |why| Session::NoApi(why);
    let settings = Settings::new(&vcenter.endpoint, credentials).map_err(|e| no_api(told(e)))?;
    let settings = Settings {
        deadlines: Deadlines { login: CALL, read: CALL, ..Deadlines::default() },
        operation_prefix: "roost-doctor".into(),
        ..settings
    };
    let transport = HttpTransport::new(&vcenter.trust).map_err(|e| no_api(told(e)))?;
    let connecting = Client::connect(settings, Arc::new(transport), Arc::clone(clock));
    match timeout(LOGIN, connecting).await {
        Ok(Ok(client)) => Ok(client),
        Ok(Err(CallError::LoginPaused { user, .. } | CallError::BadCredentials { user, .. })) => {
            Err(Session::Refused { user })
        }
        Ok(Err(CallError::Credentials { source })) => Err(Session::NoPassword(source.to_string())),
        Ok(Err(error)) => Err(no_api(told(error))),
        Err(_) => Err(no_api(format!("no login within {} s", LOGIN.as_secs()))),
    }
}

struct Look<'a> {
    observer: Observer,
    config: &'a Config,
    wish: &'a Wish,
    clock: &'a Arc<dyn Clock>,
}

impl Look<'_> {
    async fn facts(&self) -> Facts {
        let session = Session::Open(self.about());
        let skew = within(CALL, self.skew()).await.into();
        let place = &self.config.vcenter.place;
        let finder = match self.observer.finder(&place.datacenter).await {
            Ok(finder) => finder,
            Err(error) => {
                let why = "the datacenter is not known";
                let facts = Facts::unknown(session, &self.wish.templates, why);
                return Facts { skew, datacenter: not_found(error), ..facts };
            }
        };
        let text = |wanted: &Option<String>| wanted.clone().unwrap_or_default();
        let folder = finder.vm_folder(&text(&place.folder)).await;
        let pool = finder.resource_pool(&text(&place.resource_pool)).await;
        let datastore = finder.datastore(&text(&place.datastore)).await;
        let network = finder.network(&text(&place.network)).await;
        let (pool, reach) = match pool {
            Ok(found) => self.pool(found).await,
            Err(error) => (not_found(error), HostsHave::default()),
        };
        let datastore = match datastore {
            Ok(found) => self.datastore(found, &reach).await.into(),
            Err(error) => not_found(error),
        };
        let network = match network {
            Ok(found) => self.network(found, &reach).await.into(),
            Err(error) => not_found(error),
        };
        let mut templates = Vec::new();
        for wanted in &self.wish.templates {
            let seen = match finder.vm(&wanted.name).await {
                Ok(found) => self.template(found).await.into(),
                Err(error) => not_found(error),
            };
            templates.push((wanted.clone(), seen));
        }
        let datacenter = finder.datacenter().clone();
        let machines = self.machines(&datacenter.moref).await;
        let mut facts = Facts {
            session,
            skew,
            datacenter: Fact::Known(datacenter.into()),
            folder: folder.map_or_else(not_found, |found| Fact::Known(found.into())),
            pool,
            datastore,
            network,
            templates,
            rights: Fact::Skipped(String::new()),
            machines,
        };
        facts.rights = self.rights(&facts).await.into();
        facts
    }

    fn about(&self) -> About {
        let content = self.observer.content();
        About {
            user: self.config.vcenter.user.clone(),
            full_name: content.about.full_name.clone(),
            is_vcenter: content.about.api_type == "VirtualCenter",
            api_version: content.about.api_version.clone(),
            has_guest_operations: content.guest_operations_manager.is_some(),
        }
    }

    async fn skew(&self) -> Result<Skew, CallError> {
        let (asked, began) = (self.clock.now(), Instant::now());
        let theirs = self.observer.read(&CurrentTime { this: MoRef::service_instance() }).await?;
        Ok(Skew::of(theirs, asked, began.elapsed()))
    }

    /// The pool, and what the hosts below it have.
    async fn pool(&self, found: Found) -> (Fact<Pool>, HostsHave) {
        let read = self.observer.properties(&found.moref, &["runtime", "owner"]).await;
        let read = match read {
            Ok(read) => read,
            Err(error) => return (Fact::Failed(told(error)), HostsHave::default()),
        };
        let runtime = read.data::<ResourcePoolRuntimeInfo>("runtime").map(|runtime| {
            let amount = |amount: i64| u64::try_from(amount).unwrap_or_default();
            PoolRuntime {
                max_cpu_mhz: amount(runtime.cpu.max_usage),
                free_cpu_mhz: amount(runtime.cpu.unreserved_for_vm),
                max_memory_mb: amount(runtime.memory.max_usage) >> 20,
                free_memory_mb: amount(runtime.memory.unreserved_for_vm) >> 20,
                is_red: runtime.overall_status == "red",
            }
        });
        let hosts_have = match read.moref("owner") {
            None => HostsHave::default(),
            // Which hosts have what is worth knowing and no more: without it the names alone count.
            Some(owner) => match self.observer.properties(owner, &["datastore", "network"]).await {
                Err(_) => HostsHave::default(),
                Ok(read) => HostsHave(read.refs("datastore"), read.refs("network")),
            },
        };
        (Fact::Known(Pool { place: found.into(), runtime }), hosts_have)
    }

    async fn datastore(&self, found: Found, hosts_have: &HostsHave) -> Result<Datastore, String> {
        let read = self.observer.properties(&found.moref, &["summary"]).await.map_err(told)?;
        let summary = read
            .data::<DatastoreSummary>("summary")
            .ok_or("the vCenter does not tell how it is: give the user System.Read on it")?;
        let gb = |bytes: i64| u64::try_from(bytes).unwrap_or_default() >> 30;
        Ok(Datastore {
            is_at_pool: is_among(&found.moref, &hosts_have.0),
            place: found.into(),
            is_accessible: summary.accessible,
            maintenance: summary.maintenance_mode.clone().filter(|mode| mode != "normal"),
            capacity_gb: gb(summary.capacity),
            free_gb: gb(summary.free_space),
        })
    }

    async fn network(&self, found: Found, hosts_have: &HostsHave) -> Result<Network, String> {
        let backing = self.observer.network_backing(&found.moref).await.map_err(told)?;
        let read = self.observer.properties(&found.moref, &["summary"]).await.map_err(told)?;
        Ok(Network {
            is_at_pool: is_among(&found.moref, &hosts_have.1),
            place: found.into(),
            kind: match backing {
                NetworkBacking::Standard { .. } => "a standard network",
                NetworkBacking::Distributed { .. } => "a distributed port group",
                NetworkBacking::Opaque { .. } => "an opaque network",
            },
            is_accessible: read.data::<NetworkSummary>("summary").map(|summary| summary.accessible),
        })
    }

    async fn template(&self, found: Found) -> Result<Template, String> {
        let facts = self.observer.template_facts(&found.moref).await.map_err(told)?;
        let read = self.observer.properties(&found.moref, &["config.guestId"]).await;
        let read = read.map_err(told)?;
        Ok(Template {
            place: found.into(),
            source: if facts.is_template { Source::Template } else { Source::Vm },
            guest: read.str("config.guestId").unwrap_or("unknown guest").to_owned(),
            cpus: u32::try_from(facts.cpus).unwrap_or_default(),
            memory_mb: u64::try_from(facts.memory_mb).unwrap_or_default(),
            disks: facts.disks.len(),
            disk_gb: facts.disks.iter().map(disk_kb).sum::<u64>() >> 20,
            cards: facts.nics.iter().map(card).collect(),
            is_shareable: facts.current_snapshot.is_some() || facts.has_parent_disk(),
            tools: match &facts.tools {
                Some(ToolsStatus::NotInstalled) => Tools::Missing,
                Some(ToolsStatus::Old) => Tools::Old,
                Some(ToolsStatus::Ok | ToolsStatus::NotRunning) => Tools::Installed,
                _ => Tools::Unknown,
            },
        })
    }

    /// What the session may do to the objects that were found.
    async fn rights(&self, facts: &Facts) -> Result<Vec<Rights>, String> {
        let mut asked: Vec<(String, &Place, Vec<Need>)> = Vec::new();
        let of_folder = privileges::on_folder(self.wish);
        let pool = facts.pool.known().map(|pool| &pool.place);
        let datastore = facts.datastore.known().map(|datastore| &datastore.place);
        let network = facts.network.known().map(|network| &network.place);
        for (what, place, needs) in [
            ("datacenter", facts.datacenter.known(), privileges::ON_DATACENTER),
            ("folder", facts.folder.known(), &of_folder),
            ("resource pool", pool, privileges::ON_POOL),
            ("datastore", datastore, privileges::ON_DATASTORE),
            ("network", network, privileges::ON_NETWORK),
        ] {
            if let Some(place) = place {
                asked.push((format!("{what} {}", place.path), place, needs.to_vec()));
            }
        }
        for template in facts.templates.iter().filter_map(|(_, template)| template.known()) {
            let object = format!("{} {}", template.source.as_str(), template.place.path);
            asked.push((object, &template.place, privileges::on_template(template.source)));
        }
        let objects: Vec<MoRef> = asked.iter().map(|(_, place, _)| place.object.clone()).collect();
        let mut names: Vec<&str> =
            asked.iter().flat_map(|(.., needs)| needs).map(|need| need.privilege).collect();
        names.sort_unstable();
        names.dedup();
        let lacking = within(CALL, self.observer.lacking_privileges(&objects, &names)).await?;
        let rights = asked.into_iter().map(|(object, place, needs)| Rights {
            object,
            needs,
            lacking: lacking
                .iter()
                .find(|lacking| lacking.object == place.object)
                .map(|lacking| lacking.privileges.clone())
                .unwrap_or_default(),
        });
        Ok(rights.collect())
    }

    /// All VMs of the datacenter, by the same paged read that the service begins with.
    async fn machines(&self, datacenter: &MoRef) -> Fact<Vec<Machine>> {
        let mirror = Mirror::new(vec![Arc::new(HatcheryVms)], Arc::clone(self.clock));
        tokio::select! {
            biased;
            ended = mirror.follow(&self.observer, std::slice::from_ref(datacenter)) => {
                return Fact::Failed(ended.err().map_or_else(|| "the session ended".to_owned(), told));
            }
            complete = mirror.wait_complete(INVENTORY) => {
                if !complete {
                    let secs = INVENTORY.as_secs();
                    return Fact::Unanswered(format!("not all VMs were read within {secs} s"));
                }
            }
        }
        let mut machines: Vec<Machine> = mirror.snapshot().vms().map(|vm| machine(vm)).collect();
        machines.sort_by(|one, other| one.name.cmp(&other.name));
        Fact::Known(machines)
    }
}

/// Datastores and networks of the hosts that a resource pool is on.
#[derive(Debug, Default)]
struct HostsHave(Vec<MoRef>, Vec<MoRef>);

/// A search that was not answered says nothing of what is there.
fn not_found<T>(error: FindError) -> Fact<T> {
    let is_unanswered = matches!(
        &error,
        FindError::Read { source: CallError::Deadline { .. } | CallError::Connection { .. }, .. }
    );
    let why = told(error);
    if is_unanswered { Fact::Unanswered(why) } else { Fact::Failed(why) }
}

fn is_among(object: &MoRef, all: &[MoRef]) -> Option<bool> {
    (!all.is_empty()).then(|| all.contains(object))
}

fn machine(vm: &Vm) -> Machine {
    let annotation = Annotation::of(vm);
    Machine {
        name: vm.name.to_string(),
        is_template: vm.template,
        owner: vm.owner().map(ToString::to_string),
        is_spare: annotation.as_ref().is_some_and(|annotation| annotation.provisioning),
        is_doomed: annotation.is_some_and(|annotation| annotation.doomed.is_some()),
        job: vm.request().map(ToString::to_string),
        addresses: vm.addresses(),
        folder: vm.parent.as_ref().map(ToString::to_string),
    }
}

fn disk_kb(disk: &VirtualDevice) -> u64 {
    disk.capacity_in_kb.and_then(|kb| kb.try_into().ok()).unwrap_or_default()
}

/// `VirtualVmxnet3` is what people call vmxnet3.
fn card(device: &VirtualDevice) -> String {
    device.class.trim_start_matches("Virtual").trim_end_matches("EthernetCard").to_lowercase()
}

impl From<Found> for Place {
    fn from(found: Found) -> Self {
        Self { path: found.path, object: found.moref }
    }
}
