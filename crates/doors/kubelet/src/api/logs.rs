//! The log of a pod's VM, line by line.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::unfold;
use http::{HeaderValue, Response, header};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use jiff::Timestamp;
use roost_microvm::LogOptions;
use roost_supervise::Chain;
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::Shared;
use super::answer::{self, Answer, Refusal};
use super::query::LogQuery;
use super::routes::Target;
use crate::contract::Os;

const PIPE: usize = 64 * 1024;
const READ: usize = 32 * 1024;
/// How long the first line, or the first failure, is waited for before the answer begins.
const BEGIN_WITHIN: Duration = Duration::from_millis(300);
/// A line that is longer is passed on in pieces.
const LONGEST_LINE: usize = 256 * 1024;

pub(super) async fn answer(
    api: &Arc<Shared>,
    target: Target,
    query: &str,
) -> Result<Answer, Refusal> {
    let query = LogQuery::parse(query, api.host.clock.now())?;
    let Some(vm) = target.tracked.vm.clone() else {
        return Ok(answer::text("vk-cocoon: pod has no live VM\n"));
    };
    if query.previous {
        let restarts = target.tracked.restarts;
        refuse_previous(&target, restarts, api.host.runtime.capabilities().previous_logs)?;
    }
    let (lines, mut ready) = mpsc::channel(4);
    let api = Arc::clone(api);
    let is_windows = target.tracked.spec.as_ref().is_some_and(|spec| spec.os == Os::Windows);
    let address = target.tracked.address.map(|address| address.to_string()).unwrap_or_default();
    let started = vm.started_at;
    tokio::spawn(async move {
        let (to, mut from) = tokio::io::duplex(PIPE);
        // What is over grows no more.
        let follow = query.follow && !query.previous;
        let options = LogOptions { tail: query.tail, follow, previous: query.previous };
        let log = api.host.runtime.logs(&vm.id, options, Box::new(to));
        let mut filter = Lines::new(query, started);
        let pass = async {
            let mut buffer = vec![0; READ];
            loop {
                let count = from.read(&mut buffer).await.unwrap_or(0);
                let now = api.host.clock.now();
                let wanted = if count == 0 {
                    filter.finish(now)
                } else {
                    filter.take(&buffer[..count], now)
                };
                if !wanted.is_empty() && lines.send(Ok(wanted.into())).await.is_err() {
                    return;
                }
                if count == 0 || filter.is_done() {
                    return;
                }
            }
        };
        let both = async {
            tokio::pin!(log, pass);
            let ended = tokio::select! {
                ended = &mut log => ended,
                // The client has all it wants: the rest of the log is not read.
                () = &mut pass => return,
            };
            pass.await;
            match ended {
                Ok(()) => {}
                Err(_) if is_windows => {
                    let text = format!(
                        "vk-cocoon: kubectl logs is not supported on Windows guests; connect via RDP to {address}\n"
                    );
                    let _ = lines.send(Ok(text.into())).await;
                }
                Err(error) => {
                    let text = Chain(&error).to_string();
                    let _ = lines.send(Err(text)).await;
                }
            }
        };
        tokio::select! {
            () = both => {}
            () = lines.closed() => {}
        }
    });
    let first = match timeout(BEGIN_WITHIN, ready.recv()).await {
        Ok(Some(Err(error))) => return Err(Refusal::failed(error)),
        Ok(None) => return Ok(answer::text("")),
        Ok(Some(Ok(first))) => Some(first),
        Err(_) => None,
    };
    let rest = unfold((first, ready), |(first, mut ready)| async {
        let data: Bytes = match first {
            Some(first) => first,
            // A failure in the middle can only be told in the log itself.
            None => ready.recv().await?.unwrap_or_else(|error| format!("{error}\n").into()),
        };
        Some((Ok::<_, Infallible>(Frame::data(data)), (None, ready)))
    });
    let mut answer = Response::new(StreamBody::new(rest).boxed_unsync());
    let kind = HeaderValue::from_static("text/plain");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(answer)
}

/// Not every log of before the last start can be had.
fn refuse_previous(target: &Target, restarts: i32, is_kept: bool) -> Result<(), Refusal> {
    let (key, container) = (&target.key, container(target));
    let told = |why: &str| {
        Refusal::bad(format!(
            "previous terminated container {container:?} in pod {key} not found{why}"
        ))
    };
    match (restarts, is_kept) {
        (0, _) => Err(told("")),
        (_, true) => Ok(()),
        (_, false) => Err(told(": the runtime of this node keeps no log of before the last start")),
    }
}

fn container(target: &Target) -> &str {
    let containers = target.pod.spec.as_ref().map(|spec| spec.containers.as_slice());
    containers.and_then(<[_]>::first).map_or("agent", |container| container.name.as_str())
}

