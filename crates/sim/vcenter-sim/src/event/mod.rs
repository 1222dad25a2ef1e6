//! Events: what has happened, in vCenter's classes and words, as far back as is kept.

mod call;
mod class;
mod collector;
mod description;
mod filter;
mod post;
mod posted;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use roost_clock::Clock;
use roost_vim_wire::types::UserSession;
use roost_vim_wire::{Field, MoRef, Value};

pub(crate) use call::call;
pub(crate) use collector::{MAX_COLLECTORS, checked_count, too_many_collectors};
pub(crate) use description::description;
pub(crate) use post::{Draft, Scene, fill, post, post_task, post_vm, vm_draft};
pub(crate) use posted::Posted;

use crate::options::Options;
use crate::service::manager;
use crate::world::World;

#[derive(Debug)]
pub(crate) struct Events {
    log: VecDeque<Arc<Posted>>,
    next_key: i32,
    retention: usize,
    collectors: collector::Collectors,
    /// Who is logged in, for the event of their leaving.
    sessions: BTreeMap<String, UserSession>,
    /// For what happens outside a call.
    clock: Option<Arc<dyn Clock>>,
}

impl Events {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            log: VecDeque::new(),
            next_key: 1,
            retention: options.event_retention.max(1),
            collectors: collector::Collectors::default(),
            sessions: BTreeMap::new(),
            clock: None,
        }
    }

    pub(crate) fn set_clock(&mut self, clock: Arc<dyn Clock>) {
        self.clock = Some(clock);
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.as_ref().map_or(Timestamp::UNIX_EPOCH, |clock| clock.now())
    }

    pub(crate) fn latest(&self) -> Option<Value> {
        self.log.back().and_then(|posted| posted.wire(false).to_value())
    }

    /// All events that are kept, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Posted>> {
        self.log.iter()
    }

    pub(crate) fn open_collectors(&self) -> usize {
        self.collectors.len()
    }

    fn push(&mut self, posted: Posted) -> Arc<Posted> {
        let posted = Arc::new(posted);
        self.log.push_back(Arc::clone(&posted));
        if self.log.len() > self.retention {
            self.log.pop_front();
        }
        posted
    }
}

pub(crate) fn session_started(world: &mut World, session: &UserSession) {
    let message = format!(
        "User {}@{} logged in as {}",
        session.user_name,
        session.ip_address.as_deref().unwrap_or("127.0.0.1"),
        session.user_agent.as_deref().unwrap_or_default()
    );
    let draft = Draft::new("UserLoginSessionEvent", message)
        .with("ipAddress", &session.ip_address.clone().unwrap_or_default())
        .with("userAgent", &session.user_agent)
        .with("locale", &session.locale)
        .with("sessionId", &session.key);
    post(world, &Scene::of(&session.user_name, session.login_time), draft);
    world.events.sessions.insert(session.key.clone(), session.clone());
}

/// Ends the session's collectors and posts that its user has left.
pub(crate) fn session_ended(world: &mut World, key: &str) {
    for collector in world.events.collectors.end_session(key) {
        world.inventory.leave_other(&collector);
    }
    let Some(session) = world.events.sessions.remove(key) else { return };
    let now = world.events.now();
    let ip = session.ip_address.unwrap_or_default();
    let message =
        format!("User {}@{ip} logged out (login time: {})", session.user_name, session.login_time);
    let draft = Draft::new("UserLogoutSessionEvent", message)
        .with("ipAddress", &ip)
        .with("userAgent", &session.user_agent)
        .with("sessionId", &session.key)
        .with("loginTime", &session.login_time);
    post(world, &Scene::of(&session.user_name, now), draft);
}

fn announce(world: &mut World, posted: &Arc<Posted>) {
    let events = manager(world.product, "EventManager");
    world.inventory.changes.modified(&events, ["latestEvent"]);
    let touched: Vec<MoRef> = world.events.collectors.take_in(&world.inventory, posted);
    for collector in touched {
        world.inventory.changes.modified(&collector, ["latestPage"]);
    }
}
