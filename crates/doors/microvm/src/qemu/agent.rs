//! QEMU's guest agent: the program in a guest that runs others there. It speaks over a serial port, to one client at a time.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::error::RuntimeError;

/// An agent that is there answers in milliseconds; a guest without hardware support on a busy host, in seconds.
const WITHIN: Duration = Duration::from_secs(30);
/// Marks where an answer begins, whatever was left on the line before.
const MARK: u8 = 0xff;

/// The agent of one VM. Calls of many callers go out one after the other.
#[derive(Debug)]
pub(super) struct Agent {
    vm: String,
    socket: PathBuf,
    line: Mutex<Option<Connection>>,
    next: AtomicU64,
}

#[derive(Debug)]
struct Connection {
    from: BufReader<OwnedReadHalf>,
    to: OwnedWriteHalf,
}

impl Agent {
    pub(super) fn new(vm: &str, socket: PathBuf) -> Self {
        Self { vm: vm.to_owned(), socket, line: Mutex::default(), next: AtomicU64::new(1) }
    }

    pub(super) async fn ping(&self) -> Result<(), RuntimeError> {
        self.call("guest-ping", json!({})).await.map(drop)
    }

    /// A call that is cut short leaves an answer on the line, so the line is given up with it.
    pub(super) async fn call(
        &self,
        command: &str,
        arguments: Value,
    ) -> Result<Value, RuntimeError> {
        let mut line = self.line.lock().await;
        let mut connection = match line.take() {
            Some(connection) => connection,
            None => self.sync().await?,
        };
        let asked = connection.ask(json!({"execute": command, "arguments": arguments}));
        let said = match timeout(WITHIN, asked).await {
            Ok(said) => said.map_err(|error| self.missing(&error.to_string()))?,
            Err(_) => return Err(self.missing(&format!("no answer within {WITHIN:?}"))),
        };
        *line = Some(connection);
        match said {
            Ok(answer) => Ok(answer),
            Err(detail) => Err(RuntimeError::Failed { command: command.to_owned(), detail }),
        }
    }

    /// A connection on which the next answer is the one to the next question.
    async fn sync(&self) -> Result<Connection, RuntimeError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let meet = async {
            let stream = UnixStream::connect(&self.socket).await?;
            let (from, to) = stream.into_split();
            let mut connection = Connection { from: BufReader::new(from), to };
            let question = json!({"execute": "guest-sync-delimited", "arguments": {"id": id}});
            connection.to.write_all(&[MARK]).await?;
            connection.send(&question).await?;
            while connection.read().await? != Ok(Value::from(id)) {}
            std::io::Result::Ok(connection)
        };
        match timeout(WITHIN, meet).await {
            Ok(met) => met.map_err(|error| self.missing(&error.to_string())),
            Err(_) => Err(self.missing("the guest agent does not answer")),
        }
    }

    fn missing(&self, detail: &str) -> RuntimeError {
        RuntimeError::NoGuestDaemon { vm: self.vm.clone(), detail: detail.to_owned() }
    }
}

impl Connection {
    async fn ask(&mut self, question: Value) -> std::io::Result<Result<Value, String>> {
        self.send(&question).await?;
        self.read().await
    }

    async fn send(&mut self, question: &Value) -> std::io::Result<()> {
        let mut line = question.to_string();
        line.push('\n');
        self.to.write_all(line.as_bytes()).await
    }

    /// The next answer, or the agent's own words for why there is none.
    async fn read(&mut self) -> std::io::Result<Result<Value, String>> {
        let mut line = Vec::new();
        if self.from.read_until(b'\n', &mut line).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let begin = line.iter().rposition(|byte| *byte == MARK).map_or(0, |at| at + 1);
        let mut said: Value = serde_json::from_slice(&line[begin..])?;
        Ok(match said.get("error") {
            Some(error) => Err(error["desc"].as_str().unwrap_or("it was refused").to_owned()),
            None => Ok(said["return"].take()),
        })
    }
}
