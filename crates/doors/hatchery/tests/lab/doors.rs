//! The two lines between a hatchery and the simulators. They can be cut: that is how its process dies.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::sync::Mutex;

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt as _;
use roost_cds::SocketFuture;
use roost_cds_sim::CdsApi;
use roost_vcenter_sim::{Vcenter, full_body};
use roost_vim::{Body, SendFuture};
use tokio::sync::watch;

/// At which call a process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CrashAt {
    /// Counted from 1 over both servers; waiting for news does not count.
    pub(crate) call: u64,
    /// Whether the server still got it.
    pub(crate) arrives: bool,
}

/// What all calls of one process go through. Once it has blown, nothing that the process does reaches anybody.
#[derive(Debug)]
pub(crate) struct Fuse {
    at: Mutex<Option<CrashAt>>,
    counted: Mutex<u64>,
    blown: watch::Sender<Option<String>>,
}

enum Passage {
    Open,
    /// It is the last one, and arrives.
    Last,
    Closed,
}

impl Fuse {
    pub(crate) fn new(at: Option<CrashAt>) -> Arc<Self> {
        Arc::new(Self {
            at: Mutex::new(at),
            counted: Mutex::new(0),
            blown: watch::Sender::new(None),
        })
    }

    /// The process dies now.
    pub(crate) fn blow(&self, why: &str) {
        self.blown.send_if_modified(|blown| {
            let is_first = blown.is_none();
            blown.get_or_insert_with(|| why.to_owned());
            is_first
        });
    }

    /// No call blows it from here on.
    pub(crate) fn disarm(&self) {
        *self.at.lock().unwrap() = None;
    }

    /// Waits until it has, and says at what.
    pub(crate) async fn blown(&self) -> String {
        let mut blown = self.blown.subscribe();
        let why = blown.wait_for(Option::is_some).await.unwrap();
        why.clone().unwrap()
    }

    pub(crate) fn has_blown(&self) -> bool {
        self.blown.borrow().is_some()
    }

    /// How many calls were made so far.
    pub(crate) fn calls(&self) -> u64 {
        *self.counted.lock().unwrap()
    }

    fn pass(&self, call: &str) -> Passage {
        if self.has_blown() {
            return Passage::Closed;
        }
        if call == WAITING {
            return Passage::Open;
        }
        let mut counted = self.counted.lock().unwrap();
        *counted += 1;
        match self.at.lock().unwrap().filter(|at| at.call == *counted) {
            None => Passage::Open,
            Some(CrashAt { call: number, arrives }) => {
                let arrived = if arrives { "which arrived" } else { "which did not arrive" };
                self.blow(&format!("call {number}, {call}, {arrived}"));
                if arrives { Passage::Last } else { Passage::Closed }
            }
        }
    }
}

const WAITING: &str = "WaitForUpdatesEx";

/// To the vCenter. What was sent is carried out, also if the sender is gone when it is its turn.
#[derive(Debug)]
pub(crate) struct VcenterDoor {
    pub(crate) vcenter: Vcenter,
    pub(crate) fuse: Arc<Fuse>,
}

impl roost_vim::Transport for VcenterDoor {
    fn send(&self, request: Request<Body>) -> SendFuture {
        let (vcenter, fuse) = (self.vcenter.clone(), Arc::clone(&self.fuse));
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let bytes = body.collect().await.map_err(io::Error::other)?.to_bytes();
            let method = method_of(&bytes);
            let passage = fuse.pass(&method);
            let request = Request::from_parts(parts, full_body(bytes));
            match passage {
                Passage::Closed => pending().await,
                Passage::Last => {
                    tokio::spawn(async move { vcenter.handle(request).await });
                    pending().await
                }
                // Nobody is told any more, and a server notices that.
                Passage::Open if method == WAITING => vcenter.handle(request).await,
                Passage::Open => {
                    // What a server was still to get when the sender died is lost on the way.
                    let handling = tokio::spawn(async move {
                        tokio::select! {
                            biased;
                            answer = vcenter.handle(request) => answer,
                            why = fuse.blown() => Err(io::Error::other(why)),
                        }
                    });
                    handling.await.unwrap_or_else(|error| Err(io::Error::other(error)))
                }
            }
        })
    }
}

/// The name of the first element within the body of the envelope.
fn method_of(envelope: &[u8]) -> String {
    let text = String::from_utf8_lossy(&envelope[..envelope.len().min(2048)]).into_owned();
    let call = text.split_once("Body>").and_then(|(_, rest)| rest.trim_start().strip_prefix('<'));
    let name = call.and_then(|call| call.split([' ', '>', '/']).next()).unwrap_or("transfer");
    name.rsplit(':').next().unwrap_or(name).to_owned()
}

/// To the CDS API, which carries out what arrived whoever waits for it.
#[derive(Debug)]
pub(crate) struct CdsDoor {
    pub(crate) cds: CdsApi,
    pub(crate) fuse: Arc<Fuse>,
}

impl CdsDoor {
    fn pass<T>(&self, request: &Request<T>) -> Passage {
        self.fuse.pass(&format!("{} {}", request.method(), request.uri().path()))
    }
}

impl roost_cds::Transport for CdsDoor {
    fn send(&self, request: Request<Bytes>) -> roost_cds::SendFuture {
        match self.pass(&request) {
            Passage::Closed => Box::pin(pending()),
            Passage::Open => roost_cds::Transport::send(&self.cds, request),
            Passage::Last => {
                let cds = self.cds.clone();
                tokio::spawn(async move { cds.handle(request).await });
                Box::pin(pending())
            }
        }
    }

    fn websocket(&self, request: Request<()>) -> SocketFuture {
        match self.pass(&request) {
            Passage::Open => roost_cds::Transport::websocket(&self.cds, request),
            Passage::Last | Passage::Closed => Box::pin(pending()),
        }
    }
}
