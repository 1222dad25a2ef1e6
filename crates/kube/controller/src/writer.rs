//! Writes to the API server: the difference between wanted and seen, at most one call for the status and one
//! for everything else, and none where nothing differs.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::core::Request;
use kube::core::params::{GetParams, Patch, PatchParams};
use kube::{Client, Error};
use roost_clock::Random;
use serde_json::{Value, json};
use tokio::time::sleep;
use tracing::debug;

use crate::diff::{apply, merge_patch, replaces_a_list};
use crate::draft::{Author, Draft, Written};
use crate::key::Key;
use crate::next::{Remedial, Remedy};
use crate::object::Object;
use crate::rebase::rebase;

/// Conflicts in a row before a save gives up; the pass then comes back with its back-off.
const ATTEMPTS: u32 = 5;

/// The first wait after a conflict; it doubles, and a half of it is drawn.
const CONFLICT_WAIT: Duration = Duration::from_millis(100);

/// The handle that changes objects. Code that has none can only read. Cheap to clone.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    /// The name under which the server books our fields.
    field_manager: Arc<str>,
    random: Arc<Mutex<Random>>,
}

/// What a save did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Saved {
    pub status: bool,
    /// Metadata, finalizers and spec.
    pub main: bool,
}

impl Saved {
    pub fn is_anything(self) -> bool {
        self.status || self.main
    }
}

#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("{kind} {key} is gone")]
    Gone { kind: String, key: Key },
    #[error("somebody else changed condition {condition} of {kind} {key}")]
    Contested { kind: String, key: Key, condition: String },
    #[error("writing {part} of {kind} {key}")]
    Patch { kind: String, key: Key, part: &'static str, source: Box<Error> },
    #[error("reading {kind} {key} after a conflict")]
    Read { kind: String, key: Key, source: Box<Error> },
    #[error("{kind} {key} has no JSON form")]
    Encode { kind: String, key: Key, source: serde_json::Error },
}

impl Remedial for WriteError {
    fn remedy(&self) -> Remedy {
        match self {
            Self::Gone { .. } => Remedy::AwaitChange,
            Self::Contested { .. } => Remedy::Backoff,
            Self::Patch { source, .. } | Self::Read { source, .. } => remedy_of(source),
            Self::Encode { .. } => Remedy::Person,
        }
    }
}

/// What an error of the API server asks for.
pub fn remedy_of(error: &Error) -> Remedy {
    match error {
        Error::Api(status) if status.code == 429 => {
            let wait = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
            Remedy::After(Duration::from_secs(u64::from(wait.max(1))))
        }
        // The object as we want it is refused: the next try would be the same.
        Error::Api(status) if status.code == 422 => Remedy::Person,
        _ => Remedy::Backoff,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Status,
    Main,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Status => "the status",
            Self::Main => "metadata and spec",
        }
    }

    /// The part of an object that a call to it changes.
    fn of(self, mut object: Value) -> Value {
        let Some(fields) = object.as_object_mut() else { return object };
        match self {
            Self::Status => json!({ "status": fields.remove("status").unwrap_or_default() }),
            Self::Main => {
                fields.remove("status");
                if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
                    for of_the_server in VOLATILE {
                        metadata.remove(of_the_server);
                    }
                }
                object
            }
        }
    }
}

/// Metadata that the server writes.
const VOLATILE: [&str; 5] =
    ["resourceVersion", "managedFields", "generation", "creationTimestamp", "uid"];

impl Writer {
    pub fn new(client: Client, field_manager: &str, random: &Random) -> Self {
        let random = Arc::new(Mutex::new(random.fork("writer")));
        Self { client, field_manager: field_manager.into(), random }
    }

    /// For verbs that drafts do not have: create, delete, apply.
    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn field_manager(&self) -> &str {
        &self.field_manager
    }

