//! The two handles: one that may only look, one that may also change.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use roost_clock::Clock;
use roost_vim_wire::methods::Effect;
use roost_vim_wire::types::{ObjectContent, PropertyFilterSpec, ServiceContent};
use roost_vim_wire::{Method, MoRef, ReadMethod};
use url::Url;

use crate::cleanup::{Destroy, SessionObject};
use crate::client_core::{Core, Guarded};
use crate::stream::Command;
use crate::{
    Body, CallClass, CallError, Properties, Settings, Subscription, Task, Transport, WatchSpec,
};

/// Read-only handle: has no method that changes anything. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Observer {
    client: Arc<Guarded>,
    content: Arc<ServiceContent>,
}

/// May change things. Cheap to clone. The session lasts until the last handle, subscription and task is dropped, or until
/// [`Client::shutdown`].
#[derive(Debug, Clone)]
pub struct Client {
    observer: Observer,
}

impl Deref for Client {
    type Target = Observer;

    fn deref(&self) -> &Observer {
        &self.observer
    }
}

impl Client {
    /// Negotiates the version, logs in, and keeps the session alive from then on. Runs background work on the current runtime.
    pub async fn connect(
        settings: Settings,
        transport: Arc<dyn Transport>,
        clock: Arc<dyn Clock>,
    ) -> Result<Client, CallError> {
        let client = Core::connect(settings, transport, clock).await?;
        let content = Arc::clone(client.0.content()?);
        Ok(Self { observer: Observer { client, content } })
    }

    pub fn observer(&self) -> Observer {
        self.observer.clone()
    }

    /// A change, within the deadline of its class. Sent a second time only if the server said that the session had ended and it
    /// therefore did nothing; never after a lost connection or a deadline.
    pub async fn change<M: Method>(
        &self,
        class: CallClass,
        call: &M,
    ) -> Result<M::Output, CallError> {
        self.core().call(class, call).await
    }

    /// Starts a task.
    pub async fn submit<M: Method<Output = MoRef>>(&self, call: &M) -> Result<Task, CallError> {
        let task = self.change(CallClass::Submit, call).await?;
        Ok(self.task(task))
    }

    /// Cancels waits, destroys collectors and views, logs out, and returns when that is done or the server does not answer.
    /// All other handles of this client then refuse to work.
    pub async fn shutdown(self) {
        self.core().end_and_wait().await;
    }
}

impl Observer {
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.client.0
    }

    pub fn content(&self) -> Arc<ServiceContent> {
        Arc::clone(&self.content)
    }

    pub async fn read<M: ReadMethod>(&self, call: &M) -> Result<M::Output, CallError> {
        self.read_as(CallClass::Read, call).await
    }

    /// A read with the deadline of another class, such as one that reaches into a guest.
    pub async fn read_as<M: ReadMethod>(
        &self,
        class: CallClass,
        call: &M,
    ) -> Result<M::Output, CallError> {
        self.core().call(class, call).await
    }

    /// A call that makes, moves or ends something that lives in the session.
    pub(crate) async fn session<M: Method>(&self, call: &M) -> Result<M::Output, CallError> {
        const { assert!(matches!(M::EFFECT, Effect::Session | Effect::Read), "a change needs a client") };
        self.core().call(CallClass::Read, call).await
    }

    /// Makes an object that lives in the session. It is destroyed on the server when the returned guard is dropped, also if
    /// this future is dropped half-way.
    pub(crate) async fn create<M>(
        &self,
        call: &M,
        destroy: Destroy,
    ) -> Result<SessionObject, CallError>
    where
        M: Method<Output = MoRef> + Clone,
    {
        const { assert!(matches!(M::EFFECT, Effect::Session | Effect::Read), "a change needs a client") };
        self.core().create(call.clone(), destroy).await
    }

    /// All objects that the spec selects, with every page. A session that is lost on the way is renewed and the read starts
    /// over; it never looks like an empty inventory.
    pub async fn retrieve(
        &self,
        spec: PropertyFilterSpec,
    ) -> Result<Vec<ObjectContent>, CallError> {
        self.core().retrieve(spec).await
    }

    pub async fn properties(&self, obj: &MoRef, paths: &[&str]) -> Result<Properties, CallError> {
        self.core().properties(obj, paths).await
    }

    /// Watches objects through the property stream. Returns when the server has taken the watch; the objects come with
    /// [`Subscription::next`].
    pub async fn watch(&self, spec: WatchSpec) -> Result<Subscription, CallError> {
        let core = self.core();
        let (id, commands) = (core.next_id(), core.hub_commands());
        let subscription = Subscription::new(id, commands.clone(), Arc::clone(&self.client));
        let (command, answer) = Command::watch(id, spec, &subscription);
        commands.send(command).map_err(|_| CallError::ShuttingDown)?;
        answer.await.unwrap_or(Err(CallError::ShuttingDown))?;
        Ok(subscription)
    }

    /// Follows a task that someone started.
    pub fn task(&self, task: MoRef) -> Task {
        Task::new(task, Arc::clone(&self.client))
    }

    /// Starts a task that only reads, such as a search of a datastore.
    pub async fn submit_read<M: ReadMethod<Output = MoRef>>(
        &self,
        call: &M,
    ) -> Result<Task, CallError> {
        let task = self.read_as(CallClass::Submit, call).await?;
        Ok(self.task(task))
    }

    /// Sends an HTTP request to the server beside `/sdk`, under the session's cookie, which this adds. On 401 and 403 the
    /// session is renewed and `request` asked once more. Any other status comes back as it is. The wait for the status has
    /// the deadline of the class, but for [`CallClass::Upload`] none: only the caller sees whether its body
    /// still flows. The body of the answer is the caller's to read.
    pub(crate) async fn http<F>(
        &self,
        method: &'static str,
        class: CallClass,
        request: F,
    ) -> Result<Response<Body>, CallError>
    where
        F: FnMut() -> Request<Body>,
    {
        self.core().http(method, class, request).await
    }

    pub(crate) fn transport(&self) -> &Arc<dyn Transport> {
        &self.core().transport
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.core().settings
    }

    pub(crate) fn deadline(&self, class: CallClass) -> Duration {
        self.core().deadline(class)
    }

    /// Scheme, host and port with the path `/`.
    pub(crate) fn base_url(&self) -> &Url {
        &self.core().settings.url
    }
}
