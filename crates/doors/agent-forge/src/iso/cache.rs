//! Brings what an address has onto a datastore, under the name of its content.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::{StreamExt, stream};
use http_body::Frame;
use http_body_util::{BodyExt, BodyStream, StreamBody};
use roost_vim::{Body, Datastore, FileError, TransferProgress, UploadSource};
use tokio::sync::watch;

use super::hashed::{Hashed, Seen};
use super::source::{Fetched, IsoSource, SourceError};

/// What a look at the ISO found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refreshed {
    /// On the datastore, without its name.
    pub path: String,
    pub sha256: String,
    pub bytes: u64,
    /// It was not there before.
    pub uploaded: bool,
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct RefreshInput {
    pub url: String,
    /// The directory on the datastore.
    pub prefix: String,
    /// What the file is called there until it is whole. One uploader per name.
    pub arriving: String,
    /// Path, digest and size of the one that is known, if there is one below this directory.
    pub known: Option<(String, String, u64)>,
    /// Do not believe the server that nothing changed.
    pub forced: bool,
    /// Whose certificates are believed, as PEM; the system's if not set.
    pub authorities: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum IsoError {
    #[error("{url}")]
    Download { url: String, source: SourceError },
    #[error("{url}: the download broke off")]
    Broken { url: String, source: std::io::Error },
    #[error("the ISO on the datastore")]
    Datastore { source: FileError },
    #[error("{url} is empty")]
    Empty { url: String },
}

impl IsoError {
    /// The reason of the condition.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Download { .. } | Self::Broken { .. } | Self::Empty { .. } => "DownloadFailed",
            Self::Datastore { source: FileError::Transfer { .. } } => "UploadFailed",
            Self::Datastore { .. } => "DatastoreUnavailable",
        }
    }
}

/// Looks at ISOs. What servers said about their versions is remembered, so that a look at one that did not change costs no download.
#[derive(Debug)]
pub struct IsoCache {
    source: Arc<dyn IsoSource>,
    marks: Mutex<HashMap<String, Mark>>,
}

#[derive(Debug, Clone)]
struct Mark {
    mark: String,
    sha256: String,
}

impl IsoCache {
    pub fn new(source: Arc<dyn IsoSource>) -> Self {
        Self { source, marks: Mutex::default() }
    }

    /// One look. Safe to repeat, also after a crash at any point: a file has its name only once it is whole.
    pub async fn refresh(
        &self,
        input: &RefreshInput,
        files: &Datastore,
        progress: &watch::Sender<TransferProgress>,
    ) -> Result<Refreshed, IsoError> {
        let failed = |source| IsoError::Datastore { source };
        // Before anything is downloaded: is what we have still there, and whole?
        let mut there = None;
        if let Some((path, sha256, bytes)) = &input.known {
            let found = files.stat(&files.path(path)).await.map_err(failed)?;
            if found.is_some_and(|file| file.bytes.is_none_or(|has| has == *bytes)) {
                there = Some(Refreshed {
                    path: path.clone(),
                    sha256: sha256.clone(),
                    bytes: *bytes,
                    uploaded: false,
                });
            }
        }
        let mark =
            there.as_ref().filter(|_| !input.forced).and_then(|known| self.mark(input, known));
        let opened = self.open(input, mark.as_deref()).await?;
        let Opened { length, mark, body } = match (opened, there.clone()) {
            (None, Some(known)) => return Ok(known),
            (None, None) => {
                return Err(Self::broken(&input.url, "unchanged, though nothing was known"));
            }
            (Some(opened), _) => opened,
        };
        // What changed is most often nothing, so one look without an upload comes first where something is known.
        if let Some(known) = there {
            let (sha256, bytes) = self.drain(&input.url, body).await?;
            self.remember(&input.url, mark, &sha256);
            if sha256 == known.sha256 && bytes == known.bytes {
                return Ok(known);
            }
            return self.bring(input, files, Some((sha256, bytes)), None, progress).await;
        }
        if let Some(length) = length {
            return self.bring(input, files, None, Some((length, mark, body)), progress).await;
        }
        // Without a length nothing can be sent on: count first.
        let counted = self.drain(&input.url, body).await?;
        self.remember(&input.url, mark, &counted.0);
        self.bring(input, files, Some(counted), None, progress).await
    }

