//! The event stream: one JSON object a line, for as long as the command runs.

use std::process::Stdio;

use futures_util::stream::{StreamExt, unfold};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::process::ChildStdout;

use super::argv;
use super::child::{Caller, Group, keep_end};
use super::classify::failure;
use crate::error::RuntimeError;
use crate::record::VmEvent;
use crate::runtime::Watch;

const COMMAND: &str = "vm status";

struct Stream {
    lines: Lines<BufReader<ChildStdout>>,
    group: Group,
}

#[expect(clippy::unused_async, reason = "a runtime answers with a future, and others wait here")]
pub(super) async fn watch(caller: &Caller) -> Result<Watch, RuntimeError> {
    let mut group = caller.spawn(&argv::watch(), Stdio::null())?;
    let out = group.child.stdout.take().ok_or_else(|| RuntimeError::Failed {
        command: COMMAND.to_owned(),
        detail: "it has no standard output".to_owned(),
    })?;
    let stream = Stream { lines: BufReader::new(out).lines(), group };
    Ok(unfold(Some(stream), next).boxed())
}

async fn next(stream: Option<Stream>) -> Option<(Result<VmEvent, RuntimeError>, Option<Stream>)> {
    let mut stream = stream?;
    loop {
        match stream.lines.next_line().await {
            Ok(Some(line)) if line.trim().is_empty() => {}
            Ok(Some(line)) => match serde_json::from_str(&line) {
                Ok(event) => return Some((Ok(event), Some(stream))),
                // One odd line is not the end of the stream: whoever listens also lists.
                Err(error) => tracing::warn!("an event of the runtime cannot be read: {error}"),
            },
            Ok(None) => return ended(stream).await.map(|error| (Err(error), None)),
            Err(source) => {
                let command = COMMAND.to_owned();
                return Some((Err(RuntimeError::Pipe { command, source }), None));
            }
        }
    }
}

/// The stream ended: quietly if the command ended well, else with what it said.
async fn ended(mut stream: Stream) -> Option<RuntimeError> {
    let mut said = Vec::new();
    if let Some(mut stderr) = stream.group.child.stderr.take() {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
            keep_end(&mut said, &buffer[..count]);
        }
    }
    match stream.group.child.wait().await {
        Ok(status) if status.success() => None,
        _ => Some(failure(COMMAND, "", &String::from_utf8_lossy(&said))),
    }
}
