//! Chromium without a screen, driven over the WebDriver protocol: the browser that says whether our page works.

use crate::availability::{Missing, Oracle};
use crate::debian;
use crate::process;
use crate::scratch::Scratch;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const CHECK_LIMIT: Duration = Duration::from_mins(1);
const START_LIMIT: Duration = Duration::from_mins(1);

/// Both programs, and where they find their libraries.
#[derive(Debug, Clone)]
struct Programs {
    chromium: PathBuf,
    driver: PathBuf,
    libraries: Option<OsString>,
}

/// Those on the `PATH`, or else those of the Debian packages, with the packages that they need and the machine lacks.
fn programs() -> Option<Programs> {
    static ORACLE: Oracle<Programs> = Oracle::new("chromium");
    ORACLE.get(|| {
        // The driver takes the browser by its whole path only.
        if let (Some(chromium), Some(driver)) = (on_path("chromium"), on_path("chromedriver")) {
            let on_path = Programs { chromium, driver, libraries: None };
            if on_path.run() {
                return Ok(on_path);
            }
        }
        let folder = debian::unpacked_with_needs(
            "chromium",
            // The common files by name: without them beside it the browser does not start, and a machine that has them elsewhere does not lack them.
            &["chromium", "chromium-common", "chromium-driver"],
            "usr/bin/chromedriver",
        )?;
        let fetched = Programs {
            chromium: folder.join("usr/lib/chromium/chromium"),
            driver: folder.join("usr/bin/chromedriver"),
            libraries: Some(libraries(&folder.join("usr/lib"))),
        };
        if fetched.run() { Ok(fetched) } else { Err(Missing::Package { name: "chromium" }) }
    })
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Debian keeps libraries in a folder for each machine type, and a few in folders of their own below it.
fn libraries(lib: &std::path::Path) -> OsString {
    let of_machine = lib.join(format!("{}-linux-gnu", std::env::consts::ARCH));
    let folders = [of_machine.join("pulseaudio"), of_machine];
    std::env::join_paths(folders).unwrap_or_default()
}

impl Programs {
    fn command(&self, program: &PathBuf) -> Command {
        let mut command = Command::new(program);
        if let Some(libraries) = &self.libraries {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        command
    }

    fn run(&self) -> bool {
        [&self.chromium, &self.driver].into_iter().all(|program| {
            let asked = process::run(self.command(program).arg("--version"), CHECK_LIMIT);
            asked.is_ok_and(|said| said.is_success())
        })
    }
}

/// A WebDriver server with its browser. It ends with this value.
#[derive(Debug)]
pub struct Chromium {
    child: Child,
    url: String,
    browser: PathBuf,
    scratch: Scratch,
}

impl Chromium {
    /// `None` after one line on standard error if there is no Chromium; panics instead in CI.
    pub fn start() -> Option<Self> {
        let programs = programs()?;
        let scratch = Scratch::new("chromium");
        let mut command = programs.command(&programs.driver);
        command
            .arg("--port=0")
            .env("HOME", scratch.path())
            .env_remove("http_proxy")
            .env_remove("https_proxy")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child =
            command.spawn().unwrap_or_else(|error| panic!("starting chromedriver: {error}"));
        let (sender, receiver) = mpsc::channel();
        let said = child.stdout.take();
        thread::spawn(move || {
            for line in said.into_iter().flat_map(|pipe| BufReader::new(pipe).lines()) {
                let Ok(line) = line else { break };
                if let Some(port) = port(&line) {
                    // The receiver is gone when the start was given up.
                    let _ = sender.send(port);
                }
            }
        });
        let Ok(port) = receiver.recv_timeout(START_LIMIT) else {
            let _ = child.kill();
            let _ = child.wait();
            panic!("chromedriver did not say where it listens");
        };
        let url = format!("http://127.0.0.1:{port}");
        Some(Self { child, url, browser: programs.chromium, scratch })
    }

    /// Where the WebDriver protocol is spoken.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What a new session must name: the browser, and that it has no screen and a home of its own.
    pub fn capabilities(&self) -> String {
        let quoted = |path: &std::path::Path| format!("{:?}", path.to_string_lossy());
        let profile = self.scratch.path().join("profile");
        let profile = format!("--user-data-dir={}", profile.display());
        format!(
            "{{\"capabilities\":{{\"alwaysMatch\":{{\"goog:loggingPrefs\":{{\"browser\":\"ALL\"}},\"goog:chromeOptions\":{{\"binary\":{},\"args\":[\"--headless\",\"--no-sandbox\",\"--disable-gpu\",\"--disable-dev-shm-usage\",\"--hide-scrollbars\",\"--no-proxy-server\",{:?}]}}}}}}}}",
            quoted(&self.browser),
            profile
        )
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // It takes its browser with it when its sessions were ended; a browser whose session was not ends with its pipe.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// From `ChromeDriver was started successfully on port 42775.`
fn port(line: &str) -> Option<u16> {
    let (_, port) = line.split_once("started successfully on port ")?;
    port.trim_end_matches('.').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_the_one_that_it_got() {
        assert_eq!(port("ChromeDriver was started successfully on port 42775."), Some(42_775));
        assert_eq!(port("Starting ChromeDriver 156.0 on port 0"), None);
    }
}