    /// Streams the content to the datastore and gives it its name.
    async fn bring(
        &self,
        input: &RefreshInput,
        files: &Datastore,
        expected: Option<(String, u64)>,
        first: Option<(u64, Option<String>, Body)>,
        progress: &watch::Sender<TransferProgress>,
    ) -> Result<Refreshed, IsoError> {
        let failed = |source| IsoError::Datastore { source };
        if let Some((sha256, bytes)) = &expected {
            let path = format!("{}/{sha256}.iso", input.prefix);
            let found = files.stat(&files.path(&path)).await.map_err(failed)?;
            if found.is_some_and(|file| file.bytes == Some(*bytes)) {
                return Ok(Refreshed {
                    path,
                    sha256: sha256.clone(),
                    bytes: *bytes,
                    uploaded: false,
                });
            }
        }
        let (length, mark, body) = match (first, &expected) {
            (Some((length, mark, body)), _) => (length, mark, Some(body)),
            (None, Some((_, bytes))) => (*bytes, None, None),
            (None, None) => return Err(Self::broken(&input.url, "nothing to send")),
        };
        if length == 0 {
            return Err(IsoError::Empty { url: input.url.clone() });
        }
        let passing = Passing {
            source: Arc::clone(&self.source),
            url: input.url.clone(),
            authorities: input.authorities.clone(),
            length,
            first: Mutex::new(body),
            seen: Mutex::new(Seen::new()),
        };
        let arriving = files.path(&format!("{}/{}", input.prefix, input.arriving));
        files.upload_with_progress(&passing, &arriving, progress).await.map_err(failed)?;
        let (sha256, bytes) = passing.seen().finish();
        let path = format!("{}/{sha256}.iso", input.prefix);
        // Somebody else's upload of the same content may be in a drive by now, and must not be replaced.
        let found = files.stat(&files.path(&path)).await.map_err(failed)?;
        if found.is_some_and(|file| file.bytes == Some(bytes)) {
            files.delete(&arriving).await.map_err(failed)?;
            self.remember(&input.url, mark, &sha256);
            return Ok(Refreshed { path, sha256, bytes, uploaded: false });
        }
        files.move_to(&arriving, &files.path(&path)).await.map_err(failed)?;
        let moved = files.stat(&files.path(&path)).await.map_err(failed)?;
        if moved.is_none_or(|file| file.bytes.is_some_and(|has| has != bytes)) {
            let lost = FileError::Lost { path: files.path(&path).to_string() };
            return Err(failed(lost));
        }
        self.remember(&input.url, mark, &sha256);
        Ok(Refreshed { path, sha256, bytes, uploaded: true })
    }

    async fn open(
        &self,
        input: &RefreshInput,
        mark: Option<&str>,
    ) -> Result<Option<Opened>, IsoError> {
        let url = &input.url;
        let fetched = self.source.fetch_trusting(url, mark, input.authorities.as_deref()).await;
        match fetched.map_err(|source| IsoError::Download { url: url.clone(), source })? {
            Fetched::Unchanged => Ok(None),
            Fetched::Content { length, mark, body } => Ok(Some(Opened { length, mark, body })),
        }
    }

    /// Reads to the end without keeping anything.
    async fn drain(&self, url: &str, body: Body) -> Result<(String, u64), IsoError> {
        let seen = Seen::new();
        let mut chunks = BodyStream::new(body);
        while let Some(frame) = chunks.next().await {
            let frame = frame.map_err(|source| IsoError::Broken { url: url.to_owned(), source })?;
            if let Some(chunk) = frame.data_ref() {
                seen.add(chunk);
            }
        }
        Ok(seen.finish())
    }

    fn mark(&self, input: &RefreshInput, known: &Refreshed) -> Option<String> {
        let marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let mark = marks.get(&input.url).filter(|mark| mark.sha256 == known.sha256)?;
        Some(mark.mark.clone())
    }

    fn remember(&self, url: &str, mark: Option<String>, sha256: &str) {
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        match mark {
            Some(mark) => {
                marks.insert(url.to_owned(), Mark { mark, sha256: sha256.to_owned() });
            }
            None => {
                marks.remove(url);
            }
        }
    }

    fn broken(url: &str, why: &'static str) -> IsoError {
        IsoError::Broken { url: url.to_owned(), source: std::io::Error::other(why) }
    }
}

struct Opened {
    length: Option<u64>,
    mark: Option<String>,
    body: Body,
}

/// What arrives from one server and goes to another. Each try begins with a download of its own.
struct Passing {
    source: Arc<dyn IsoSource>,
    url: String,
    authorities: Option<String>,
    length: u64,
    first: Mutex<Option<Body>>,
    seen: Mutex<Seen>,
}

impl Passing {
    fn seen(&self) -> Seen {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl UploadSource for Passing {
    fn length(&self) -> u64 {
        self.length
    }

    fn open(&self) -> Body {
        let seen = Seen::new();
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen.clone();
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(body) = first {
            return Hashed::new(body, seen).boxed();
        }
        let (source, url) = (Arc::clone(&self.source), self.url.clone());
        let authorities = self.authorities.clone();
        // A channel in between, because a download that is being opened cannot be shared between threads.
        let (sender, receiver) = tokio::sync::mpsc::channel(4);
        tokio::spawn(async move {
            let body = match source.fetch_trusting(&url, None, authorities.as_deref()).await {
                Ok(Fetched::Content { body, .. }) => body,
                Ok(Fetched::Unchanged) => return,
                Err(error) => {
                    let _ = sender.send(Err(std::io::Error::other(error))).await;
                    return;
                }
            };
            let mut frames = BodyStream::new(body);
            while let Some(frame) = frames.next().await {
                if sender.send(frame).await.is_err() {
                    return;
                }
            }
        });
        let frames = stream::unfold(receiver, async |mut receiver| {
            let frame: Option<std::io::Result<Frame<bytes::Bytes>>> = receiver.recv().await;
            frame.map(|frame| (frame, receiver))
        });
        let body = BodyExt::boxed(StreamBody::new(frames));
        Hashed::new(body, seen).boxed()
    }
}
