use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use roost_cds::{HatcheryKey, PublicKey, Secret, jwt, v1, v2};
use roost_clock::Random;
use serde::Serialize;

use crate::options::{Consumer, Options};
use crate::reply::Refusal;

/// Who may do what: consumers, services, hatcheries and sessions.
#[derive(Debug)]
pub(crate) struct Access {
    pub(crate) consumers: Vec<ConsumerRow>,
    pub(crate) services: BTreeMap<i64, ServiceRow>,
    pub(crate) hatcheries: BTreeMap<String, HatcheryRow>,
    sessions: BTreeMap<String, Session>,
}

#[derive(Debug)]
pub(crate) struct ConsumerRow {
    pub(crate) given: Consumer,
    /// A consumer is bound to one service; `None` until it signs in, and after the API deleted the service.
    pub(crate) service: Option<i64>,
}

#[derive(Debug)]
pub(crate) struct ServiceRow {
    pub(crate) service: v1::Service,
    pub(crate) key: PublicKey,
    pub(crate) groups: Vec<String>,
    pub(crate) last_beat: Timestamp,
}

impl ServiceRow {
    /// Whether one of its groups may see this.
    pub(crate) fn sees(&self, groups: &[v1::Group]) -> bool {
        let shared = self.groups.iter().any(|group| group == v1::Group::SHARED_INFRA);
        shared || groups.iter().any(|group| self.groups.contains(&group.name))
    }
}

#[derive(Debug)]
pub(crate) struct HatcheryRow {
    pub(crate) token: Secret,
    pub(crate) region: Option<String>,
    pub(crate) hatchery: v2::Hatchery,
    pub(crate) key: Option<PublicKey>,
}

impl HatcheryRow {
    /// The API looks for `osArch` at the top of the configuration only.
    pub(crate) fn os_arch(&self) -> Vec<&str> {
        match self.hatchery.config["osArch"].as_array() {
            Some(list) => list.iter().filter_map(|item| item.as_str()).collect(),
            None => vec!["linux/amd64"],
        }
    }
}

/// To whom a session belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Who {
    /// A V1 consumer, by its place in the list.
    Consumer(usize),
    /// A V2 hatchery, by name.
    Hatchery(String),
    /// A worker, by id.
    Worker(String),
}

#[derive(Debug)]
struct Session {
    who: Who,
    expires: Timestamp,
}

#[derive(Serialize)]
struct SessionClaims<'a> {
    #[serde(rename = "ID")]
    id: &'a str,
    #[serde(rename = "TokenID")]
    token_id: &'a str,
    iss: &'a str,
    sub: &'a str,
    jti: &'a str,
    iat: i64,
    exp: i64,
}

impl Access {
    pub(crate) fn new(options: &Options, random: &mut Random) -> Self {
        let consumers = options.consumers.iter();
        let hatcheries = options.hatcheries.iter().map(|given| {
            let (id, name) = (random.uuid(), given.name.clone());
            let row = HatcheryRow {
                token: given.token.clone(),
                region: given.region.clone(),
                hatchery: v2::Hatchery { id, name, ..v2::Hatchery::default() },
                key: None,
            };
            (given.name.clone(), row)
        });
        Self {
            consumers: consumers
                .map(|given| ConsumerRow { given: given.clone(), service: None })
                .collect(),
            services: BTreeMap::new(),
            hatcheries: hatcheries.collect(),
            sessions: BTreeMap::new(),
        }
    }

    /// Opens a session and gives its token.
    pub(crate) fn open(
        &mut self,
        who: Who,
        now: Timestamp,
        lifetime: Duration,
        random: &mut Random,
        key: &HatcheryKey,
    ) -> Result<Secret, Refusal> {
        let id = random.uuid();
        let iat = now.as_second();
        let exp = iat.saturating_add_unsigned(lifetime.as_secs());
        let subject = format!("{who:?}");
        let claims =
            SessionClaims { id: &id, token_id: "", iss: "cds", sub: &subject, jti: &id, iat, exp };
        let token = jwt::sign(&claims, key)
            .map_err(|error| Refusal::new(500, 1, format!("signing a session: {error}")))?;
        let expires = Timestamp::from_second(exp).unwrap_or(Timestamp::MAX);
        self.sessions.insert(token.expose().to_owned(), Session { who, expires });
        Ok(token)
    }

    /// Whose session this is; nobody's if it is over.
    pub(crate) fn who(&self, token: &Secret, now: Timestamp) -> Option<Who> {
        let session = self.sessions.get(token.expose())?;
        (now < session.expires).then(|| session.who.clone())
    }

    pub(crate) fn close(&mut self, token: &Secret) {
        self.sessions.remove(token.expose());
    }

    pub(crate) fn close_all_of(&mut self, who: &Who) {
        self.sessions.retain(|_, session| session.who != *who);
    }

    /// Ends all sessions of hatcheries, as a restart of the API with a new signing key does.
    pub(crate) fn forget_hatchery_sessions(&mut self) {
        self.sessions.retain(|_, session| matches!(session.who, Who::Worker(_)));
    }

    pub(crate) fn drop_expired(&mut self, now: Timestamp) {
        self.sessions.retain(|_, session| now < session.expires);
    }

    /// The service of a V1 consumer. Without one it may do nothing that a hatchery does.
    pub(crate) fn service_of(&self, who: &Who) -> Result<&ServiceRow, Refusal> {
        let Who::Consumer(index) = who else {
            return Err(Refusal::forbidden("not a V1 consumer"));
        };
        self.consumers
            .get(*index)
            .and_then(|consumer| self.services.get(&consumer.service?))
            .ok_or_else(|| Refusal::forbidden("no service"))
    }

    pub(crate) fn service_of_mut(&mut self, who: &Who) -> Result<&mut ServiceRow, Refusal> {
        let id = self.service_of(who)?.service.id;
        self.services.get_mut(&id).ok_or_else(|| Refusal::forbidden("no service"))
    }

    /// Regions are those that a hatchery may start workers for.
    pub(crate) fn has_region(&self, region: &str) -> bool {
        self.hatcheries.values().any(|row| row.region.as_deref() == Some(region))
    }

    pub(crate) fn hatchery_of(&self, who: &Who) -> Result<&HatcheryRow, Refusal> {
        let Who::Hatchery(name) = who else {
            return Err(Refusal::forbidden("not a V2 hatchery"));
        };
        self.hatcheries.get(name).ok_or_else(|| Refusal::forbidden("unknown hatchery"))
    }

    pub(crate) fn hatchery_of_mut(&mut self, who: &Who) -> Result<&mut HatcheryRow, Refusal> {
        let name = self.hatchery_of(who)?.hatchery.name.clone();
        self.hatcheries.get_mut(&name).ok_or_else(|| Refusal::forbidden("unknown hatchery"))
    }

    /// The service of this name, for workers that say by whom they were started.
    pub(crate) fn service_named(&self, name: &str) -> Option<&ServiceRow> {
        self.services.values().find(|row| row.service.name == name)
    }

    /// Removes a service, as the API does when its heart stopped. The consumer's session stays.
    pub(crate) fn delete_service(&mut self, id: i64) {
        self.services.remove(&id);
        for consumer in &mut self.consumers {
            if consumer.service == Some(id) {
                consumer.service = None;
            }
        }
    }
}