    /// Sends the status and everything else, where they differ from what was seen. The status comes first: without its last finalizer
    /// the object may be gone.
    pub async fn save<K: Object>(&self, draft: &mut Draft<K>) -> Result<Saved, WriteError> {
        let status = self.save_part(draft, Part::Status).await?;
        let main = self.save_part(draft, Part::Main).await?;
        Ok(Saved { status, main })
    }

    /// Metadata, finalizers and spec only: for a finalizer that must be there before the first step.
    pub async fn save_main<K: Object>(&self, draft: &mut Draft<K>) -> Result<bool, WriteError> {
        self.save_part(draft, Part::Main).await
    }

    pub async fn save_status<K: Object>(&self, draft: &mut Draft<K>) -> Result<bool, WriteError> {
        self.save_part(draft, Part::Status).await
    }

    async fn save_part<K: Object>(
        &self,
        draft: &mut Draft<K>,
        part: Part,
    ) -> Result<bool, WriteError> {
        if !draft.is_changed() {
            return Ok(false);
        }
        let at = At { kind: K::kind(&draft.resource).into_owned(), key: draft.key() };
        for attempt in 0.. {
            let seen = at.encode(draft.seen.as_ref())?;
            let wanted = at.encode(&draft.wanted)?;
            let Some(mut patch) = merge_patch(&part.of(seen.clone()), &part.of(wanted.clone()))
            else {
                return Ok(false);
            };
            if replaces_a_list(&patch) {
                patch["metadata"]["resourceVersion"] = seen["metadata"]["resourceVersion"].clone();
            }
            let writing = Writing::begin(draft, &at);
            match self.patch(draft, &at, part, &patch).await {
                Ok(answer) => {
                    let others = Self::take_in(draft, &at, &seen, &wanted, &patch, answer)?;
                    let has_others = std::mem::take(&mut draft.has_others) || others;
                    let version = draft.seen.meta().resource_version.as_deref().unwrap_or_default();
                    writing.end(if has_others {
                        Written::WithOthers(version)
                    } else {
                        Written::Alone(version)
                    });
                    return Ok(true);
                }
                Err(Error::Api(status)) if status.is_not_found() => return Err(at.gone()),
                Err(Error::Api(status)) if status.is_conflict() && attempt + 1 < ATTEMPTS => {
                    debug!(key = %at.key, attempt, "{} was changed by somebody else", at.key);
                    self.wait(attempt).await;
                    let latest = self.read(draft, &at).await?;
                    draft.has_others |= differ(&seen, &at.encode(&latest)?);
                    Self::rebase(draft, &at, &seen, &wanted, latest)?;
                }
                Err(source) => {
                    let (kind, key, source) = (at.kind, at.key, Box::new(source));
                    return Err(WriteError::Patch { kind, key, part: part.name(), source });
                }
            }
        }
        Ok(false)
    }

    /// The server's answer is what is seen from now on. True if it holds more than what we sent.
    fn take_in<K: Object>(
        draft: &mut Draft<K>,
        at: &At,
        seen: &Value,
        wanted: &Value,
        patch: &Value,
        answer: K,
    ) -> Result<bool, WriteError> {
        let mut expected = seen.clone();
        apply(&mut expected, patch);
        let has_others = differ(&expected, &at.encode(&answer)?);
        Self::rebase(draft, at, seen, wanted, answer)?;
        if let Some(home) = &draft.home {
            home.store.written(draft.seen.as_ref());
        }
        Ok(has_others)
    }

    /// Makes our change on top of a newer state.
    fn rebase<K: Object>(
        draft: &mut Draft<K>,
        at: &At,
        seen: &Value,
        wanted: &Value,
        mut latest: K,
    ) -> Result<(), WriteError> {
        latest.meta_mut().managed_fields = None;
        let theirs = at.encode(&latest)?;
        let merged = rebase(seen, wanted, &theirs, &draft.owned_conditions);
        let mut merged = merged.map_err(|contested| at.contested(contested.condition))?;
        for of_the_server in VOLATILE {
            merged["metadata"][of_the_server] = theirs["metadata"][of_the_server].clone();
        }
        draft.wanted = at.decode(merged)?;
        draft.seen = Arc::new(latest);
        Ok(())
    }

