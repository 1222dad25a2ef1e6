//! A program in a pod's VM, with its streams at a client.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use hyper::body::Incoming;
use roost_microvm::{ExecOptions, ExecStreams, Input, Output, RuntimeError};
use roost_supervise::Chain;
use serde_json::json;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Shared;
use super::answer::{Answer, Refusal};
use super::query::CommandQuery;
use super::routes::Live;
use super::stream::{COMMAND, Channels, Source, Upgrade, Work};
use super::terminal::{Size, Sizes, Terminal};
use crate::contract::Os;
use crate::pods::Host;

/// Clients with a terminal tell its size at once. One that does not gets the size of old.
const SIZE_WITHIN: Duration = Duration::from_millis(500);
const USUAL_SIZE: Size = Size { columns: 80, rows: 24 };

/// How a remote command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    Exit(i32),
    Failed(String),
}

impl End {
    /// What the error stream says: a status, or words to older clients.
    pub(super) fn told(&self, as_status: bool) -> Bytes {
        let (words, status) = match self {
            Self::Exit(0) => (String::new(), json!({"metadata": {}, "status": "Success"})),
            Self::Exit(code) => {
                let words = format!("command terminated with exit code {code}");
                let message = format!("command terminated with non-zero exit code: {words}");
                let causes = json!([{"reason": "ExitCode", "message": code.to_string()}]);
                let status = json!({
                    "metadata": {}, "status": "Failure", "message": message,
                    "reason": "NonZeroExitCode", "details": {"causes": causes},
                });
                (words, status)
            }
            Self::Failed(why) => {
                let words = format!("error executing command in container: {why}");
                let status = json!({
                    "metadata": {}, "status": "Failure",
                    "message": format!("Internal error occurred: {words}"),
                    "reason": "InternalError", "details": {"causes": [{"message": words}]},
                    "code": 500,
                });
                (words, status)
            }
        };
        if as_status { status.to_string().into() } else { words.into() }
    }
}

pub(super) fn answer(
    api: &Arc<Shared>,
    live: Live,
    request: Request<Incoming>,
    upgraded: &mpsc::Sender<Work>,
) -> Result<Answer, Refusal> {
    let query = CommandQuery::parse(request.uri().query().unwrap_or_default())?;
    if query.command.is_empty() {
        return Err(Refusal::bad("no command is given"));
    }
    let upgrade = Upgrade::of(request, &COMMAND)?;
    let answer = upgrade.answer();
    let host = Arc::clone(&api.host);
    let work: Work = Box::pin(async move {
        let chosen = upgrade.chosen;
        let Some(connection) = upgrade.wait().await else { return };
        let Some(channels) = Channels::open(connection, chosen, &query).await else { return };
        run(&host, &live, &query, channels).await;
    });
    let _ = upgraded.try_send(work);
    Ok(answer)
}

async fn run(host: &Arc<Host>, live: &Live, query: &CommandQuery, mut channels: Channels) {
    tracing::info!(pod = %live.key, tty = query.tty, "a program is run in VM {}", live.vm.name());
    let gone = channels.ended();
    let mut copies = JoinSet::new();
    let mut inputs = JoinSet::new();
    let stdin = channels.stdin.take().map(|source| {
        let (reader, fill) = source.into_pipe();
        inputs.spawn(fill);
        if query.tty && is_windows(live) {
            Box::new(EnterEndsLine(reader)) as Input
        } else {
            Box::new(reader) as Input
        }
    });
    let mut output = |lane: Option<super::stream::Lane>| {
        lane.map(|lane| {
            let (writer, send) = lane.into_pipe();
            copies.spawn(send);
            Box::new(writer) as Output
        })
    };
    let help = channels.stdout.clone();
    // A terminal has one screen. Where none can be had, the program still writes to it.
    let screen = (query.tty && is_windows(live)).then(|| channels.stdout.clone()).flatten();
    let streams = ExecStreams {
        stdin,
        stdout: output(channels.stdout.take()),
        stderr: output(channels.stderr.take().or(screen)),
    };
    let program = async {
        // The terminal is made by programs of Linux; Windows gets the command as it is.
        if query.tty && !is_windows(live) {
            in_terminal(host, live, query, channels.resize.take(), streams).await
        } else {
            let options = ExecOptions { argv: query.command.clone(), ..ExecOptions::default() };
            host.runtime.exec(&live.vm.id, options, streams).await
        }
    };
    let ended = tokio::select! {
        ended = program => ended,
        // Whoever asked is gone, and with this the program ends.
        () = gone => return,
    };
    while copies.join_next().await.is_some() {}
    let end = match ended {
        Ok(code) => End::Exit(code),
        Err(RuntimeError::NoGuestDaemon { .. }) if is_windows(live) => {
            if let Some(stdout) = help {
                let _ = stdout.send(rdp_help("exec", live).into()).await;
            }
            End::Exit(0)
        }
        Err(error) => End::Failed(Chain(&error).to_string()),
    };
    let told = end.told(channels.chosen.has_status());
    channels.finish(told).await;
}

/// The terminal of whoever types is raw: Enter sends a carriage return, and a program that reads lines waits for a line feed. On Linux the terminal
/// in the guest translates; a guest without one would wait for ever.
struct EnterEndsLine<R>(R);

impl<R: AsyncRead + Unpin> AsyncRead for EnterEndsLine<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.0).poll_read(context, buffer))?;
        for byte in &mut buffer.filled_mut()[before..] {
            if *byte == b'\r' {
                *byte = b'\n';
            }
        }
        Poll::Ready(Ok(()))
    }
}

pub(super) fn is_windows(live: &Live) -> bool {
    live.tracked.spec.as_ref().is_some_and(|spec| spec.os == Os::Windows)
}

/// What users of a guest that runs no commands are told.
pub(super) fn rdp_help(verb: &str, live: &Live) -> String {
    let address = live.tracked.address.map(|address| address.to_string()).unwrap_or_default();
    format!(
        "vk-cocoon: kubectl {verb} is not supported on Windows guests. Connect via RDP to {address}.\n"
    )
}

async fn in_terminal(
    host: &Arc<Host>,
    live: &Live,
    query: &CommandQuery,
    resize: Option<Source>,
    streams: ExecStreams,
) -> Result<i32, RuntimeError> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let terminal = Terminal::new(format!("{}x{number}", std::process::id()));
    let (mut resize, mut sizes) = (resize, Sizes::default());
    let first = match &mut resize {
        Some(resize) => timeout(SIZE_WITHIN, next_size(resize, &mut sizes)).await.ok().flatten(),
        None => None,
    };
    let options = terminal.around(&query.command, first.unwrap_or(USUAL_SIZE));
    let program = host.runtime.exec(&live.vm.id, options, streams);
    let resizing = async {
        if let Some(mut resize) = resize {
            while let Some(size) = next_size(&mut resize, &mut sizes).await {
                let options = terminal.resize(size);
                let resized = host.runtime.exec(&live.vm.id, options, ExecStreams::default()).await;
                tracing::debug!(pod = %live.key, ?size, ?resized, "a terminal was resized");
            }
        }
        std::future::pending::<std::convert::Infallible>().await
    };
    tokio::select! {
        ended = program => ended,
        never = resizing => match never {},
    }
}

async fn next_size(from: &mut Source, sizes: &mut Sizes) -> Option<Size> {
    loop {
        let data = from.next().await?;
        if let Some(size) = sizes.take(&data) {
            return Some(size);
        }
    }
}
