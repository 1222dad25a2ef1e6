//! A server made of one function: for answers that no well-behaved server gives.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use roost_clock::SimClock;
use roost_vim::wire::methods::{CurrentTime, Login, Logout, RetrieveServiceContent};
use roost_vim::wire::types::{AboutInfo, ServiceContent, UserSession};
use roost_vim::wire::{Fault, Method, MoRef, MoType, Request as Call, encode_fault, encode_reply};
use roost_vim::{Body, CallError, Client, Credentials, SendFuture, Settings, Transport};

/// One request as the server sees it.
#[derive(Debug, Clone)]
pub(crate) struct Incoming {
    /// The vim25 method, or the path of anything that is none.
    pub(crate) method: String,
    pub(crate) cookie: Option<String>,
    pub(crate) soap_action: Option<String>,
    pub(crate) body: Bytes,
    /// How many of this method came before.
    pub(crate) before: usize,
}

impl Incoming {
    pub(crate) fn decode<M: Method>(&self) -> M {
        Call::parse(&self.body).unwrap().decode().unwrap()
    }
}

pub(crate) enum Answer {
    Body(Vec<u8>),
    Cookie(&'static str, Vec<u8>),
    Fault(Fault),
    Status(u16),
    /// The connection breaks after the request was sent.
    Cut,
    Refused,
    Hang,
    /// The transport itself has a bug.
    Panic,
    /// The beginning of a body, and then silence.
    Beginning(Vec<u8>),
    After(Duration, Box<Answer>),
}

#[expect(clippy::unnecessary_wraps, reason = "what a script's function answers")]
pub(crate) fn reply<M: Method>(output: &M::Output) -> Option<Answer> {
    Some(Answer::Body(encode_reply::<M>(output)))
}

#[expect(clippy::unnecessary_wraps, reason = "what a script's function answers")]
pub(crate) fn fault(class: &str) -> Option<Answer> {
    Some(Answer::Fault(Fault::of(class)))
}

pub(crate) fn logged_in(cookie: &'static str) -> Answer {
    Answer::Cookie(cookie, encode_reply::<Login>(&UserSession::default()))
}

type Handler = Box<dyn Fn(&Incoming) -> Option<Answer> + Send + Sync>;

/// Answers with the function, or as a small vCenter does where that has no answer.
pub(crate) struct Script {
    handler: Handler,
    log: Mutex<Vec<Incoming>>,
    forgotten: Mutex<Vec<Incoming>>,
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Script")
    }
}

impl Script {
    pub(crate) fn new(
        handler: impl Fn(&Incoming) -> Option<Answer> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            handler: Box::new(handler),
            log: Mutex::default(),
            forgotten: Mutex::default(),
        })
    }

    pub(crate) fn log(&self) -> Vec<Incoming> {
        self.log.lock().unwrap().clone()
    }

    pub(crate) fn methods(&self) -> Vec<String> {
        self.log().into_iter().map(|incoming| incoming.method).collect()
    }

    pub(crate) fn count(&self, method: &str) -> usize {
        self.log().iter().filter(|incoming| incoming.method == method).count()
    }

    /// Counts from here.
    pub(crate) fn forget(&self) {
        let log = std::mem::take(&mut *self.log.lock().unwrap());
        self.forgotten.lock().unwrap().extend(log);
    }

    fn answer(&self, incoming: &Incoming) -> Answer {
        (self.handler)(incoming).unwrap_or_else(|| match incoming.method.as_str() {
            "/sdk/vimServiceVersions.xml" => Answer::Body(
                b"<namespaces><namespace><name>urn:vim25</name><version>9.0.0.0</version></namespace></namespaces>".to_vec(),
            ),
            RetrieveServiceContent::NAME => Answer::Body(encode_reply::<RetrieveServiceContent>(&content())),
            Login::NAME => Answer::Cookie(
                ["s=1", "s=2", "s=3", "s=4", "s=5"][incoming.before.min(4)],
                encode_reply::<Login>(&UserSession { key: "key".into(), ..UserSession::default() }),
            ),
            Logout::NAME => Answer::Body(encode_reply::<Logout>(&())),
            CurrentTime::NAME => Answer::Body(encode_reply::<CurrentTime>(&SimClock::EPOCH)),
            _ => Answer::Fault(Fault::of("MethodNotFound")),
        })
    }
}

