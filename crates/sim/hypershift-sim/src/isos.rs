use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use ring::digest::{SHA256, digest};

/// The ISOs that the assisted service offers. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Isos {
    shelf: Arc<Mutex<Shelf>>,
}

#[derive(Debug, Default)]
struct Shelf {
    by_name: HashMap<String, Bytes>,
    /// Digests of everything that was ever offered.
    offered: HashSet<String>,
    downloads: usize,
    is_down: bool,
}

fn sha256(content: &[u8]) -> String {
    let mut text = String::new();
    for byte in digest(&SHA256, content).as_ref() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

impl Isos {
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Offers an ISO under the name of an InfraEnv, in place of the one before. Returns its address below `base`.
    pub fn publish(&self, base: &str, name: &str, content: Bytes) -> String {
        let mut shelf = self.shelf();
        shelf.offered.insert(sha256(&content));
        shelf.by_name.insert(name.to_owned(), content);
        format!("{base}/iso/{name}")
    }

    /// What is at an address, and its mark. `None` while the service is down, or if there is no such ISO.
    pub fn read(&self, url: &str) -> Option<(Bytes, String)> {
        let mut shelf = self.shelf();
        if shelf.is_down {
            return None;
        }
        let name = url.rsplit('/').next().unwrap_or_default();
        let content = shelf.by_name.get(name).cloned()?;
        shelf.downloads += 1;
        let mark = format!("\"{}\"", &sha256(&content)[..16]);
        Some((content, mark))
    }

    /// Whether a file name is that of an ISO that was offered at some time.
    pub fn has_offered(&self, path: &str) -> bool {
        self.shelf().offered.iter().any(|digest| path.contains(digest))
    }

    pub fn downloads(&self) -> usize {
        self.shelf().downloads
    }

    pub fn set_down(&self, is_down: bool) {
        self.shelf().is_down = is_down;
    }

    /// Serves them over HTTP until it is dropped. Returns the base address.
    pub async fn serve(
        &self,
    ) -> std::io::Result<(String, impl Future<Output = std::io::Result<()>> + use<>)> {
        let listener = tokio::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        let base = format!("http://{}", listener.local_addr()?);
        let router =
            Router::new().route("/iso/{name}", axum::routing::get(answer)).with_state(self.clone());
        Ok((base, axum::serve(listener, router).into_future()))
    }
}

async fn answer(
    State(isos): State<Isos>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    let Some((content, mark)) = isos.read(&name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let known = headers.get(http::header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    if known == Some(mark.as_str()) {
        return StatusCode::NOT_MODIFIED.into_response();
    }
    ([(http::header::ETAG, mark)], content).into_response()
}