    async fn patch<K: Object>(
        &self,
        draft: &Draft<K>,
        at: &At,
        part: Part,
        patch: &Value,
    ) -> kube::Result<K> {
        let request = Request::new(K::url_path(&draft.resource, at.key.namespace()));
        let params = PatchParams {
            field_manager: Some(self.field_manager.to_string()),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(patch);
        let request = match part {
            Part::Status => request.patch_subresource("status", at.key.name(), &params, &patch),
            Part::Main => request.patch(at.key.name(), &params, &patch),
        };
        self.client.request(request.map_err(Error::BuildRequest)?).await
    }

    async fn read<K: Object>(&self, draft: &Draft<K>, at: &At) -> Result<K, WriteError> {
        let request = Request::new(K::url_path(&draft.resource, at.key.namespace()))
            .get(at.key.name(), &GetParams::default())
            .map_err(Error::BuildRequest);
        let answer = match request {
            Ok(request) => self.client.request::<K>(request).await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(object) if object.meta().uid == draft.seen.meta().uid => Ok(object),
            Ok(_) => Err(at.gone()),
            Err(Error::Api(status)) if status.is_not_found() => Err(at.gone()),
            Err(source) => {
                let (kind, key, source) = (at.kind.clone(), at.key.clone(), Box::new(source));
                Err(WriteError::Read { kind, key, source })
            }
        }
    }

    async fn wait(&self, attempt: u32) {
        let wait = CONFLICT_WAIT * 2_u32.pow(attempt.min(8));
        let wait = {
            let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
            random.duration(wait / 2, wait)
        };
        sleep(wait).await;
    }
}

/// Do two states of an object differ in what people and controllers write?
fn differ(one: &Value, other: &Value) -> bool {
    let (one, other) = (without_empty(one), without_empty(other));
    [Part::Status, Part::Main]
        .into_iter()
        .any(|part| merge_patch(&part.of(one.clone()), &part.of(other.clone())).is_some())
}

/// A list or map of the metadata that holds nothing is the same as none: servers do not store it.
fn without_empty(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|_, value| match value {
            Value::Array(items) => !items.is_empty(),
            Value::Object(fields) => !fields.is_empty(),
            _ => true,
        });
    }
    object
}

/// A write under way. If it is dropped, nothing is known of how it ended.
struct Writing {
    author: Option<Arc<dyn Author>>,
    key: Key,
}

impl Writing {
    fn begin<K: Object>(draft: &Draft<K>, at: &At) -> Self {
        let author = draft.home.as_ref().map(|home| Arc::clone(&home.author));
        if let Some(author) = &author {
            author.begin(&at.key);
        }
        Self { author, key: at.key.clone() }
    }

    fn end(mut self, written: Written<'_>) {
        if let Some(author) = self.author.take() {
            author.end(&self.key, written);
        }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if let Some(author) = self.author.take() {
            author.end(&self.key, Written::Unknown);
        }
    }
}

/// The object that a write is about, for messages.
struct At {
    kind: String,
    key: Key,
}

impl At {
    fn encode<K: Object>(&self, object: &K) -> Result<Value, WriteError> {
        serde_json::to_value(object).map_err(|source| self.unencodable(source))
    }

    fn decode<K: Object>(&self, value: Value) -> Result<K, WriteError> {
        serde_json::from_value(value).map_err(|source| self.unencodable(source))
    }

    fn unencodable(&self, source: serde_json::Error) -> WriteError {
        WriteError::Encode { kind: self.kind.clone(), key: self.key.clone(), source }
    }

    fn gone(&self) -> WriteError {
        WriteError::Gone { kind: self.kind.clone(), key: self.key.clone() }
    }

    fn contested(&self, condition: String) -> WriteError {
        WriteError::Contested { kind: self.kind.clone(), key: self.key.clone(), condition }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Writer")
            .field("field_manager", &self.field_manager)
            .finish_non_exhaustive()
    }
}
