//! What lives in the session is destroyed when its owner lets go of it.
//!
//! A [`SessionObject`] is the owner's hold on a view, filter or collector. Dropping it hands the object to the janitor, a task
//! that sends the destroy call. Making one runs in a task of its own, so that a caller who is dropped half-way loses the
//! answer to the janitor and not to nobody.

use std::sync::Arc;

use http::HeaderValue;
use roost_vim_wire::methods::{
    CancelRetrievePropertiesEx, DestroyCollector, DestroyPropertyCollector, DestroyPropertyFilter,
    DestroyView, Logout,
};
use roost_vim_wire::{Method, MoRef};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::client_core::Core;
use crate::session::Lease;
use crate::{CallClass, CallError};

/// How an object of the session is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Destroy {
    View,
    Filter,
    /// Ends its filters too.
    Collector,
    /// An event or task history collector.
    History,
}

/// An object that lives in the session; dropping it destroys it on the server, in the background.
#[derive(Debug)]
pub(crate) struct SessionObject {
    core: Arc<Core>,
    moref: MoRef,
    generation: u64,
    destroy: Option<Destroy>,
}

impl SessionObject {
    pub(crate) fn moref(&self) -> &MoRef {
        &self.moref
    }

    /// Lets go of it without a call: what it lived in is gone.
    pub(crate) fn forget(mut self) {
        self.destroy = None;
    }
}

impl Drop for SessionObject {
    fn drop(&mut self) {
        if let Some(destroy) = self.destroy {
            self.core.janitor.push(Chore::Destroy {
                generation: self.generation,
                moref: self.moref.clone(),
                destroy,
            });
        }
    }
}

#[derive(Debug)]
pub(crate) enum Chore {
    Destroy {
        generation: u64,
        moref: MoRef,
        destroy: Destroy,
    },
    /// Pages that nobody will fetch.
    CancelRetrieve {
        generation: u64,
        token: String,
    },
    LogOut {
        cookie: HeaderValue,
    },
    /// Answered when everything before it is done.
    Flush(oneshot::Sender<()>),
    Stop,
}

#[derive(Debug)]
pub(crate) struct Janitor {
    chores: mpsc::UnboundedSender<Chore>,
}

impl Janitor {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<Chore>) {
        let (chores, receiver) = mpsc::unbounded_channel();
        (Self { chores }, receiver)
    }

    pub(crate) fn push(&self, chore: Chore) {
        // After the end of the client the session is gone, and all that lived in it.
        let _ = self.chores.send(chore);
    }

    pub(crate) fn log_out(&self, cookie: HeaderValue) {
        self.push(Chore::LogOut { cookie });
    }

    pub(crate) async fn flush(&self) {
        let (done, wait) = oneshot::channel();
        self.push(Chore::Flush(done));
        let _ = wait.await;
    }

    pub(crate) fn stop(&self) {
        self.push(Chore::Stop);
    }
}

impl Core {
    pub(crate) async fn run_janitor(self: Arc<Self>, mut chores: mpsc::UnboundedReceiver<Chore>) {
        while let Some(chore) = chores.recv().await {
            if matches!(chore, Chore::Stop) {
                return;
            }
            if let Err(error) = self.runtime.spawn(Arc::clone(&self).do_chore(chore)).await {
                self.note_panic("clean-up", &error);
            }
        }
    }

    async fn do_chore(self: Arc<Self>, chore: Chore) {
        match chore {
            Chore::Destroy { generation, moref: this, destroy } => {
                let Some(Lease { cookie, .. }) = self.session.current(generation) else { return };
                match destroy {
                    Destroy::View => self.try_once(&DestroyView { this }, &cookie).await,
                    Destroy::Filter => {
                        self.try_once(&DestroyPropertyFilter { this }, &cookie).await;
                    }
                    Destroy::Collector => {
                        self.try_once(&DestroyPropertyCollector { this }, &cookie).await;
                    }
                    Destroy::History => self.try_once(&DestroyCollector { this }, &cookie).await,
                }
            }
            Chore::CancelRetrieve { generation, token } => {
                let (Some(lease), Ok(content)) = (self.session.current(generation), self.content())
                else {
                    return;
                };
                let this = content.property_collector.clone();
                self.try_once(&CancelRetrievePropertiesEx { this, token }, &lease.cookie).await;
            }
            Chore::LogOut { cookie } => {
                let manager =
                    self.content().ok().and_then(|content| content.session_manager.clone());
                if let Some(this) = manager {
                    self.try_once(&Logout { this }, &cookie).await;
                }
            }
            Chore::Flush(done) => {
                let _ = done.send(());
            }
            Chore::Stop => {}
        }
    }

    /// One try: what cannot be destroyed now ends with the session.
    async fn try_once<M: Method>(&self, call: &M, cookie: &HeaderValue) {
        let deadline = Instant::now() + self.deadline(CallClass::Read);
        if let Err(error) = self.exchange(CallClass::Read, call, Some(cookie), deadline).await {
            tracing::debug!("left to the end of the session: {error}");
        }
    }

    /// Makes an object in this session and no other.
    pub(crate) async fn create_in<M>(
        self: &Arc<Self>,
        lease: &Lease,
        call: M,
        destroy: Destroy,
    ) -> Result<SessionObject, CallError>
    where
        M: Method<Output = MoRef>,
    {
        let (core, lease) = (Arc::clone(self), lease.clone());
        self.detached(M::NAME, async move {
            let deadline = Instant::now() + core.deadline(CallClass::Read);
            let (moref, _) =
                core.exchange(CallClass::Read, &call, Some(&lease.cookie), deadline).await?;
            Ok(SessionObject { core, moref, generation: lease.generation, destroy: Some(destroy) })
        })
        .await
    }

    /// Makes an object in the current session, logging in again if that has ended.
    pub(crate) async fn create<M>(
        self: &Arc<Self>,
        call: M,
        destroy: Destroy,
    ) -> Result<SessionObject, CallError>
    where
        M: Method<Output = MoRef>,
    {
        let core = Arc::clone(self);
        self.detached(M::NAME, async move {
            let (moref, generation) = core.call_traced(CallClass::Read, &call).await?;
            Ok(SessionObject { core, moref, generation, destroy: Some(destroy) })
        })
        .await
    }

    /// Runs to its end even if the caller goes away; the result is then dropped, which is what cleans up.
    async fn detached<T: Send + 'static>(
        &self,
        method: &'static str,
        work: impl Future<Output = Result<T, CallError>> + Send + 'static,
    ) -> Result<T, CallError> {
        self.runtime.spawn(work).await.unwrap_or(Err(CallError::Abandoned { method }))
    }
}
