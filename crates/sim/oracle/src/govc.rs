//! Running `govc` against a server.

use crate::go::{self, Binary};
use crate::process::{self, Output};
use crate::scratch::Scratch;
use crate::server_url::ServerUrl;
use std::time::Duration;

/// The longest that a command may take; the slowest ones wait for a task of the server.
const LIMIT: Duration = Duration::from_mins(1);

/// `govc` for one server, with a session of its own.
#[derive(Debug)]
pub struct Govc {
    binary: Binary,
    url: ServerUrl,
    home: Scratch,
}

impl Govc {
    /// For the server at `url`, which carries the login: `http://user:password@127.0.0.1:8989/sdk`.
    /// `None` after a line that says so when `govc` cannot be had; see [`govc`](crate::govc).
    pub fn new(url: &str) -> Option<Self> {
        let binary = go::govc()?;
        Some(Self { binary, url: ServerUrl::new(url), home: Scratch::new("govc") })
    }

    /// Runs a command, say `["vm.power", "-on", "worker-1"]`. Certificates are not verified.
    ///
    /// Panics when it takes longer than a minute.
    pub fn run(&self, args: &[&str]) -> Output {
        let mut command = self.binary.command();
        command
            .args(args)
            // `GOVC_*` variables of the caller would change the meaning of the commands.
            .env_clear()
            .env("GOVC_URL", self.url.as_str())
            .env("GOVC_INSECURE", "true")
            // govc keeps its session on disk between runs: one login per value of this type.
            .env("HOME", self.home.path())
            .env("GOVMOMI_HOME", self.home.path());
        match process::run(&mut command, LIMIT) {
            Ok(output) => output,
            Err(error) => self.fail(args, &error.to_string()),
        }
    }

    /// Standard output of a command that must succeed; panics with what it complained about otherwise.
    pub fn stdout(&self, args: &[&str]) -> String {
        let output = self.run(args);
        if !output.is_success() {
            self.fail(args, &format!("{}\n{}", output.status, output.stderr));
        }
        output.stdout
    }

    /// Like [`Govc::stdout`], with the flag that makes it JSON.
    pub fn json(&self, args: &[&str]) -> String {
        self.stdout(&with_json(args))
    }

    fn fail(&self, args: &[&str], why: &str) -> ! {
        let text = format!("govc {} at {:?}: {why}", args.join(" "), self.url);
        panic!("{}", self.url.hide_password(&text))
    }
}

/// govc takes flags behind the command and before its arguments.
fn with_json<'a>(args: &[&'a str]) -> Vec<&'a str> {
    let mut args = args.to_vec();
    args.insert(args.len().min(1), "-json");
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_flag_comes_right_behind_the_command() {
        assert_eq!(with_json(&["vm.info", "a", "b"]), ["vm.info", "-json", "a", "b"]);
        assert_eq!(with_json(&["about"]), ["about", "-json"]);
    }
}
