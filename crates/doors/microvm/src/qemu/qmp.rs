//! The monitor of a running QEMU: one JSON object a line, commands answered in turn, events in between.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use crate::error::RuntimeError;

/// A monitor serves one client at a time, so that a caller may wait for the one before it.
const WITHIN: Duration = Duration::from_mins(2);

pub(super) struct Qmp {
    lines: Lines<BufReader<OwnedReadHalf>>,
    to: OwnedWriteHalf,
}

impl Qmp {
    pub(super) async fn connect(socket: &Path) -> Result<Self, RuntimeError> {
        let greet = async {
            let stream = UnixStream::connect(socket).await.map_err(|source| pipe("qmp", source))?;
            let (from, to) = stream.into_split();
            let mut qmp = Self { lines: BufReader::new(from).lines(), to };
            qmp.read("qmp").await?;
            Ok(qmp)
        };
        let mut qmp: Self = within("qmp", greet).await?;
        qmp.execute("qmp_capabilities", json!({})).await?;
        Ok(qmp)
    }

    /// What the command returned. Events that come before its answer are passed over: they have a monitor of their own.
    pub(super) async fn execute(
        &mut self,
        command: &'static str,
        arguments: Value,
    ) -> Result<Value, RuntimeError> {
        let asked = async {
            let mut line = json!({"execute": command, "arguments": arguments}).to_string();
            line.push('\n');
            self.to.write_all(line.as_bytes()).await.map_err(|source| pipe(command, source))?;
            loop {
                let mut said = self.read(command).await?;
                if let Some(error) = said.get("error") {
                    let detail = error["desc"].as_str().unwrap_or("it was refused").to_owned();
                    return Err(RuntimeError::Failed { command: command.to_owned(), detail });
                }
                if let Some(answer) = said.get_mut("return") {
                    return Ok(answer.take());
                }
            }
        };
        within(command, asked).await
    }

    /// A command of the human monitor, which says nothing if it did what it was asked.
    pub(super) async fn human(&mut self, line: &str) -> Result<(), RuntimeError> {
        match self.report(line).await?.trim() {
            "" => Ok(()),
            words => {
                Err(RuntimeError::Failed { command: line.to_owned(), detail: words.to_owned() })
            }
        }
    }

    /// What a command of the human monitor prints.
    pub(super) async fn report(&mut self, line: &str) -> Result<String, RuntimeError> {
        let arguments = json!({"command-line": line});
        let said = self.execute("human-monitor-command", arguments).await?;
        Ok(said.as_str().unwrap_or_default().to_owned())
    }

    /// The name of the next event; `None` when QEMU has ended.
    pub(super) async fn event(&mut self) -> Option<String> {
        loop {
            let said = self.read("qmp events").await.ok()?;
            if let Some(name) = said["event"].as_str() {
                return Some(name.to_owned());
            }
        }
    }

    async fn read(&mut self, command: &str) -> Result<Value, RuntimeError> {
        let line = self.lines.next_line().await.map_err(|source| pipe(command, source))?;
        let line = line.ok_or_else(|| pipe(command, io::ErrorKind::UnexpectedEof.into()))?;
        serde_json::from_str(&line).map_err(|source| RuntimeError::Unreadable {
            command: command.to_owned(),
            printed: line.chars().take(200).collect(),
            source,
        })
    }
}

pub(super) fn pipe(command: &str, source: io::Error) -> RuntimeError {
    RuntimeError::Pipe { command: command.to_owned(), source }
}

async fn within<T>(
    command: &str,
    work: impl Future<Output = Result<T, RuntimeError>>,
) -> Result<T, RuntimeError> {
    let overdue = || RuntimeError::Overdue { command: command.to_owned(), after: WITHIN };
    timeout(WITHIN, work).await.unwrap_or_else(|_| Err(overdue()))
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;
    use tokio::net::UnixListener;

    use super::*;

    #[tokio::test]
    async fn events_between_an_order_and_its_answer_are_passed_over() {
        let folder = std::env::temp_dir().join(format!("roost-qmp-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let socket = folder.join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"{\"QMP\":{}}\n").await.unwrap();
            let mut heard = [0; 4096];
            for answer in [
                "{\"return\":{}}\n",
                "{\"event\":\"STOP\"}\n{\"return\":{\"status\":\"paused\"}}\n",
                "{\"return\":\"no such rule\\r\\n\"}\n",
                "{\"error\":{\"desc\":\"not now\"}}\n{\"event\":\"SHUTDOWN\"}\n",
            ] {
                assert!(stream.read(&mut heard).await.unwrap() > 0);
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        let mut qmp = Qmp::connect(&socket).await.unwrap();
        let status = qmp.execute("query-status", json!({})).await.unwrap();
        assert_eq!(status["status"], "paused");
        let refused = qmp.human("hostfwd_add").await.unwrap_err().to_string();
        assert_eq!(refused, "hostfwd_add: no such rule");
        let refused = qmp.execute("cont", json!({})).await.unwrap_err().to_string();
        assert_eq!(refused, "cont: not now");
        assert_eq!(qmp.event().await.as_deref(), Some("SHUTDOWN"));
        server.await.unwrap();
        assert_eq!(qmp.event().await, None);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
