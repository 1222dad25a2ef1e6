//! A program in a guest, with its streams.
//!
//! The guest agent starts programs and tells their exit code, but carries no streams: output goes to files in the guest that are read while they
//! grow, input comes as numbered files that a shell passes on. So a program that talks for hours is followed, and one that waits for input gets it.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

use super::agent::Agent;
use crate::error::RuntimeError;
use crate::runtime::{ExecOptions, ExecStreams, Input, Output};

const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
/// Read or written in one call. The agent holds it in memory, as text.
const PIECE: usize = 256 * 1024;
/// Pieces of input that the guest has not taken yet.
const AHEAD: u64 = 4;

/// `$1` begins the names of all files, the rest is the program. Numbered files are passed on in their order until one says that it was the last.
const WITH_INPUT: &str = r#"p=$1; shift; mkfifo "$p.fifo" || exit 126
(n=0; while :; do if [ -e "$p.in.$n.ok" ]; then cat "$p.in.$n"; rm -f "$p.in.$n" "$p.in.$n.ok"; n=$((n+1));
elif [ -e "$p.in.end" ]; then exit; else sleep 0.1; fi; done) > "$p.fifo" 2> /dev/null &
"$@" < "$p.fifo" >> "$p.out" 2>> "$p.err"; code=$?; kill $! 2> /dev/null; exit $code"#;
const WITHOUT_INPUT: &str = r#"p=$1; shift; "$@" < /dev/null >> "$p.out" 2>> "$p.err""#;

pub(super) async fn exec(
    agent: Arc<Agent>,
    options: ExecOptions,
    streams: ExecStreams,
) -> Result<i32, RuntimeError> {
    let mut argv: Vec<String> = Vec::new();
    if !options.env.is_empty() {
        argv.push("env".to_owned());
        argv.extend(options.env.iter().map(|(name, value)| format!("{name}={value}")));
    }
    argv.extend(options.argv);
    if streams.stdin.is_none() && streams.stdout.is_none() && streams.stderr.is_none() {
        let pid = begin(&agent, &argv).await?;
        return wait(&agent, pid).await;
    }
    let files = Files::new(agent);
    let (out, err) = (files.open("out", "a+").await?, files.open("err", "a+").await?);
    let script = if streams.stdin.is_some() { WITH_INPUT } else { WITHOUT_INPUT };
    // A session of its own, so that the program can be ended with all that it started.
    let mut line: Vec<String> = ["setsid", "sh", "-c", script, "sh"].map(str::to_owned).into();
    line.push(files.prefix.clone());
    line.extend(argv);
    let pid = begin(&files.agent, &line).await?;
    let mut running = Running { files: Some(files), pid: Some(pid) };
    let Some(files) = &running.files else { return Err(ended()) };
    let program = follow(files, pid, [(out, streams.stdout), (err, streams.stderr)]);
    let code = tokio::select! {
        code = program => code?,
        never = feed(files, streams.stdin) => match never? {},
    };
    running.pid = None;
    Ok(code)
}

async fn begin(agent: &Agent, argv: &[String]) -> Result<i64, RuntimeError> {
    let (program, rest) = argv.split_first().ok_or_else(ended)?;
    let arguments = json!({"path": program, "arg": rest});
    agent.call("guest-exec", arguments).await?["pid"].as_i64().ok_or_else(ended)
}

async fn status(agent: &Agent, pid: i64) -> Result<Option<i32>, RuntimeError> {
    let said = agent.call("guest-exec-status", json!({"pid": pid})).await?;
    if said["exited"] != Value::Bool(true) {
        return Ok(None);
    }
    // A shell tells of a signal in the same way.
    let code = said["exitcode"].as_i64().or_else(|| Some(128 + said["signal"].as_i64()?));
    Ok(Some(code.and_then(|code| i32::try_from(code).ok()).unwrap_or(-1)))
}

