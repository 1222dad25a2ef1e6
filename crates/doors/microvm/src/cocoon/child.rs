//! One call of the command line: a process group of its own, which ends with whoever waits for it.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::classify::{failure, tidy};
use crate::error::RuntimeError;
use crate::runtime::{Input, Output};

/// Output of a command that only reports: more than this is cut off at the front.
const LONGEST_REPORT: usize = 64 * 1024;
/// Output that is read as JSON. A list of some thousand VMs is a few megabytes.
const LONGEST_JSON: u64 = 256 * 1024 * 1024;

/// How the program is called.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) program: Vec<String>,
}

/// A running child. Dropping it ends its whole group: `sudo` alone would leave the real command behind, holding pipes.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) child: Child,
    pid: Option<Pid>,
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = self.pid {
            // Gone already, or not ours to end: either way there is nothing left to do.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

impl Group {
    /// It ended by itself, so its number may belong to somebody else soon.
    async fn wait(&mut self, command: &str) -> Result<ExitStatus, RuntimeError> {
        let status = self.child.wait().await.map_err(|source| pipe(command, source))?;
        self.pid = None;
        Ok(status)
    }
}

fn pipe(command: &str, source: std::io::Error) -> RuntimeError {
    RuntimeError::Pipe { command: command.to_owned(), source }
}

/// The words that name a call in messages: the verb without its arguments, which may carry what nobody should read.
pub(super) fn verb(argv: &[String]) -> String {
    argv.iter().take(2).cloned().collect::<Vec<_>>().join(" ")
}

impl Caller {
    pub(super) fn spawn(&self, argv: &[String], stdin: Stdio) -> Result<Group, RuntimeError> {
        let start = |source| RuntimeError::Start { command: self.program.join(" "), source };
        let (program, fixed) = self
            .program
            .split_first()
            .ok_or_else(|| start(std::io::Error::from(std::io::ErrorKind::NotFound)))?;
        tracing::debug!(command = %verb(argv), "calling the runtime");
        let child = Command::new(program)
            .args(fixed)
            .args(argv)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(start)?;
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Ok(Group { child, pid })
    }

    /// Runs to the end; standard output, or the failure that the output tells.
    pub(super) async fn output(
        &self,
        argv: Vec<String>,
        subject: &str,
        limit: Duration,
    ) -> Result<Vec<u8>, RuntimeError> {
        let command = verb(&argv);
        let work = async {
            let mut group = self.spawn(&argv, Stdio::null())?;
            let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
            let (out, err) = (group.child.stdout.take(), group.child.stderr.take());
            tokio::try_join!(read_all(out, &mut stdout), read_all(err, &mut stderr))
                .map_err(|source| pipe(&command, source))?;
            let status = group.wait(&command).await?;
            if status.success() {
                return Ok(stdout);
            }
            let said = format!(
                "{}\n{}",
                String::from_utf8_lossy(&stderr),
                String::from_utf8_lossy(&stdout)
            );
            Err(failure(&command, subject, &said))
        };
        within(&command, limit, work).await
    }

    /// As [`output`](Self::output), with `input` written to standard input. If reading `input` fails, the whole group is ended before its
    /// input is closed, so that a truncated stream is never taken for a whole one.
    pub(super) async fn feed(
        &self,
        argv: Vec<String>,
        subject: &str,
        mut input: Input,
        limit: Duration,
    ) -> Result<(), RuntimeError> {
        let command = verb(&argv);
        let work = async {
            let mut group = self.spawn(&argv, Stdio::piped())?;
            let mut stdin = group.child.stdin.take().ok_or_else(|| closed(&command))?;
            let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
            let (out, err) = (group.child.stdout.take(), group.child.stderr.take());
            let mut buffer = vec![0; 256 * 1024];
            let copy = async {
                loop {
                    let count = input.read(&mut buffer).await.map_err(Copying::Read)?;
                    if count == 0 {
                        return Ok(stdin);
                    }
                    if stdin.write_all(&buffer[..count]).await.is_err() {
                        // The command closed its input: it has something to say and is about to end.
                        return Ok(stdin);
                    }
                }
            };
            let talk = async {
                tokio::try_join!(read_all(out, &mut stdout), read_all(err, &mut stderr))
                    .map_err(Copying::Read)
            };
            let copy_then_close = async { copy.await.map(drop) };
            match tokio::try_join!(copy_then_close, talk) {
                Ok(_) => {}
                Err(Copying::Read(source)) => {
                    drop(group);
                    return Err(pipe(&command, source));
                }
            }
            let status = group.wait(&command).await?;
            if status.success() {
                return Ok(());
            }
            let said = format!(
                "{}\n{}",
                String::from_utf8_lossy(&stderr),
                String::from_utf8_lossy(&stdout)
            );
            Err(failure(&command, subject, &said))
        };
        within(&command, limit, work).await
    }

    /// Copies standard output to `to` while it comes. There is no limit but the caller's patience.
    pub(super) async fn stream(
        &self,
        argv: Vec<String>,
        subject: &str,
        mut to: Output,
    ) -> Result<(), RuntimeError> {
        let command = verb(&argv);
        let mut group = self.spawn(&argv, Stdio::null())?;
        let out = group.child.stdout.take();
        let mut stderr = Vec::new();
        let err = group.child.stderr.take();
        let copy = async {
            if let Some(mut out) = out {
                tokio::io::copy(&mut out, &mut to).await?;
            }
            to.flush().await
        };
        tokio::try_join!(copy, read_all(err, &mut stderr))
            .map_err(|source| pipe(&command, source))?;
        let status = group.wait(&command).await?;
        if status.success() {
            Ok(())
        } else {
            Err(failure(&command, subject, &String::from_utf8_lossy(&stderr)))
        }
    }

    /// Text that a help page prints, whatever its exit code.
    pub(super) async fn text(
        &self,
        argv: Vec<String>,
        limit: Duration,
    ) -> Result<String, RuntimeError> {
        let command = verb(&argv);
        let work = async {
            let mut group = self.spawn(&argv, Stdio::null())?;
            let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
            let (out, err) = (group.child.stdout.take(), group.child.stderr.take());
            tokio::try_join!(read_all(out, &mut stdout), read_all(err, &mut stderr))
                .map_err(|source| pipe(&command, source))?;
            group.wait(&command).await?;
            stdout.extend(stderr);
            Ok(String::from_utf8_lossy(&stdout).into_owned())
        };
        within(&command, limit, work).await
    }
}

/// Why a copy to a command ended.
enum Copying {
    Read(std::io::Error),
}

fn closed(command: &str) -> RuntimeError {
    pipe(command, std::io::Error::from(std::io::ErrorKind::BrokenPipe))
}

async fn within<T>(
    command: &str,
    limit: Duration,
    work: impl Future<Output = Result<T, RuntimeError>>,
) -> Result<T, RuntimeError> {
    timeout(limit, work).await.unwrap_or_else(|_| {
        Err(RuntimeError::Overdue { command: command.to_owned(), after: limit })
    })
}

async fn read_all(
    from: Option<impl tokio::io::AsyncRead + Unpin>,
    to: &mut Vec<u8>,
) -> std::io::Result<()> {
    if let Some(from) = from {
        from.take(LONGEST_JSON).read_to_end(to).await?;
    }
    Ok(())
}

/// How an interactive program ended: its exit code, or why it could not run. Its standard error went to the client, so only the last words
/// are known here.
pub(super) fn exec_outcome(
    vm: &str,
    status: ExitStatus,
    last_words: &[u8],
) -> Result<i32, RuntimeError> {
    let said = String::from_utf8_lossy(last_words);
    match failure("vm exec", vm, &said) {
        error @ (RuntimeError::NoGuestDaemon { .. } | RuntimeError::VmNotFound { .. })
            if status.code() == Some(1) =>
        {
            Err(error)
        }
        _ => status.code().ok_or_else(|| RuntimeError::Failed {
            command: "vm exec".to_owned(),
            detail: tidy(&format!("it was ended by a signal: {status}")),
        }),
    }
}

/// Keeps the end of what passes through.
pub(super) fn keep_end(kept: &mut Vec<u8>, more: &[u8]) {
    kept.extend_from_slice(more);
    if kept.len() > LONGEST_REPORT {
        kept.drain(..kept.len() - LONGEST_REPORT);
    }
}
