//! What can be said of a command that is not run.

use std::process::{Command, Output};

use crate::command::{Simple, simple_commands};
use crate::wire::roost;

/// The binary itself judges: with `--help` behind it a command line that it does not know is an error, and one that it knows does nothing.
pub(crate) fn judge(command: &Simple) -> Result<(), String> {
    let args = command.behind_cargo_run().unwrap_or_else(|| command.args.clone());
    let output = roost(&[]).args(&args).arg("--help").output().unwrap();
    expect_success(&args.join(" "), &output)?;
    let help = String::from_utf8_lossy(&output.stdout);
    let unknown = args.iter().find(|arg| arg.starts_with('-') && !help.contains(arg.as_str()));
    unknown.map_or(Ok(()), |option| Err(format!("there is no {option}")))
}

/// The shell must be able to read the line, and the binary what the line has for it.
pub(crate) fn judge_line(line: &str) -> Result<(), String> {
    let output = Command::new("bash").args(["-n", "-c", line]).output().unwrap();
    expect_success(line, &output)?;
    simple_commands(line).iter().filter(|command| command.program == "roost").try_for_each(judge)
}

pub(crate) fn expect_success(line: &str, output: &Output) -> Result<(), String> {
    if output.status.success() {
        return Ok(());
    }
    let said =
        [&output.stdout, &output.stderr].map(|said| String::from_utf8_lossy(said).into_owned());
    Err(format!("{}: {line}\n{}", output.status, said.concat()))
}