async fn wait(agent: &Agent, pid: i64) -> Result<i32, RuntimeError> {
    let mut pause = SHORTEST_PAUSE;
    loop {
        if let Some(code) = status(agent, pid).await? {
            return Ok(code);
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Passes output on until the program has ended and all of it was read.
async fn follow(
    files: &Files,
    pid: i64,
    mut outputs: [(i64, Option<Output>); 2],
) -> Result<i32, RuntimeError> {
    let mut pause = SHORTEST_PAUSE;
    loop {
        // Asked first: what was written before the end is then read after it.
        let ended = status(&files.agent, pid).await?;
        let mut heard = false;
        for (file, to) in &mut outputs {
            heard |= pass(files, *file, to.as_mut(), ended.is_some()).await?;
        }
        if let Some(code) = ended {
            for (_, to) in outputs {
                if let Some(mut to) = to {
                    let _ = to.shutdown().await;
                }
            }
            return Ok(code);
        }
        pause = if heard { SHORTEST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
        sleep(pause).await;
    }
}

/// One piece of a file, or all that is left of it. Whether there was something.
async fn pass(
    files: &Files,
    file: i64,
    mut to: Option<&mut Output>,
    all: bool,
) -> Result<bool, RuntimeError> {
    let mut heard = false;
    loop {
        let arguments = json!({"handle": file, "count": PIECE});
        let said = files.agent.call("guest-file-read", arguments).await?;
        let data = BASE64_STANDARD.decode(said["buf-b64"].as_str().unwrap_or_default());
        let data = data.map_err(|error| failed("guest-file-read", &error.to_string()))?;
        if data.is_empty() {
            return Ok(heard);
        }
        heard = true;
        if let Some(to) = &mut to {
            let written = async { to.write_all(&data).await.and(to.flush().await) };
            written.await.map_err(|source| super::qmp::pipe("exec", source))?;
        }
        if !all {
            return Ok(heard);
        }
    }
}

/// Input as it comes, and then its end, which does not end the program.
async fn feed(files: &Files, stdin: Option<Input>) -> Result<Infallible, RuntimeError> {
    let Some(mut stdin) = stdin else { return std::future::pending().await };
    let mut buffer = vec![0; PIECE];
    for number in 0_u64.. {
        // Whoever reads the input broke off if this fails; what was read until then is all.
        let count = stdin.read(&mut buffer).await.unwrap_or(0);
        if count == 0 {
            files.put("in.end", &[]).await?;
            break;
        }
        if let Some(earlier) = number.checked_sub(AHEAD) {
            while files.exists(&format!("in.{earlier}.ok")).await {
                sleep(LONGEST_PAUSE).await;
            }
        }
        files.put(&format!("in.{number}"), &buffer[..count]).await?;
        files.put(&format!("in.{number}.ok"), &[]).await?;
    }
    std::future::pending().await
}

/// The files of one program in the guest.
struct Files {
    agent: Arc<Agent>,
    prefix: String,
}

impl Files {
    fn new(agent: Arc<Agent>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("/tmp/.roost-exec-{}-{number}", std::process::id());
        Self { agent, prefix }
    }

    async fn open(&self, name: &str, mode: &str) -> Result<i64, RuntimeError> {
        let arguments = json!({"path": format!("{}.{name}", self.prefix), "mode": mode});
        self.agent.call("guest-file-open", arguments).await?.as_i64().ok_or_else(ended)
    }

    async fn close(&self, file: i64) -> Result<(), RuntimeError> {
        self.agent.call("guest-file-close", json!({"handle": file})).await.map(drop)
    }

    async fn put(&self, name: &str, data: &[u8]) -> Result<(), RuntimeError> {
        let file = self.open(name, "w").await?;
        if !data.is_empty() {
            let data = BASE64_STANDARD.encode(data);
            let arguments = json!({"handle": file, "buf-b64": data});
            self.agent.call("guest-file-write", arguments).await?;
        }
        self.close(file).await
    }

    async fn exists(&self, name: &str) -> bool {
        match self.open(name, "r").await {
            Ok(file) => self.close(file).await.is_ok(),
            Err(_) => false,
        }
    }

    /// Ends what still runs, and takes the files away.
    async fn clean(self, pid: Option<i64>) {
        let kill = pid.map(|pid| format!("kill -9 -{pid}; ")).unwrap_or_default();
        let script = format!("{kill}rm -f {}.*", self.prefix);
        let argv = ["sh", "-c", &script].map(str::to_owned);
        let cleaned = async { wait(&self.agent, begin(&self.agent, &argv).await?).await };
        if let Err(error) = cleaned.await {
            tracing::debug!("files of a program stay in the guest: {error}");
        }
    }
}

/// However it ends, also when nobody waits any more, nothing of it stays in the guest.
struct Running {
    files: Option<Files>,
    pid: Option<i64>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(files) = self.files.take() else { return };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(files.clean(self.pid));
        }
    }
}

fn failed(command: &str, detail: &str) -> RuntimeError {
    RuntimeError::Failed { command: command.to_owned(), detail: detail.to_owned() }
}

fn ended() -> RuntimeError {
    failed("guest-exec", "the guest agent's answer says nothing")
}