/// Lines as they come, and what of them is wanted.
#[derive(Debug)]
struct Lines {
    query: LogQuery,
    /// The last time that a line began with. Lines without one were written at about the same time.
    last: Option<Timestamp>,
    /// Of lines before any time is known.
    earliest: Option<Timestamp>,
    /// Whether the line that is being read is wanted; `None` at its beginning.
    verdict: Option<bool>,
    rest: Vec<u8>,
    left: u64,
}

impl Lines {
    fn new(query: LogQuery, earliest: Option<Timestamp>) -> Self {
        let left = query.limit_bytes.unwrap_or(u64::MAX);
        Self { query, last: None, earliest, verdict: None, rest: Vec::new(), left }
    }

    fn is_done(&self) -> bool {
        self.left == 0
    }

    fn take(&mut self, data: &[u8], now: Timestamp) -> Vec<u8> {
        self.rest.extend_from_slice(data);
        let mut wanted = Vec::new();
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            self.piece(&line, true, now, &mut wanted);
        }
        if self.rest.len() > LONGEST_LINE {
            let line = std::mem::take(&mut self.rest);
            self.piece(&line, false, now, &mut wanted);
        }
        self.cut(wanted)
    }

    fn finish(&mut self, now: Timestamp) -> Vec<u8> {
        let line = std::mem::take(&mut self.rest);
        let mut wanted = Vec::new();
        if !line.is_empty() {
            self.piece(&line, true, now, &mut wanted);
        }
        self.cut(wanted)
    }

    fn piece(&mut self, line: &[u8], is_end: bool, now: Timestamp, wanted: &mut Vec<u8>) {
        let begins = self.verdict.is_none();
        if begins {
            self.last = time_of(line).or(self.last);
            let is_late = |since| self.last.is_none_or(|time| time >= since);
            self.verdict = Some(self.query.since.is_none_or(is_late));
        }
        if self.verdict == Some(true) {
            if begins && self.query.timestamps {
                let time = self.last.or(self.earliest).unwrap_or(now);
                wanted.extend(format!("{time:.9} ").bytes());
            }
            wanted.extend_from_slice(line);
        }
        if is_end {
            self.verdict = None;
        }
    }

    fn cut(&mut self, mut wanted: Vec<u8>) -> Vec<u8> {
        wanted.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left = self.left.saturating_sub(wanted.len() as u64);
        wanted
    }
}

/// The time that a line begins with, perhaps in brackets.
fn time_of(line: &[u8]) -> Option<Timestamp> {
    let line = std::str::from_utf8(line.get(..line.len().min(48))?).ok()?;
    let line = line.trim_start_matches(['[', '"']);
    let end = line.find(|letter: char| letter.is_whitespace() || matches!(letter, ']' | '"'));
    let word = line.get(..end?)?;
    // Shorter words are numbers and dates without a time.
    if word.len() < 20 { None } else { word.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn read(query: LogQuery, log: &str, chunk: usize) -> String {
        let mut lines = Lines::new(query, Some(at(50)));
        let mut all = Vec::new();
        for chunk in log.as_bytes().chunks(chunk) {
            all.extend(lines.take(chunk, at(1000)));
        }
        all.extend(lines.finish(at(1000)));
        String::from_utf8(all).unwrap()
    }

    const LOG: &str =
        "booting\n1970-01-01T00:01:40Z up\nmore of it\n[1970-01-01T00:03:20.5Z] login\nlast";

    #[test]
    fn lines_come_as_they_are_however_they_are_cut() {
        for chunk in [1, 3, 1000] {
            assert_eq!(read(LogQuery::default(), LOG, chunk), LOG);
        }
    }

    #[test]
    fn since_keeps_what_is_late_and_what_has_no_time() {
        let query = LogQuery { since: Some(at(150)), ..LogQuery::default() };
        assert_eq!(
            read(query, LOG, 5),
            "booting\n[1970-01-01T00:03:20.5Z] login\nlast",
            "a line without a time is as late as the one before it"
        );
    }

    #[test]
    fn every_line_gets_a_time_if_times_are_asked_for() {
        let query = LogQuery { timestamps: true, ..LogQuery::default() };
        let shown = read(query, LOG, 7);
        let times: Vec<&str> = shown.lines().map(|line| &line[..20]).collect();
        assert_eq!(
            times,
            [
                "1970-01-01T00:00:50.",
                "1970-01-01T00:01:40.",
                "1970-01-01T00:01:40.",
                "1970-01-01T00:03:20.",
                "1970-01-01T00:03:20."
            ]
        );
    }

    #[test]
    fn no_more_bytes_than_asked_for() {
        let query = LogQuery { limit_bytes: Some(10), ..LogQuery::default() };
        for chunk in [1, 4, 1000] {
            assert_eq!(read(query, LOG, chunk), "booting\n19");
        }
    }
}
