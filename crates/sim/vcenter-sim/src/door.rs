//! The in-process door, which the wire door goes through as well.

use std::io;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, COOKIE, USER_AGENT, WWW_AUTHENTICATE};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Body as _;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Limited};
use roost_clock::Clock;
use roost_vim_wire::methods;

use crate::dispatch::{self, Caller, Outcome};
use crate::fault_rules::{Action, Facts, after, before, cut};
use crate::options::{Credentials, Options};
use crate::reply::{self, body};
use crate::world::{Handle, Shared};
use crate::{control, nfc, permission, rest, search, service, session, store};

/// A request's or an answer's body, streamed.
pub type Body = BoxBody<Bytes, io::Error>;

/// No SOAP call is as large; a larger one is a mistake that should not fill the memory.
const MAX_CALL: usize = 32 << 20;

/// A simulated vCenter. Cheap to clone; it ends with its last clone.
#[derive(Debug, Clone)]
pub struct Vcenter {
    pub(crate) handle: Handle,
}

/// Who is at the other end of a connection; the wire door adds it to each request.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub ip: String,
    pub is_secure: bool,
}

impl Vcenter {
    /// Builds the inventory and starts its time. Needs a tokio runtime.
    pub fn start(options: Options, clock: Arc<dyn Clock>) -> Self {
        Self { handle: Shared::start(options, clock) }
    }

    /// Answers one HTTP request. `Err`: the connection was cut or refused, and no answer will come.
    ///
    /// Only the path and query of the URI count. Dropping the future is what a client does that goes away.
    pub async fn handle(&self, request: Request<Body>) -> io::Result<Response<Body>> {
        if let Some(down) = self.handle.availability.down() {
            if down.refuses {
                return Err(io::Error::new(
                    io::ErrorKind::ConnectionRefused,
                    "the simulated server is down",
                ));
            }
            return Ok(reply::status(StatusCode::SERVICE_UNAVAILABLE));
        }
        tokio::select! {
            biased;
            () = self.handle.availability.restarted() => Err(cut()),
            answer = self.route(request) => answer,
        }
    }

    async fn route(&self, request: Request<Body>) -> io::Result<Response<Body>> {
        let path = request.uri().path().to_owned();
        match path.as_str() {
            "/sdk" | "/sdk/" | "/sdk/vimService" | "/pbm" | "/pbm/sdk" | "/vslm/sdk"
                if request.method() == Method::POST =>
            {
                self.soap(request).await
            }
            "/sdk" | "/sdk/" | "/sdk/vimService" => {
                Ok(refuse(request, StatusCode::METHOD_NOT_ALLOWED).await)
            }
            "/sdk/vimServiceVersions.xml" => {
                let versions = service::versions_xml(&self.handle.options);
                Ok(reply::content(StatusCode::OK, "text/xml", versions))
            }
            "/about" => Ok(reply::json(StatusCode::OK, &about())),
            _ if is_below(&path, "/folder") => self.folder(request).await,
            _ if is_below(&path, "/guestFile") => self.guest_file(request).await,
            _ if is_below(&path, "/rest") || is_below(&path, "/api") => self.rest(request).await,
            _ if is_below(&path, "/nfc") => self.disk_data(request).await,
            _ if is_below(&path, "/cls/data") => self.library_data(request).await,
            _ if is_below(&path, "/roost/control") && self.handle.options.control_endpoint => {
                control::answer(self, request).await
            }
            _ => Ok(refuse(request, StatusCode::NOT_FOUND).await),
        }
    }

    async fn rest(&self, request: Request<Body>) -> io::Result<Response<Body>> {
        let caller = caller(&request);
        let method = rest_method(request.method(), request.uri());
        let sent = request.body().size_hint().exact().unwrap_or_default();
        let answer = rest::answer(&self.handle, &caller, request).await;
        let answered = answer.as_ref().ok().and_then(|answer| answer.body().size_hint().exact());
        self.handle.with(|world| {
            world.counters.transferred(&caller, &method, sent, answered.unwrap_or_default());
        });
        answer
    }

