//! Running a program to its end, within a time limit, without losing what it said.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

/// What a program said and how it ended.
#[derive(Debug)]
pub struct Output {
    pub stdout: String,
    pub stderr: String,
    pub status: ExitStatus,
}

impl Output {
    pub fn is_success(&self) -> bool {
        self.status.success()
    }
}

#[derive(Debug)]
pub(crate) enum RunError {
    Start(io::Error),
    Wait(io::Error),
    TimedOut { limit: Duration, stderr: String },
}

impl std::fmt::Display for RunError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Start(source) => write!(f, "could not start: {source}"),
            Self::Wait(source) => write!(f, "could not wait for its end: {source}"),
            Self::TimedOut { limit, stderr } => {
                write!(f, "did not end within {limit:?} and was killed; it said: {stderr}")
            }
        }
    }
}

/// How long a killed program's pipes may stay open, should it have children of its own.
const AFTERMATH: Duration = Duration::from_secs(1);

/// Runs `command` with nothing on its standard input. Its end is taken to be the end of its output.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Result<Output, RunError> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(RunError::Start)?;
    let said = collect(&mut child);
    if let Ok((stdout, stderr)) = said.recv_timeout(limit) {
        let status = child.wait().map_err(RunError::Wait)?;
        return Ok(Output { stdout, stderr, status });
    }
    // It may have ended just now; then there is nothing to kill.
    let _ = child.kill();
    let _ = child.wait();
    let (_, stderr) = said.recv_timeout(AFTERMATH).unwrap_or_default();
    Err(RunError::TimedOut { limit, stderr })
}

/// Reads both pipes at once, so that neither fills up and blocks the program.
fn collect(child: &mut Child) -> Receiver<(String, String)> {
    let (sender, receiver) = mpsc::channel();
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    thread::spawn(move || {
        let errors = thread::spawn(move || read_all(stderr));
        let output = read_all(stdout);
        // The receiver is gone after a time-out.
        let _ = sender.send((output, errors.join().unwrap_or_default()));
    });
    receiver
}

fn read_all(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        // A pipe that breaks has ended; what came before it still counts.
        let _ = pipe.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    const AMPLE: Duration = Duration::from_mins(1);

    #[test]
    fn output_and_status_are_kept_apart() {
        let output = run(&mut shell("echo out; echo err >&2; exit 3"), AMPLE).unwrap();
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("out\n", "err\n"));
        assert_eq!(output.status.code(), Some(3));
        assert!(!output.is_success());
    }

    #[test]
    fn a_program_that_says_more_than_a_pipe_holds_still_ends() {
        let script = "head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero";
        let output = run(&mut shell(script), AMPLE).unwrap();
        assert_eq!((output.stdout.len(), output.stderr.len()), (300_000, 300_000));
    }

    #[test]
    fn a_program_past_its_limit_is_killed_and_quoted() {
        let error = run(&mut shell("echo stuck >&2; exec sleep 60"), Duration::from_millis(300))
            .unwrap_err();
        assert!(matches!(&error, RunError::TimedOut { .. }), "{error}");
        assert!(error.to_string().ends_with("it said: stuck\n"), "{error}");
    }

    #[test]
    fn a_program_that_does_not_exist_is_reported() {
        let error = run(&mut Command::new("no-such-program-here"), AMPLE).unwrap_err();
        assert!(
            matches!(error, RunError::Start(source) if source.kind() == io::ErrorKind::NotFound)
        );
    }
}