#[derive(Debug)]
struct ToScript(Arc<Script>);

impl Transport for ToScript {
    fn send(&self, request: Request<Body>) -> SendFuture {
        let script = Arc::clone(&self.0);
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let header = |name: &str| Some(parts.headers.get(name)?.to_str().unwrap().to_owned());
            let method = match Call::parse(&body) {
                Ok(call) => call.method.to_owned(),
                Err(_) => parts.uri.path().to_owned(),
            };
            let mut incoming = Incoming {
                before: 0,
                cookie: header("cookie"),
                soap_action: header("soapaction"),
                body,
                method,
            };
            let forgotten = script
                .forgotten
                .lock()
                .unwrap()
                .iter()
                .filter(|it| it.method == incoming.method)
                .count();
            incoming.before = forgotten + script.count(&incoming.method);
            script.log.lock().unwrap().push(incoming.clone());
            send(script.answer(&incoming)).await
        })
    }
}

fn send(answer: Answer) -> SendFuture {
    Box::pin(async move {
        let full =
            |bytes: Vec<u8>| Full::new(Bytes::from(bytes)).map_err(|never| match never {}).boxed();
        let mut response = Response::new(Empty::new().map_err(|never| match never {}).boxed());
        match answer {
            Answer::Body(bytes) => *response.body_mut() = full(bytes),
            Answer::Cookie(value, bytes) => {
                let set = format!("vmware_soap_session={value}; Path=/; HttpOnly");
                response
                    .headers_mut()
                    .insert(header::SET_COOKIE, HeaderValue::try_from(set).unwrap());
                *response.body_mut() = full(bytes);
            }
            Answer::Fault(fault) => {
                *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                *response.body_mut() = full(encode_fault(&fault, ""));
            }
            Answer::Status(status) => {
                *response.status_mut() = StatusCode::from_u16(status).unwrap();
                *response.body_mut() = full(b"<html>gateway</html>".to_vec());
            }
            Answer::Cut => return Err(io::ErrorKind::ConnectionReset.into()),
            Answer::Refused => return Err(io::ErrorKind::ConnectionRefused.into()),
            Answer::Hang => std::future::pending().await,
            Answer::Panic => panic!("a bug in the transport"),
            Answer::Beginning(bytes) => {
                let frames = futures_util::stream::iter([Ok(Frame::data(Bytes::from(bytes)))]);
                let silence = futures_util::stream::pending();
                *response.body_mut() = BodyExt::boxed(StreamBody::new(frames.chain(silence)));
            }
            Answer::After(delay, answer) => {
                tokio::time::sleep(delay).await;
                return send(*answer).await;
            }
        }
        Ok(response)
    })
}

pub(crate) fn content() -> ServiceContent {
    let manager = |kind: MoType| Some(MoRef::new(kind.clone(), kind.as_str()));
    ServiceContent {
        root_folder: MoRef::new(MoType::Folder, "group-d1"),
        property_collector: MoRef::new(MoType::PropertyCollector, "propertyCollector"),
        view_manager: manager(MoType::ViewManager),
        session_manager: manager(MoType::SessionManager),
        about: AboutInfo {
            api_version: "7.0.3.0".into(),
            api_type: "VirtualCenter".into(),
            ..AboutInfo::default()
        },
        ..ServiceContent::default()
    }
}

pub(crate) const PASSWORD: &str = "correct-horse";

pub(crate) fn settings() -> Settings {
    Settings::new("vc.test", Credentials::new("roost@vsphere.local", PASSWORD)).unwrap()
}

pub(crate) async fn connect(script: &Arc<Script>) -> Client {
    connect_with(script, settings()).await.unwrap()
}

pub(crate) async fn connect_with(
    script: &Arc<Script>,
    settings: Settings,
) -> Result<Client, CallError> {
    Client::connect(settings, Arc::new(ToScript(Arc::clone(script))), Arc::new(SimClock::new()))
        .await
}

/// Lets background work run to where it waits.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}
