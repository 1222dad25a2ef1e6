//! Whether the API server answers, as the watches see it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Request;
use jiff::Timestamp;
use kube::Client;
use kube::runtime::watcher;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

/// Servers end watches now and then; what fails oftener in a row is an outage.
const OUTAGE_AFTER: u32 = 3;

/// How often a server that does not answer is asked whether it is back, and how long an answer may take.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// The API server cannot be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerTrouble {
    /// When the first of the watches broke off.
    pub since: Timestamp,
    pub words: String,
}

/// What all watches of a manager share. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Contact(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    trouble: Mutex<Option<ServerTrouble>>,
    is_lost: Notify,
}

impl Contact {
    pub(crate) fn trouble(&self) -> Option<ServerTrouble> {
        self.0.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn answered(&self) {
        *self.0.trouble.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// A watch failed so many times in a row, for the first time at `since`.
    pub(crate) fn failed(&self, since: Timestamp, failures: u32, error: &watcher::Error) {
        if failures < OUTAGE_AFTER || !is_unreachable(error) {
            return;
        }
        let words = roost_supervise::Chain(error).to_string();
        let mut trouble = self.0.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *trouble {
            Some(known) => known.since = known.since.min(since),
            None => *trouble = Some(ServerTrouble { since, words }),
        }
        drop(trouble);
        self.0.is_lost.notify_one();
    }

    /// A watch that is taken up again is silent until something changes, so a lost server is asked whether it is back. Does not end.
    pub(crate) async fn keep(&self, client: &Client) {
        loop {
            self.0.is_lost.notified().await;
            while self.trouble().is_some() {
                sleep(ASK_AGAIN).await;
                if let Ok(true) = timeout(ASK_AGAIN, answers(client)).await {
                    self.answered();
                }
            }
        }
    }
}

async fn answers(client: &Client) -> bool {
    let Ok(request) = Request::get("/readyz").body(Vec::new()) else { return false };
    match client.request_text(request).await {
        Ok(_) => true,
        // Whoever says no is there.
        Err(kube::Error::Api(status)) => status.code < 500,
        Err(_) => false,
    }
}

/// A server that refuses a request answers, however it does so.
fn is_unreachable(error: &watcher::Error) -> bool {
    use watcher::Error as E;
    match error {
        E::InitialListFailed(error) | E::WatchStartFailed(error) | E::WatchFailed(error) => {
            !matches!(error, kube::Error::Api(status) if status.code < 500)
        }
        E::WatchError(status) => status.code >= 500,
        E::NoResourceVersion => false,
    }
}
