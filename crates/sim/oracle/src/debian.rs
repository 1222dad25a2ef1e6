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

/// The same for several packages, with those that they need and that are not installed. The folder is called after `name`.
pub(crate) fn unpacked_with_needs(
    name: &'static str,
    packages: &[&str],
    entry: &str,
) -> Result<PathBuf, Missing> {
    let folder = format!("{name}-debian");
    install_once(&target::oracles(), &folder, entry, |attempt| {
        require_tool("apt-get", "--version", Missing::Package { name })?;
        require_tool("dpkg-deb", "--version", Missing::Package { name })?;
        say(&format!("fetching the Debian package {name} and what it needs"));
        let mut needs = needs(name, packages)?;
        // Those that are installed are fetched as well: what is installed may be changed.
        needs.extend(packages.iter().map(|package| (*package).to_owned()));
        needs.sort();
        needs.dedup();
        download_all(name, &needs, attempt)
    })
}

/// The package that a package without content stands for, such as the newest kernel, without what it needs.
pub(crate) fn unpacked_behind(package: &'static str, entry: &str) -> Result<PathBuf, Missing> {
    let folder = format!("{package}-debian");
    install_once(&target::oracles(), &folder, entry, |attempt| {
        require_tool("apt-get", "--version", Missing::Package { name: package })?;
        require_tool("dpkg-deb", "--version", Missing::Package { name: package })?;
        say(&format!("fetching the Debian package that {package} stands for"));
        let mut ask = Command::new("apt-cache");
        let failed = |detail| Missing::Fetch { step: format!("asking apt for {package}"), detail };
        let output = process::run(ask.args(["depends", package]), DOWNLOAD_LIMIT);
        let output = output.map_err(|error| failed(error.to_string()))?;
        let mut lines = output.stdout.lines().map(str::trim);
        let behind = lines.find_map(|line| line.strip_prefix("Depends: "));
        let behind = behind.ok_or_else(|| failed(output.stderr.clone()))?;
        download_all(package, &[behind.to_owned()], attempt)
    })
}

fn download_all(name: &str, packages: &[String], folder: &Path) -> Result<(), Missing> {
    let mut download = Command::new("apt-get");
    let step_name = format!("downloading {name}");
    step(&step_name, download.arg("download").args(packages).current_dir(folder))?;
    while let Some(archive) = archive_in(folder) {
        let mut extract = Command::new("dpkg-deb");
        step(
            &format!("unpacking {}", archive.display()),
            extract.arg("--extract").arg(&archive).arg(folder),
        )?;
        fs::remove_file(&archive)
            .map_err(|source| Missing::Folder { path: archive.clone(), source })?;
    }
    Ok(())
}

/// What apt would install for the packages, themselves included. Nothing is installed, and no root is needed to ask.
fn needs(name: &'static str, packages: &[&str]) -> Result<Vec<String>, Missing> {
    let mut simulate = Command::new("apt-get");
    simulate.args(["--simulate", "--no-install-recommends", "install"]).args(packages);
    let failed = |detail| Missing::Fetch { step: format!("asking apt what {name} needs"), detail };
    let output =
        process::run(&mut simulate, DOWNLOAD_LIMIT).map_err(|error| failed(error.to_string()))?;
    if !output.is_success() {
        return Err(failed(output.stderr));
    }
    let installs = output.stdout.lines().filter_map(|line| line.strip_prefix("Inst "));
    let names = installs.filter_map(|rest| rest.split_whitespace().next());
    Ok(names.map(ToOwned::to_owned).collect())
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
