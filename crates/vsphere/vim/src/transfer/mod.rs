//! Moving files over HTTP, to and from datastores and guests: streamed, with progress, and with a deadline for silence instead of
//! one for the whole.

mod download;
mod progress;
mod source;

use std::io;
use std::time::Duration;

use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use tokio::sync::watch;

pub use download::Download;
use progress::CountedBody;
pub use progress::TransferProgress;
pub use source::{FileSource, ReaderSource, UploadSource};

use crate::meter::Meter;
use crate::transport::empty_body;
use crate::{Body, CallClass, CallError, Observer, Outcome, Remedy};

/// Why a file did not get across.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    #[error("the server answered with HTTP status {status}")]
    Status { status: StatusCode },
    #[error("nothing moved for {after:?}")]
    Silent { after: Duration },
    #[error("it ended after {got} of {wanted} bytes")]
    Short { got: u64, wanted: u64 },
    #[error("it has more than the {limit} bytes that were allowed")]
    TooLarge { limit: u64 },
    #[error("the connection failed")]
    Connection { source: io::Error },
    /// The file on this side.
    #[error("reading or writing the local file")]
    Local { source: io::Error },
    #[error("the server gave an address that is none")]
    Address { source: http::uri::InvalidUri },
    #[error("sending the request")]
    Call { source: CallError },
}

impl TransferError {
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Status { status } => {
                CallError::Http { method: "transfer", status: *status }.remedy()
            }
            Self::Silent { .. } | Self::Short { .. } | Self::Connection { .. } => Remedy::Retry,
            Self::TooLarge { .. } | Self::Local { .. } | Self::Address { .. } => Remedy::GiveUp,
            Self::Call { source } => source.remedy(),
        }
    }
}

/// Whose door a request goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// The server itself: under the session, which is renewed when it is gone.
    Server,
    /// A host that the server named: what authenticates is in the address, and our cookie is none of its business.
    Host,
}

/// One file that is sent or fetched.
#[derive(Debug)]
pub(crate) struct Transfer<'a> {
    pub(crate) observer: &'a Observer,
    /// For metrics, such as `PUT /folder`.
    pub(crate) name: &'static str,
    pub(crate) peer: Peer,
    pub(crate) uri: &'a Uri,
}

impl Transfer<'_> {
    /// Sends all of `source`, once more from its start if the session has to be renewed.
    pub(crate) async fn put(
        &self,
        source: &(impl UploadSource + ?Sized),
        progress: &watch::Sender<TransferProgress>,
    ) -> Result<(), TransferError> {
        let total = source.length();
        let failure = progress::Failure::default();
        let request = || {
            progress.send_replace(TransferProgress { moved: 0, total: Some(total) });
            let body = CountedBody::new(source.open(), total, progress.clone(), failure.clone());
            let mut request = self.request(Method::PUT, http_body_util::BodyExt::boxed(body));
            let headers = request.headers_mut();
            headers
                .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(total));
            request
        };
        let sent = self.unless_silent(self.send(request), progress.subscribe()).await;
        // The other side only sees that the body broke off; why is known here.
        if let Some(source) = failure.take() {
            return Err(TransferError::Local { source });
        }
        let response = sent?;
        expect_success(response.status())
    }

    pub(crate) async fn get(&self) -> Result<Download, TransferError> {
        let (unmoved, _) = watch::channel(TransferProgress::default());
        let request = || self.request(Method::GET, empty_body());
        let response = self.unless_silent(self.send(request), unmoved.subscribe()).await?;
        expect_success(response.status())?;
        Ok(Download::new(response, self.observer.deadline(CallClass::Upload)))
    }

    fn request(&self, method: Method, body: Body) -> Request<Body> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = self.uri.clone();
        request
    }

    async fn send(
        &self,
        mut request: impl FnMut() -> Request<Body> + Send,
    ) -> Result<Response<Body>, TransferError> {
        if self.peer == Peer::Server {
            let sent = self.observer.http(self.name, CallClass::Upload, request).await;
            return sent.map_err(|source| TransferError::Call { source });
        }
        let meter = Meter::start(&self.observer.settings().hooks, self.name, CallClass::Upload, 0);
        let answer = self.observer.transport().send(request()).await;
        meter.finish(if answer.is_ok() { Outcome::Done } else { Outcome::Connection });
        answer.map_err(|source| TransferError::Connection { source })
    }

    /// Gives up when neither a byte moves nor an answer comes for the deadline of the class.
    async fn unless_silent<T>(
        &self,
        work: impl Future<Output = Result<T, TransferError>>,
        mut progress: watch::Receiver<TransferProgress>,
    ) -> Result<T, TransferError> {
        let after = self.observer.deadline(CallClass::Upload);
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                Ok(()) = progress.changed() => {}
                () = tokio::time::sleep(after) => return Err(TransferError::Silent { after }),
            }
        }
    }
}

fn expect_success(status: StatusCode) -> Result<(), TransferError> {
    if status.is_success() { Ok(()) } else { Err(TransferError::Status { status }) }
}
