//! The files of guests: in memory, or below a private directory of this machine.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use jiff::Timestamp;

/// The file system of one guest.
#[derive(Debug)]
pub(crate) enum GuestFiles {
    Memory(BTreeMap<String, GuestFile>),
    /// Everything that the guest writes by an absolute path through guest operations goes below this directory.
    Directory(PathBuf),
}

#[derive(Debug, Clone)]
pub(crate) struct GuestFile {
    /// `None` for a directory.
    pub content: Option<Bytes>,
    pub permissions: i64,
    pub modified: Timestamp,
}

/// What is known of a file without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileFacts {
    pub size: i64,
    pub is_directory: bool,
    pub permissions: i64,
    pub modified: Timestamp,
}

/// A guest path with one slash between steps and none at the end; `None` if it is not absolute or climbs.
pub(crate) fn guest_path(path: &str) -> Option<String> {
    let steps: Vec<&str> = path
        .strip_prefix('/')?
        .split('/')
        .filter(|step| !step.is_empty() && *step != ".")
        .collect();
    (!steps.contains(&"..")).then(|| format!("/{}", steps.join("/")))
}

impl GuestFiles {
    /// Where a guest path is on this machine.
    pub(crate) fn real_path(&self, path: &str) -> Option<PathBuf> {
        match self {
            Self::Memory(_) => None,
            Self::Directory(root) => Some(root.join(path.trim_start_matches('/'))),
        }
    }

    pub(crate) fn facts(&self, path: &str) -> Option<FileFacts> {
        match self {
            Self::Memory(files) => match files.get(path) {
                Some(file) => Some(FileFacts {
                    size: file
                        .content
                        .as_ref()
                        .map_or(4096, |content| i64::try_from(content.len()).unwrap_or(i64::MAX)),
                    is_directory: file.content.is_none(),
                    permissions: file.permissions,
                    modified: file.modified,
                }),
                None if is_directory(files, path) => Some(FileFacts {
                    size: 4096,
                    is_directory: true,
                    permissions: 0o755,
                    modified: Timestamp::UNIX_EPOCH,
                }),
                None => None,
            },
            Self::Directory(root) => real_facts(&root.join(path.trim_start_matches('/'))),
        }
    }

    pub(crate) fn read(&self, path: &str) -> Option<Bytes> {
        match self {
            Self::Memory(files) => files.get(path)?.content.clone(),
            Self::Directory(_) => std::fs::read(self.real_path(path)?).ok().map(Bytes::from),
        }
    }

    /// Writes a file whole. Directories above it are made.
    pub(crate) fn write(
        &mut self,
        path: &str,
        content: Bytes,
        permissions: i64,
        now: Timestamp,
    ) -> io::Result<()> {
        match self {
            Self::Memory(files) => {
                files.insert(
                    path.into(),
                    GuestFile { content: Some(content), permissions, modified: now },
                );
                Ok(())
            }
            Self::Directory(root) => {
                let real = root.join(path.trim_start_matches('/'));
                if let Some(above) = real.parent() {
                    std::fs::create_dir_all(above)?;
                }
                std::fs::write(&real, content)?;
                set_permissions(&real, permissions)
            }
        }
    }

    pub(crate) fn make_directory(&mut self, path: &str, now: Timestamp) -> io::Result<()> {
        match self {
            Self::Memory(files) => {
                files.insert(
                    path.into(),
                    GuestFile { content: None, permissions: 0o755, modified: now },
                );
                Ok(())
            }
            Self::Directory(root) => {
                std::fs::create_dir_all(root.join(path.trim_start_matches('/')))
            }
        }
    }

    pub(crate) fn remove(&mut self, path: &str) -> io::Result<()> {
        match self {
            Self::Memory(files) => {
                let below = format!("{path}/");
                files.retain(|known, _| known != path && !known.starts_with(&below));
                Ok(())
            }
            Self::Directory(root) => {
                let real = root.join(path.trim_start_matches('/'));
                if real.is_dir() {
                    std::fs::remove_dir_all(real)
                } else {
                    std::fs::remove_file(real)
                }
            }
        }
    }

    /// The names directly in a directory, sorted.
    pub(crate) fn list(&self, path: &str) -> Vec<String> {
        let mut names: Vec<String> = match self {
            Self::Memory(files) => {
                let prefix = if path == "/" { "/".to_owned() } else { format!("{path}/") };
                let below = files.keys().filter_map(|known| known.strip_prefix(&prefix));
                below
                    .filter_map(|rest| rest.split('/').next())
                    .filter(|name| !name.is_empty())
                    .map(Into::into)
                    .collect()
            }
            Self::Directory(root) => {
                let entries = std::fs::read_dir(root.join(path.trim_start_matches('/')))
                    .into_iter()
                    .flatten()
                    .flatten();
                let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
                names.filter(|name| name != PRIVATE).collect()
            }
        };
        names.sort();
        names.dedup();
        names
    }
}

/// The simulator's own corner of a guest's directory.
pub(crate) const PRIVATE: &str = ".roost";

/// What every system has, and whatever is above a file that is there.
fn is_directory(files: &BTreeMap<String, GuestFile>, path: &str) -> bool {
    let below = if path == "/" { "/".to_owned() } else { format!("{path}/") };
    matches!(path, "/" | "/tmp" | "/home" | "/root" | "/var" | "/etc" | "/opt" | "/usr")
        || files.range(below.clone()..).next().is_some_and(|(known, _)| known.starts_with(&below))
}

fn set_permissions(path: &Path, permissions: i64) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = u32::try_from(permissions).unwrap_or(0o644) & 0o777;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

fn real_facts(path: &Path) -> Option<FileFacts> {
    let found = std::fs::metadata(path).ok()?;
    let modified = found.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
    Some(FileFacts {
        size: i64::try_from(found.len()).unwrap_or(i64::MAX),
        is_directory: found.is_dir(),
        permissions: mode(&found),
        modified: modified.unwrap_or(Timestamp::UNIX_EPOCH),
    })
}

fn mode(found: &std::fs::Metadata) -> i64 {
    use std::os::unix::fs::PermissionsExt as _;
    i64::from(found.permissions().mode() & 0o777)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guest_paths_are_absolute_and_do_not_climb() {
        assert_eq!(guest_path("/home//ci/./x").as_deref(), Some("/home/ci/x"));
        assert_eq!(guest_path("home/ci"), None);
        assert_eq!(guest_path("/a/../../etc/passwd"), None);
    }

    #[test]
    fn files_in_memory_make_the_directories_above_them_visible() {
        let mut files = GuestFiles::Memory(BTreeMap::new());
        let now = Timestamp::UNIX_EPOCH;
        files.write("/home/ci/run.sh", Bytes::from_static(b"x"), 0o755, now).unwrap();
        assert!(files.facts("/home/ci").unwrap().is_directory);
        assert_eq!(files.facts("/home/ci/run.sh").unwrap().permissions, 0o755);
        assert_eq!(files.list("/home"), ["ci"]);
        files.remove("/home/ci").unwrap();
        assert_eq!(files.facts("/home/ci/run.sh"), None);
    }
}
