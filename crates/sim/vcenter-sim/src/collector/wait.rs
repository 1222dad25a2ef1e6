//! Waiting for updates: the only calls that take time by themselves.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use roost_vim_wire::methods::{CheckForUpdates, WaitForUpdates, WaitForUpdatesEx};
use roost_vim_wire::{Method, MoRef, Request, encode_reply_with};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Collectors, key};
use crate::call::{CallResult, Failure, ReplyBody, decode};
use crate::permission;
use crate::property::Reading;
use crate::world::{Handle, World};

/// A call that may have to wait.
#[derive(Debug)]
pub(crate) struct Wait {
    method: &'static str,
    version: String,
    max_objects: usize,
    /// `None` waits for ever.
    limit: Option<Duration>,
}

impl Wait {
    /// `None` if the method is not one that waits.
    pub(crate) fn parse(request: &Request<'_>, page_limit: usize) -> Option<Result<Self, Failure>> {
        Some(match request.method {
            WaitForUpdatesEx::NAME => decode(request).and_then(|asked: WaitForUpdatesEx| {
                let options = asked.options.unwrap_or_default();
                let max_objects = match options.max_object_updates.map(usize::try_from) {
                    None => page_limit,
                    Some(Ok(max)) if max > 0 => max.min(page_limit),
                    Some(_) => return Err(Failure::invalid_argument("options.maxObjectUpdates")),
                };
                let seconds = options.max_wait_seconds.map(u64::try_from).transpose();
                let seconds =
                    seconds.map_err(|_| Failure::invalid_argument("options.maxWaitSeconds"))?;
                Ok(Self {
                    method: WaitForUpdatesEx::NAME,
                    version: asked.version.unwrap_or_default(),
                    max_objects,
                    limit: seconds.map(Duration::from_secs),
                })
            }),
            WaitForUpdates::NAME => decode(request).map(|asked: WaitForUpdates| Self {
                method: WaitForUpdates::NAME,
                version: asked.version.unwrap_or_default(),
                max_objects: usize::MAX,
                limit: None,
            }),
            CheckForUpdates::NAME => decode(request).map(|asked: CheckForUpdates| Self {
                method: CheckForUpdates::NAME,
                version: asked.version.unwrap_or_default(),
                max_objects: usize::MAX,
                limit: Some(Duration::ZERO),
            }),
            _ => return None,
        })
    }
}

/// A wait that has begun.
#[derive(Debug)]
struct Turn {
    number: u64,
    wake: Arc<Notify>,
}

/// Answers as soon as there is something to tell, or with an empty answer when the time is over.
pub(crate) async fn wait(handle: &Handle, session: &str, this: &MoRef, wait: &Wait) -> CallResult {
    let deadline = wait.limit.map(|limit| Instant::now() + limit);
    let turn = handle.with(|world| world.collectors.begin_wait(session, this, &wait.version))?;
    loop {
        let mut woken = pin!(turn.wake.notified());
        // From here on nothing that happens is missed.
        woken.as_mut().enable();
        let answer = handle.with(|world| look(world, handle, session, this, wait, &turn))?;
        if let Some(answer) = answer {
            return Ok(answer);
        }
        match deadline {
            None => woken.await,
            Some(deadline) => {
                if tokio::time::timeout_at(deadline, woken).await.is_err() {
                    return Ok(nothing(wait.method));
                }
            }
        }
    }
}

fn look(
    world: &mut World,
    handle: &Handle,
    session: &str,
    this: &MoRef,
    wait: &Wait,
    turn: &Turn,
) -> Result<Option<ReplyBody>, Failure> {
    if !world.sessions.is_live(session) {
        return Err(permission::not_authenticated(this, permission::READ));
    }
    let key = key(session, this);
    if world.collectors.by_key.get(&key).is_none_or(|collector| collector.waits != turn.number) {
        return Err(Failure::of("RequestCanceled", "The request was canceled by a user."));
    }
    let mut collectors = std::mem::take(&mut world.collectors);
    let mut reads = 0;
    let reading = Reading { world, session: Some(session), now: handle.now(), is_stale: false };
    let answer = collectors.next_answer(&reading, &key, wait.method, wait.max_objects, &mut reads);
    world.collectors = collectors;
    world.counters.property_reads += reads;
    Ok(answer)
}

fn nothing(method: &str) -> ReplyBody {
    let Ok(body) = encode_reply_with(method, 512, |_| Ok::<_, std::convert::Infallible>(()));
    ReplyBody(body)
}

impl Collectors {
    /// One call waits at a time; a new one takes the place of the old, whose client has probably gone away.
    fn begin_wait(
        &mut self,
        session: &str,
        collector: &MoRef,
        version: &str,
    ) -> Result<Turn, Failure> {
        let key = key(session, collector);
        // The default collector of a session comes into being with its first use.
        self.by_key.entry(key.clone()).or_default();
        self.accept_version(&key, version)?;
        let collector = self.by_key.entry(key).or_default();
        collector.waits += 1;
        collector.wake.notify_waiters();
        Ok(Turn { number: collector.waits, wake: Arc::clone(&collector.wake) })
    }

    pub(super) fn cancel_wait(&mut self, session: &str, collector: &MoRef) {
        if let Some(collector) = self.by_key.get_mut(&key(session, collector)) {
            collector.waits += 1;
            collector.wake.notify_waiters();
        }
    }
}
