//! The in-process door, which the wire door goes through as well.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, COOKIE};
use http::{HeaderMap, Request, Response};
use roost_cds::{
    JobId, KeyError, Secret, SendFuture, Socket, SocketError, SocketFuture, SocketPeer, Transport,
};
use roost_clock::Clock;
use tokio::time;
use url::form_urlencoded;

use crate::control_endpoint;
use crate::faults::{Effect, EventEffect};
use crate::incoming::Incoming;
use crate::options::Options;
use crate::reply::{Refusal, Reply, respond};
use crate::routes::{self, Auth, V1_SOCKET, V2_SOCKET};
use crate::world::{Delivery, SocketId, Who, World};

/// Frames that may wait for a client of a websocket.
const SOCKET_CAPACITY: usize = 4096;

/// So that a pause of zero does not keep a core busy.
const LEAST_LOOK: Duration = Duration::from_millis(10);

/// A simulated CDS API. Cheap to clone; it ends with its last clone.
///
/// It is a [`Transport`], so a client can be given it in place of the network.
#[derive(Clone)]
pub struct CdsApi {
    shared: Arc<Mutex<World>>,
}

/// Nothing of the world, which is full of tokens.
impl fmt::Debug for CdsApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CdsApi").finish_non_exhaustive()
    }
}

impl CdsApi {
    /// Starts the API's own timers. Needs a tokio runtime; `clock` must run with tokio's, as
    /// [`SimClock`](roost_clock::SimClock) and real time do.
    pub fn start(options: Options, clock: Arc<dyn Clock>) -> Result<Self, KeyError> {
        let look = options.timings.look.max(LEAST_LOOK);
        let shared = Arc::new(Mutex::new(World::new(options, clock)?));
        tokio::spawn(tick(Arc::downgrade(&shared), look));
        Ok(Self { shared })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, World> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the world and then pushes what follows from it to websockets.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.lock();
        let result = change(&mut world);
        let events = std::mem::take(&mut world.outbox);
        let deliveries: Vec<Delivery> =
            events.iter().flat_map(|event| world.deliveries(event)).collect();
        for delivery in deliveries {
            self.deliver(&mut world, delivery);
        }
        result
    }

    fn deliver(&self, world: &mut World, delivery: Delivery) {
        let Delivery { socket, frame, effect } = delivery;
        match effect {
            None => world.sockets.send(socket, &frame),
            Some(EventEffect::Lose) => {}
            Some(EventEffect::Close(code)) => world.sockets.close(socket, code),
            Some(EventEffect::Late(by)) => self.send_later(socket, frame, by),
            Some(EventEffect::Duplicate { more, apart }) => {
                world.sockets.send(socket, &frame);
                for copy in 1..=more {
                    self.send_later(socket, frame.clone(), apart * copy);
                }
            }
        }
    }

    fn send_later(&self, socket: SocketId, frame: String, by: Duration) {
        let api = Arc::downgrade(&self.shared);
        tokio::spawn(async move {
            time::sleep(by).await;
            if let Some(shared) = api.upgrade() {
                CdsApi { shared }.lock().sockets.send(socket, &frame);
            }
        });
    }

    /// Answers a request. An error is a connection that breaks. What a request does is done even if nobody waits for the
    /// answer any more, as on a real server.
    pub async fn handle(&self, request: Request<Bytes>) -> io::Result<Response<Bytes>> {
        let api = self.clone();
        let handling = tokio::spawn(async move { api.answer(request).await });
        handling.await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    async fn answer(&self, request: Request<Bytes>) -> io::Result<Response<Bytes>> {
        let (parts, body) = request.into_parts();
        let (method, path) = (parts.method.as_str(), parts.uri.path());
        if let Some(place) = path.strip_prefix(control_endpoint::PREFIX)
            && self.lock().options.control_endpoint
        {
            return Ok(control_endpoint::answer(self, method, place, &body));
        }
        let effects = self.meet(method, path).await?;
        let sent = body.len();
        let has_cookie = parts.headers.contains_key(COOKIE);
        let query = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
        let incoming = Incoming {
            params: Vec::new(),
            query: query.into_owned().collect(),
            body,
            token: bearer(&parts.headers),
            who: None,
            booking_race: effects.contains(&Effect::BookingRace),
        };
        let mut answer = injected(&effects).and_then(|()| {
            self.change(|world| {
                if effects.contains(&Effect::Vanish)
                    && let Some(job) = path.split('/').find_map(JobId::parse)
                {
                    world.vanish(&job);
                }
                if has_cookie {
                    return Err(Refusal::forbidden("a session in a cookie needs an XSRF token"));
                }
                dispatch(world, method, path, incoming)
            })
        });
        for effect in effects {
            match effect {
                Effect::CutAfter => return Err(broken()),
                Effect::AnswerAfter { status, id } => {
                    answer = Err(Refusal::new(status, id, "injected"));
                }
                Effect::EmptyList => answer = Ok(Reply::bytes("[]")),
                _ => {}
            }
        }
        let mut world = self.lock();
        let (request_id, now) = (world.random.uuid(), world.now());
        let response = respond(answer, &request_id, now);
        let route = routes::find(method, path).map_or("(no such route)", |(route, _)| route.name);
        world.clients.count(&parts.headers, route, sent, response.body().len());
        Ok(response)
    }

    /// Lets latency and faults have their way before anything is done, and gives the effects that come later.
    async fn meet(&self, method: &str, path: &str) -> io::Result<Vec<Effect>> {
        let (mut effects, mut delay) = {
            let mut world = self.lock();
            let (from, to) = world.options.latency;
            let delay = world.latency.duration(from, to);
            (world.rules.for_request(&format!("{method} {path}")), delay)
        };
        for effect in &effects {
            if let Effect::Delay(by) = effect {
                delay += *by;
            }
        }
        if !delay.is_zero() {
            time::sleep(delay).await;
        }
        if self.lock().is_down || effects.contains(&Effect::Cut) {
            return Err(broken());
        }
        effects.retain(|effect| !matches!(effect, Effect::Delay(_)));
        Ok(effects)
    }

    /// Opens a websocket, in process.
    pub async fn websocket(&self, request: Request<()>) -> Result<Socket, SocketError> {
        let path = request.uri().path().to_owned();
        let effects = self.meet("GET", &path).await?;
        let mut world = self.lock();
        let opened =
            [V1_SOCKET, V2_SOCKET].into_iter().find(|name| **name == format!("GET {path}"));
        world.clients.count(request.headers(), opened.unwrap_or("(no such route)"), 0, 0);
        let who = injected(&effects).and_then(|()| {
            let token = bearer(request.headers());
            socket_owner(&mut world, &format!("GET {path}"), token.as_ref())
        });
        match who {
            Ok(who) => {
                let (socket, peer) = Socket::pair(SOCKET_CAPACITY);
                let SocketPeer { incoming, outgoing } = peer;
                let id = world.sockets.open(who, outgoing);
                tokio::spawn(listen(Arc::downgrade(&self.shared), id, incoming));
                Ok(socket)
            }
            Err(refusal) => {
                let (request_id, now) = (world.random.uuid(), world.now());
                Err(SocketError::Refused(respond(Err(refusal), &request_id, now)))
            }
        }
    }
}

impl Transport for CdsApi {
    fn send(&self, request: Request<Bytes>) -> SendFuture {
        let api = self.clone();
        Box::pin(async move { api.handle(request).await })
    }

