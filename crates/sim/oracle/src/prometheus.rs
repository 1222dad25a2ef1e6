//! Prometheus: the server that scrapes us, and `promtool`, which knows whether rules and metrics are right.

use crate::availability::{Missing, Oracle};
use crate::debian;
use crate::go::Binary;
use crate::process::{self, Output};
use crate::scratch::Scratch;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// What Debian 12 has. Older ones read neither our rule tests nor say where they listen.
pub const PROMETHEUS_AT_LEAST: (u32, u32) = (2, 42);

const CHECK_LIMIT: Duration = Duration::from_mins(2);
const START_LIMIT: Duration = Duration::from_mins(1);
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// Both programs, side by side.
#[derive(Debug, Clone)]
struct Programs {
    server: PathBuf,
    promtool: PathBuf,
}

/// Those on the `PATH`, or else those of the Debian package `prometheus`.
fn programs() -> Option<Programs> {
    static ORACLE: Oracle<Programs> = Oracle::new("prometheus");
    ORACLE.get(|| {
        let on_path = Programs { server: "prometheus".into(), promtool: "promtool".into() };
        if on_path.is_new_enough() {
            return Ok(on_path);
        }
        let folder = debian::unpacked("prometheus", "usr/bin/promtool")?;
        let fetched = Programs {
            server: folder.join("usr/bin/prometheus"),
            promtool: folder.join("usr/bin/promtool"),
        };
        if fetched.is_new_enough() {
            Ok(fetched)
        } else {
            Err(Missing::Package { name: "prometheus" })
        }
    })
}

impl Programs {
    fn is_new_enough(&self) -> bool {
        [&self.server, &self.promtool].into_iter().all(|program| {
            let output = process::run(Command::new(program).arg("--version"), CHECK_LIMIT);
            // Up to some release they spoke on standard error.
            let said = output.map(|output| output.stdout + &output.stderr).unwrap_or_default();
            version(&said).is_some_and(|version| version >= PROMETHEUS_AT_LEAST)
        })
    }
}

