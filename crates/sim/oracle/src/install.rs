//! Installing an oracle once per target folder, safe against kills and races.
//!
//! An oracle is made in a folder that only this attempt knows and renamed when it is whole, so a killed
//! attempt leaves nothing that looks like a tool, not even when its compiler lives on for a while. A
//! lock file, which the system releases whenever its holder dies, keeps a second process from doing
//! the same work; it waits and finds the result.

use crate::availability::Missing;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::{io, process};

/// The folder `name` below `home`, made by `make` if it does not have the file `entry` yet.
pub(crate) fn install_once(
    home: &Path,
    name: &str,
    entry: &str,
    make: impl FnOnce(&Path) -> Result<(), Missing>,
) -> Result<PathBuf, Missing> {
    let folder = home.join(name);
    if folder.join(entry).exists() {
        return Ok(folder);
    }
    fs::create_dir_all(home).map_err(missing(home))?;
    let _lock = lock(&home.join(format!("{name}.lock")))?;
    if folder.join(entry).exists() {
        return Ok(folder); // by the process that we waited for
    }
    let attempts = format!("{name}.attempt-");
    remove_matching(home, &attempts).map_err(missing(home))?;
    let attempt = home.join(format!("{attempts}{}", process::id()));
    fs::create_dir(&attempt).map_err(missing(&attempt))?;
    make(&attempt).inspect_err(|_| drop(fs::remove_dir_all(&attempt)))?;
    // Without its entry it is of no use to anyone: a virtual environment whose Python was removed.
    let _ = fs::remove_dir_all(&folder);
    fs::rename(&attempt, &folder).map_err(missing(&folder))?;
    Ok(folder)
}

fn lock(path: &Path) -> Result<File, Missing> {
    let file = File::create(path).map_err(missing(path))?;
    file.lock().map_err(missing(path))?;
    Ok(file)
}

fn remove_matching(home: &Path, prefix: &str) -> io::Result<()> {
    for entry in fs::read_dir(home)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

fn missing(path: &Path) -> impl FnOnce(io::Error) -> Missing {
    move |source| Missing::Folder { path: path.to_path_buf(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    fn write_tool(attempt: &Path) -> Result<(), Missing> {
        fs::write(attempt.join("tool"), "whole").map_err(missing(attempt))
    }

    #[test]
    fn an_installed_oracle_is_reused() {
        let home = Scratch::new("install");
        let first = install_once(home.path(), "tool-1", "tool", write_tool).unwrap();
        let again = install_once(home.path(), "tool-1", "tool", |_| unreachable!()).unwrap();
        assert_eq!(first, again);
        assert_eq!(fs::read_to_string(again.join("tool")).unwrap(), "whole");
    }

    #[test]
    fn a_failed_or_killed_attempt_leaves_nothing_that_looks_like_a_tool() {
        let home = Scratch::new("install");
        let failed = install_once(home.path(), "tool-1", "tool", |attempt| {
            fs::write(attempt.join("tool"), "ha").unwrap();
            Err(Missing::Go)
        });
        assert!(failed.is_err());
        let left: Vec<_> =
            fs::read_dir(home.path()).unwrap().flatten().map(|it| it.file_name()).collect();
        assert_eq!(left, ["tool-1.lock"]);

        fs::create_dir(home.path().join("tool-1.attempt-0")).unwrap();
        install_once(home.path(), "tool-1", "tool", write_tool).unwrap();
        assert!(!home.path().join("tool-1.attempt-0").exists());
    }

    #[test]
    fn a_folder_that_lost_its_entry_is_made_anew() {
        let home = Scratch::new("install");
        let folder = install_once(home.path(), "tool-1", "tool", write_tool).unwrap();
        fs::rename(folder.join("tool"), folder.join("rest")).unwrap();
        install_once(home.path(), "tool-1", "tool", write_tool).unwrap();
        assert!(folder.join("tool").exists() && !folder.join("rest").exists());
    }

    #[test]
    fn of_many_at_once_one_does_the_work() {
        let home = Scratch::new("install");
        let made = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    install_once(home.path(), "tool-1", "tool", |attempt| {
                        made.fetch_add(1, Ordering::Relaxed);
                        write_tool(attempt)
                    })
                    .unwrap();
                });
            }
        });
        assert_eq!(made.into_inner(), 1);
    }
}