    fn websocket(&self, request: Request<()>) -> SocketFuture {
        let api = self.clone();
        Box::pin(async move { CdsApi::websocket(&api, request).await })
    }
}

async fn tick(world: Weak<Mutex<World>>, look: Duration) {
    for number in 1.. {
        time::sleep(look).await;
        let Some(shared) = world.upgrade() else { return };
        CdsApi { shared }.change(|world| world.tick(number));
    }
}

/// Reads what a client says on its websocket until it goes.
async fn listen(
    world: Weak<Mutex<World>>,
    id: SocketId,
    mut incoming: tokio::sync::mpsc::Receiver<String>,
) {
    while let Some(text) = incoming.recv().await {
        let Some(shared) = world.upgrade() else { return };
        CdsApi { shared }.lock().sockets.filter(id, &text);
    }
    if let Some(shared) = world.upgrade() {
        CdsApi { shared }.lock().sockets.gone(id);
    }
}

fn dispatch(
    world: &mut World,
    method: &str,
    path: &str,
    mut incoming: Incoming,
) -> Result<Reply, Refusal> {
    let (route, params) = routes::find(method, path)
        .ok_or_else(|| Refusal::not_found(format!("no route {method} {path}")))?;
    *world.calls.entry(route.name).or_default() += 1;
    incoming.params = params;
    if !matches!(route.auth, Auth::None | Auth::Bearer) {
        let who = session(world, incoming.token.as_ref())?;
        let is_allowed = matches!(
            (route.auth, &who),
            (Auth::Consumer | Auth::ConsumerOrWorker, Who::Consumer(_))
                | (Auth::Hatchery, Who::Hatchery(_))
                | (Auth::Worker | Auth::ConsumerOrWorker, Who::Worker(_))
        );
        if !is_allowed {
            return Err(Refusal::forbidden("a session of another kind"));
        }
        incoming.who = Some(who);
    }
    (route.handler)(world, &incoming)
}

fn session(world: &World, token: Option<&Secret>) -> Result<Who, Refusal> {
    let who = token.and_then(|token| world.access.who(token, world.now()));
    who.ok_or_else(Refusal::not_authenticated)
}

/// Who may open this websocket.
fn socket_owner(world: &mut World, route: &str, token: Option<&Secret>) -> Result<Who, Refusal> {
    let who = session(world, token);
    let (name, allowed) = match route {
        V1_SOCKET => (V1_SOCKET, who.and_then(|who| world.access.service_of(&who).map(|_| who))),
        V2_SOCKET => (V2_SOCKET, who.and_then(|who| world.access.hatchery_of(&who).map(|_| who))),
        _ => return Err(Refusal::not_found("no such websocket")),
    };
    *world.calls.entry(name).or_default() += 1;
    allowed
}

fn injected(effects: &[Effect]) -> Result<(), Refusal> {
    effects.iter().try_for_each(|effect| match effect {
        Effect::Answer { status, id } => Err(Refusal::new(*status, *id, "injected")),
        _ => Ok(()),
    })
}

fn bearer(headers: &HeaderMap) -> Option<Secret> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    value.strip_prefix("Bearer ").map(Secret::from)
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "the connection broke")
}