/// From `promtool, version 2.42.0+ds (branch: ...)`.
fn version(said: &str) -> Option<(u32, u32)> {
    let (_, rest) = said.split_once("version ")?;
    let mut numbers = rest.split(|letter: char| !letter.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// `promtool` of Prometheus.
pub fn promtool() -> Option<Promtool> {
    Some(Promtool { binary: Binary::at(programs()?.promtool) })
}

/// Checks rules, configurations and metrics.
#[derive(Debug)]
pub struct Promtool {
    binary: Binary,
}

impl Promtool {
    /// Where it is; a bare name if that is on the `PATH`.
    pub fn path(&self) -> &Path {
        self.binary.path()
    }

    /// Runs it in `folder`, from where relative names in files are looked up.
    ///
    /// Panics when it takes longer than two minutes.
    pub fn run(&self, folder: &Path, args: &[&str]) -> Output {
        let mut command = self.binary.command();
        match process::run(command.current_dir(folder).args(args), CHECK_LIMIT) {
            Ok(output) => output,
            Err(error) => panic!("promtool {args:?}: {error}"),
        }
    }

    /// What `promtool check metrics` says about an exposition in text form.
    pub fn check_metrics(&self, text: &str) -> Output {
        let scratch = Scratch::new("metrics");
        let file = scratch.path().join("metrics.txt");
        fs::write(&file, text)
            .unwrap_or_else(|error| panic!("writing {}: {error}", file.display()));
        let mut command = Command::new("sh");
        command
            .args(["-c", "exec \"$0\" check metrics < \"$1\""])
            .arg(self.binary.path())
            .arg(&file);
        match process::run(&mut command, CHECK_LIMIT) {
            Ok(output) => output,
            Err(error) => panic!("promtool check metrics: {error}"),
        }
    }
}

/// A Prometheus server on a free port of the loopback interface. It keeps its data in a folder of its own and ends with this value, and also
/// when the test process dies.
#[derive(Debug)]
pub struct Prometheus {
    child: Child,
    /// The shell around the server ends it when this closes.
    stdin: Option<ChildStdin>,
    address: String,
    log: Arc<Mutex<String>>,
    /// Dropped last: the server writes to it until it has ended.
    _scratch: Scratch,
}

/// Prometheus does not end with its standard input, so a shell does that for it, and ends with it.
const WATCHED: &str = r#"exec 3<&0; "$0" "$@" </dev/null & server=$!
(cat <&3 >/dev/null; kill "$server") 2>/dev/null & exec 3<&-
wait "$server""#;

impl Prometheus {
    /// Starts it with this configuration, in which rule files are named by absolute paths. `None` after a line that says so when Prometheus
    /// cannot be had.
    ///
    /// Panics with its log when it does not start.
    pub fn start(config: &str) -> Option<Self> {
        Some(Self::spawn(&programs()?.server, config))
    }

    fn spawn(server: &Path, config: &str) -> Self {
        let scratch = Scratch::new("prometheus");
        let file = scratch.path().join("prometheus.yml");
        fs::write(&file, config)
            .unwrap_or_else(|error| panic!("writing {}: {error}", file.display()));
        let mut child = Command::new("sh")
            .args(["-c", WATCHED])
            .arg(server)
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", scratch.path().join("data").display()))
            .arg("--web.listen-address=127.0.0.1:0")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("starting prometheus: {error}"));
        let stdin = child.stdin.take();
        let log = Arc::new(Mutex::new(String::new()));
        let listening = follow(child.stderr.take(), Arc::clone(&log));
        let mut prometheus = Self { child, stdin, address: String::new(), log, _scratch: scratch };
        prometheus.address = match listening.recv_timeout(START_LIMIT) {
            Ok(address) => address,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                panic!("prometheus does not listen: {}", prometheus.log())
            }
        };
        prometheus
    }

    /// The JSON that `GET path` answers, such as `/api/v1/alerts`; an error says what is there instead.
    pub fn get(&self, path: &str) -> Result<String, String> {
        let failed = |error: std::io::Error| format!("{path}: {error}");
        let mut stream = TcpStream::connect(&self.address).map_err(failed)?;
        stream.set_read_timeout(Some(ANSWER_LIMIT)).map_err(failed)?;
        // Of this version there is no answer in pieces: the body is what follows the empty line.
        let request = format!("GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).map_err(failed)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map_err(failed)?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.lines().next().unwrap_or_default();
        if status.contains(" 200 ") {
            Ok(body.to_owned())
        } else {
            Err(format!("{path}: {status}: {body}"))
        }
    }

    /// The JSON answer to a PromQL expression at this moment.
    pub fn query(&self, expression: &str) -> Result<String, String> {
        self.get(&format!("/api/v1/query?query={}", percent_encoded(expression)))
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}

fn follow(
    pipe: Option<impl Read + Send + 'static>,
    log: Arc<Mutex<String>>,
) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let (mut address, mut is_ready) = (None, false);
        for line in pipe.into_iter().flat_map(|pipe| BufReader::new(pipe).lines()) {
            let Ok(line) = line else { break };
            address = listens_on(&line).map(ToOwned::to_owned).or(address);
            is_ready |= line.contains(READY);
            {
                let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
                log.push_str(&line);
                log.push('\n');
            }
            if let Some(address) = address.take_if(|_| is_ready) {
                // The receiver is gone when the start was given up.
                let _ = sender.send(address);
            }
        }
    });
    receiver
}

/// Before this it listens and answers nothing.
const READY: &str = "Server is ready to receive web requests";

/// From `... msg="Listening on" address=127.0.0.1:36475`.
fn listens_on(line: &str) -> Option<&str> {
    let (_, address) = line.split_once("msg=\"Listening on\" address=")?;
    address.split_whitespace().next()
}

fn percent_encoded(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() {
            encoded.push(byte.into());
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_what_it_says() {
        let said = "promtool, version 2.42.0+ds (branch: debian/sid, revision: 2.42.0+ds-5)\n  build user:";
        assert_eq!(version(said), Some((2, 42)));
        assert_eq!(version("prometheus, version 3.5.1 (branch: HEAD)"), Some((3, 5)));
        assert_eq!(version("not found"), None);
    }

    #[test]
    fn the_address_is_the_one_that_it_got() {
        let line = r#"level=info component=web msg="Listening on" address=127.0.0.1:36475"#;
        assert_eq!(listens_on(line), Some("127.0.0.1:36475"));
        assert_eq!(
            listens_on(r#"msg="Start listening for connections" address=127.0.0.1:0"#),
            None
        );
    }

    #[test]
    fn an_expression_survives_the_way_in_an_address() {
        assert_eq!(percent_encoded("up{a=\"b c\"}"), "up%7Ba%3D%22b%20c%22%7D");
    }
}