    async fn soap(&self, request: Request<Body>) -> io::Result<Response<Body>> {
        let mut caller = caller(&request);
        let accepts_gzip = accepts_gzip(request.headers());
        let Ok(call) = Limited::new(request.into_body(), MAX_CALL).collect().await else {
            return Ok(reply::status(StatusCode::PAYLOAD_TOO_LARGE));
        };
        let call = call.to_bytes();
        if caller.cookie.is_none() {
            // How services beside vim25 are told the session.
            caller.cookie = roost_vim_wire::session_of_request(&call);
        }
        let (outcome, method) = dispatch::soap(&self.handle, &caller, &call).await?;
        let Outcome { answer, new_cookie } = outcome;
        let class = match &answer {
            dispatch::Answer::Fault(failure) => Some(failure.fault.class.clone()),
            _ => None,
        };
        let (status, bytes) = answer.into_parts();
        self.handle.with(|world| {
            world.counters.bytes_in += call.len() as u64;
            world.counters.bytes_out += bytes.len() as u64;
            world.counters.answered(&caller, &method, bytes.len());
            if let Some(class) = &class {
                world.counters.faulted(class);
            }
        });
        if bytes.is_empty() {
            return Ok(reply::status(status));
        }
        let gzip_from = self.handle.options.gzip_from.filter(|_| accepts_gzip);
        let mut answer = reply::xml(status, bytes, gzip_from);
        if let Some(cookie) = new_cookie {
            // Quoted, as vCenter does: clients that take the value apart find out here.
            let secure = if caller.is_secure { "; Secure" } else { "" };
            let cookie = format!("{SESSION_COOKIE}=\"{cookie}\"; Path=/; HttpOnly{secure}");
            answer
                .headers_mut()
                .extend(cookie.parse().ok().map(|value| (http::header::SET_COOKIE, value)));
        }
        Ok(answer)
    }

    /// A cookie of a live session opens it, or a ticket for exactly this request, or the login itself.
    async fn folder(&self, request: Request<Body>) -> io::Result<Response<Body>> {
        let caller = caller(&request);
        let ruled = self.rule(&request, "/folder");
        if let Some(action) = &ruled
            && let Some(status) = before(&self.handle, &caller, action).await?
        {
            return Ok(refuse(request, status).await);
        }
        let (now, place) =
            (self.handle.now(), request.uri().path_and_query().map(ToString::to_string));
        let ticket = cookie(request.headers(), "vmware_cgi_ticket");
        let user = self.handle.with(|world| {
            let key = dispatch::authenticate(world, &caller, now)
                .map(|key| key.to_string())
                .or_else(|| {
                    world.sessions.redeem(&ticket?, request.method(), &place.unwrap_or_default())
                })?;
            world.sessions.touch(&key, now);
            world.sessions.get(&key).map(|session| session.user().to_owned())
        });
        let login = basic(request.headers())
            .filter(|login| session::is_accepted(&self.handle.options, login));
        let Some(user) = user.or_else(|| login.map(|login| login.user)) else {
            let mut refused = refuse(request, StatusCode::UNAUTHORIZED).await;
            let ask = http::HeaderValue::from_static("Basic realm=\"VMware HTTP server\"");
            refused.headers_mut().insert(WWW_AUTHENTICATE, ask);
            return Ok(refused);
        };
        if !self.may_transfer(&user, &request) {
            return Ok(refuse(request, StatusCode::FORBIDDEN).await);
        }
        let answer = store::folder(&self.handle, &user, request).await;
        if let Some(action) = &ruled {
            after(action).await?;
        }
        Ok(answer)
    }

    async fn guest_file(&self, request: Request<Body>) -> io::Result<Response<Body>> {
        let ruled = self.rule(&request, "/guestFile");
        if let Some(action) = &ruled
            && let Some(status) = before(&self.handle, &caller(&request), action).await?
        {
            return Ok(refuse(request, status).await);
        }
        let answer = store::guest_file(&self.handle, request).await;
        if let Some(action) = &ruled {
            after(action).await?;
        }
        Ok(answer)
    }

    /// The disks of packages on their way in and out.
    async fn disk_data(&self, request: Request<Body>) -> io::Result<Response<Body>> {
        let ruled = self.rule(&request, "/nfc");
        if let Some(action) = &ruled
            && let Some(status) = before(&self.handle, &caller(&request), action).await?
        {
            return Ok(refuse(request, status).await);
        }
        let answer = nfc::transfer(&self.handle, request).await;
        if let Some(action) = &ruled {
            after(action).await?;
        }
        Ok(answer)
    }

    /// The files of library items on their way in and out.
    async fn library_data(&self, request: Request<Body>) -> io::Result<Response<Body>> {
        let ruled = self.rule(&request, "/cls/data");
        if let Some(action) = &ruled
            && let Some(status) = before(&self.handle, &caller(&request), action).await?
        {
            return Ok(refuse(request, status).await);
        }
        let answer = rest::transfer(&self.handle, request).await?;
        if let Some(action) = &ruled {
            after(action).await?;
        }
        Ok(answer)
    }

