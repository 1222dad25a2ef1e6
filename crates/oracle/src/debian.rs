//! Programs of Debian packages, unpacked into the target folder: no root is needed and nothing is installed.

use crate::availability::{Missing, require_tool, say};
use crate::install::install_once;
use crate::process;
use crate::target;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const DOWNLOAD_LIMIT: Duration = Duration::from_mins(5);

/// The folder that holds what `package` holds, as it would stand below `/`. `entry` is a file that must be in it.
///
/// apt checks the package against the signed index of the machine's own release, so which version it is depends on that release alone. A
/// version number here would pin nothing more, and fail the day a security update takes the old one off the mirrors.
pub(crate) fn unpacked(package: &'static str, entry: &str) -> Result<PathBuf, Missing> {
    let name = format!("{package}-debian");
    install_once(&target::oracles(), &name, entry, |attempt| unpack(package, attempt))
}

fn unpack(package: &'static str, folder: &Path) -> Result<(), Missing> {
    require_tool("apt-get", "--version", Missing::Package { name: package })?;
    require_tool("dpkg-deb", "--version", Missing::Package { name: package })?;
    say(&format!("fetching the Debian package {package}"));
    let mut download = Command::new("apt-get");
    step(
        &format!("downloading {package}"),
        download.args(["download", package]).current_dir(folder),
    )?;
    let archive = archive_in(folder).ok_or_else(|| Missing::Fetch {
        step: format!("downloading {package}"),
        detail: "apt-get left no package".to_owned(),
    })?;
    let mut extract = Command::new("dpkg-deb");
    step(&format!("unpacking {package}"), extract.arg("--extract").arg(&archive).arg(folder))?;
    // Twice the size on disk for nothing; what is left of it harms nobody.
    let _ = fs::remove_file(archive);
    Ok(())
}

fn archive_in(folder: &Path) -> Option<PathBuf> {
    let mut files = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    files.find(|path| path.extension().is_some_and(|extension| extension == "deb"))
}

fn step(name: &str, command: &mut Command) -> Result<(), Missing> {
    let failed = |detail| Err(Missing::Fetch { step: name.to_owned(), detail });
    match process::run(command, DOWNLOAD_LIMIT) {
        Ok(output) if output.is_success() => Ok(()),
        Ok(output) => failed(output.stderr),
        Err(error) => failed(error.to_string()),
    }
}
