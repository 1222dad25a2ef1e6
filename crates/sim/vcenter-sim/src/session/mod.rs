//! Who is logged in, for how long, and what ends with it.

mod calls;
mod tickets;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use roost_clock::Random;
use roost_vim_wire::types::UserSession;

pub(crate) use calls::{call, clone_session, is_accepted, login, property};

use crate::collector::Pages;
use crate::door::Vcenter;
use crate::options::Options;
use crate::world::{Handle, World};

/// A session's key, as `UserSession.key` shows it. The cookie is another secret.
pub(crate) type SessionKey = Arc<str>;

#[derive(Debug)]
pub(crate) struct Sessions {
    /// Tickets with which a session can be opened again, and whose it was.
    pub clone_tickets: std::collections::BTreeMap<String, SessionKey>,
    live: BTreeMap<SessionKey, Session>,
    by_cookie: HashMap<String, SessionKey>,
    tickets: tickets::Tickets,
    random: Random,
    pub idle_limit: Duration,
    max: usize,
    /// What `SetLocale` and `UpdateServiceMessage` would set; every session sees it.
    pub message: String,
}

#[derive(Debug)]
pub(crate) struct Session {
    pub key: SessionKey,
    cookie: String,
    user: String,
    locale: String,
    login_time: Timestamp,
    last_active: Timestamp,
    ip: String,
    user_agent: Option<String>,
    calls: i64,
    /// The number of the idle timer that counts; older ones have been replaced.
    timer: u64,
    /// Property answers that are not read to their end.
    pub pages: Pages,
}

/// Who logs in from where.
#[derive(Debug, Clone, Default)]
pub(crate) struct Newcomer {
    pub user: String,
    pub locale: Option<String>,
    pub ip: String,
    pub user_agent: Option<String>,
}

impl Session {
    pub(crate) fn user(&self) -> &str {
        &self.user
    }

    fn is_idle(&self, now: Timestamp, limit: Duration) -> bool {
        SignedDuration::try_from(limit)
            .is_ok_and(|limit| now.duration_since(self.last_active) >= limit)
    }

    pub(crate) fn as_user_session(&self) -> UserSession {
        UserSession {
            key: self.key.to_string(),
            user_name: self.user.clone(),
            full_name: self.user.clone(),
            login_time: self.login_time,
            last_active_time: self.last_active,
            locale: self.locale.clone(),
            message_locale: self.locale.clone(),
            extension_session: Some(false),
            ip_address: Some(self.ip.clone()),
            user_agent: self.user_agent.clone(),
            call_count: Some(self.calls),
        }
    }
}

impl Sessions {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            clone_tickets: std::collections::BTreeMap::new(),
            live: BTreeMap::new(),
            by_cookie: HashMap::new(),
            tickets: tickets::Tickets::default(),
            random: Random::from_seed(options.seed).fork("session"),
            idle_limit: options.session_idle_limit,
            max: options.max_sessions,
            message: String::new(),
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.live.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.live.len() >= self.max
    }

    pub(crate) fn is_live(&self, key: &str) -> bool {
        self.live.contains_key(key)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Session> {
        self.live.get(key)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Session> {
        self.live.get_mut(key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Session> {
        self.live.values()
    }

    pub(crate) fn keys(&self) -> Vec<SessionKey> {
        self.live.keys().cloned().collect()
    }

    /// The session that a cookie stands for, whether or not its idle limit has passed.
    pub(crate) fn of_cookie(&self, cookie: &str) -> Option<&SessionKey> {
        self.by_cookie.get(cookie)
    }

    /// Whether the idle limit of a session has passed.
    pub(crate) fn is_idle(&self, key: &str, now: Timestamp) -> bool {
        self.live.get(key).is_some_and(|session| session.is_idle(now, self.idle_limit))
    }

    /// Notes a call in a session.
    pub(crate) fn touch(&mut self, key: &str, now: Timestamp) {
        if let Some(session) = self.live.get_mut(key) {
            session.last_active = now;
            session.calls += 1;
        }
    }

    /// A new id for an object that lives in a session: `session[<key>]<uuid>`.
    pub(crate) fn scoped_id(&mut self, key: &str) -> String {
        format!("session[{key}]{}", self.random.uuid())
    }

    /// A new secret: a cookie, a continuation token, a ticket.
    pub(crate) fn secret(&mut self) -> String {
        self.random.uuid()
    }

    fn open(&mut self, newcomer: Newcomer, now: Timestamp) -> &Session {
        let key: SessionKey = self.random.uuid().into();
        let cookie = format!("{:016x}{:016x}", self.random.next_u64(), self.random.next_u64());
        self.by_cookie.insert(cookie.clone(), Arc::clone(&key));
        let session = Session {
            key: Arc::clone(&key),
            cookie,
            user: newcomer.user,
            locale: newcomer
                .locale
                .filter(|locale| !locale.is_empty())
                .unwrap_or_else(|| "en".into()),
            login_time: now,
            last_active: now,
            ip: newcomer.ip,
            user_agent: newcomer.user_agent,
            calls: 1,
            timer: 0,
            pages: Pages::default(),
        };
        self.live.entry(key).or_insert(session)
    }
}

/// Opens a session and starts its idle timer. Returns it with the value of its cookie.
pub(crate) fn open(
    world: &mut World,
    handle: &Handle,
    newcomer: Newcomer,
) -> (UserSession, String) {
    let session = world.sessions.open(newcomer, handle.now());
    let (key, shown, cookie) =
        (Arc::clone(&session.key), session.as_user_session(), session.cookie.clone());
    world.counters.logins += 1;
    watch_idle(world, handle, key);
    crate::model::session_started(world, &shown);
    (shown, cookie)
}

/// Ends a session and all that lives in it. `false` if there is none.
pub(crate) fn end(world: &mut World, key: &str) -> bool {
    let Some(session) = world.sessions.live.remove(key) else { return false };
    world.sessions.by_cookie.remove(&session.cookie);
    world.sessions.tickets.drop_session(key);
    world.collectors.end_session(key);
    world.views.end_session(key);
    crate::model::session_ended(world, key);
    true
}

pub(crate) fn end_all(world: &mut World) {
    for key in world.sessions.keys() {
        end(world, &key);
    }
}

/// A new idle limit holds for open sessions too.
pub(crate) fn set_idle_limit(world: &mut World, handle: &Handle, limit: Duration) {
    world.sessions.idle_limit = limit;
    for key in world.sessions.keys() {
        watch_idle(world, handle, key);
    }
}

/// Ends the session when its idle limit has passed. There is one timer for each session: a new one replaces it.
fn watch_idle(world: &mut World, handle: &Handle, key: SessionKey) {
    let limit = world.sessions.idle_limit;
    let Some(session) = world.sessions.get_mut(&key) else { return };
    let used = handle.now().duration_since(session.last_active);
    let left = limit.saturating_sub(Duration::try_from(used).unwrap_or_default());
    if left.is_zero() {
        end(world, &key);
        return;
    }
    session.timer += 1;
    let timer = session.timer;
    handle.after(left, move |world, handle| {
        // A call since then has moved the moment, so look again.
        if world.sessions.get(&key).is_some_and(|session| session.timer == timer) {
            watch_idle(world, handle, key);
        }
    });
}

impl Vcenter {
    /// Who is logged in.
    pub fn sessions(&self) -> Vec<UserSession> {
        self.handle.with(|world| world.sessions.iter().map(Session::as_user_session).collect())
    }

    /// Ends one session, as if its idle limit had passed. `false` if there is no such session.
    pub fn expire_session(&self, key: &str) -> bool {
        self.handle.with(|world| end(world, key))
    }
}