    /// Counts a transfer and asks the rules about it.
    fn rule(&self, request: &Request<Body>, place: &str) -> Option<Action> {
        let method = format!("{} {place}", request.method());
        let path = request.uri().path();
        let file = percent_encoding::percent_decode_str(path.strip_prefix(place).unwrap_or(path))
            .decode_utf8_lossy();
        let objects = vec![file.trim_start_matches('/').to_owned()];
        self.handle.with(|world| {
            world.counters.called(&method);
            world.counters.asked(&caller(request), &method, 0);
            world.rules.for_call(&Facts { method: &method, objects }).map(|(_, action)| action)
        })
    }

    fn may_transfer(&self, user: &str, request: &Request<Body>) -> bool {
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        let privilege = if reads { "Datastore.Browse" } else { "Datastore.FileManagement" };
        let name = reply::query(request.uri(), "dsName").unwrap_or_default();
        self.handle.with(|world| {
            let datastore = permission::datastore(world, &name);
            let on = datastore.unwrap_or_else(|| world.service.root_folder.clone());
            world.permissions.may(user, privilege, &on, &world.inventory)
        })
    }

    /// The object at an inventory path, such as `/DC0/vm/web`.
    pub fn find(&self, inventory_path: &str) -> Option<roost_vim_wire::MoRef> {
        self.handle.with(|world| search::by_path(world, inventory_path))
    }
}

/// A client that is still sending when it is refused reports a broken pipe instead of the status.
pub(crate) async fn refuse(request: Request<Body>, status: StatusCode) -> Response<Body> {
    drain(&mut request.into_body()).await;
    reply::status(status)
}

/// Hears the rest of a body out. What it says is not kept: it may be an image of gigabytes.
pub(crate) async fn drain(body: &mut Body) {
    while let Some(Ok(_)) = body.frame().await {}
}

/// The login of HTTP Basic.
fn basic(headers: &HeaderMap) -> Option<Credentials> {
    let given = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let encoded = given.strip_prefix("Basic ").or_else(|| given.strip_prefix("basic "))?;
    let text = String::from_utf8(BASE64_STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (user, password) = text.split_once(':')?;
    Some(Credentials { user: user.into(), password: password.into() })
}

/// A body that is there at once.
pub fn full_body(bytes: impl Into<Bytes>) -> Body {
    body(bytes)
}

const SESSION_COOKIE: &str = "vmware_soap_session";

fn caller(request: &Request<Body>) -> Caller {
    let peer = request.extensions().get::<Peer>();
    let agent = request.headers().get(USER_AGENT).and_then(|agent| agent.to_str().ok());
    Caller {
        cookie: cookie(request.headers(), SESSION_COOKIE),
        ip: peer.map_or_else(|| "127.0.0.1".into(), |peer| peer.ip.clone()),
        user_agent: agent.map(ToOwned::to_owned),
        is_secure: peer.is_some_and(|peer| peer.is_secure),
    }
}

/// The value of a cookie, without the quotes that some clients keep and others drop.
fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let all = headers.get_all(COOKIE).iter().filter_map(|header| header.to_str().ok());
    let mut pairs =
        all.flat_map(|header| header.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value.trim_matches('"').to_owned())
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let all = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|header| header.to_str().ok());
    let mut named = all.flat_map(|header| header.split(','));
    named.any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        matches!(name.trim(), "gzip" | "*") && !matches!(weight.trim(), "q=0" | "q=0.0")
    })
}

/// Method and path by which REST calls are counted: `{}` in the place of ids, so that they are few. The action of a call stands in its query.
fn rest_method(method: &Method, uri: &http::Uri) -> String {
    let is_id = |step: &str| step.contains(|letter: char| letter.is_ascii_digit() || letter == ':');
    let steps = uri.path().trim_end_matches('/').split('/');
    let path: Vec<&str> = steps.map(|step| if is_id(step) { "{}" } else { step }).collect();
    let action = uri.query().and_then(|query| {
        query.split('&').find(|pair| pair.starts_with("action=") || pair.starts_with("~action="))
    });
    let action = action.map(|action| format!("?{action}")).unwrap_or_default();
    format!("{method} {}{action}", path.join("/"))
}

fn is_below(path: &str, place: &str) -> bool {
    path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn about() -> serde_json::Value {
    // Tasks that a client keeps for itself are the one call of the schema that is not served.
    let served = methods::all().map(|method| method.name).filter(|name| *name != "CreateTask");
    serde_json::json!({ "methods": served.collect::<Vec<_>>() })
}
