use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use jiff::Timestamp;

use super::path::parent;

/// The files of one datastore.
#[derive(Debug)]
pub(crate) struct Shelf {
    entries: BTreeMap<Box<str>, Entry>,
    used: i64,
    /// What running copies will take.
    reserved: i64,
    dir: Option<PathBuf>,
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub content: Content,
    pub modified: Timestamp,
}

#[derive(Debug, Clone)]
pub(crate) enum Content {
    Folder,
    /// A VM's file: a size, and zeros if somebody reads it.
    Hollow(i64),
    Memory(Vec<Bytes>),
    /// A file in the shelf's directory.
    Disk(i64),
}

impl Content {
    pub(crate) fn size(&self) -> i64 {
        match self {
            Self::Folder => 0,
            Self::Hollow(size) | Self::Disk(size) => *size,
            Self::Memory(chunks) => chunks
                .iter()
                .fold(0_i64, |size, chunk| size.saturating_add_unsigned(chunk.len() as u64)),
        }
    }

    pub(crate) fn is_folder(&self) -> bool {
        matches!(self, Self::Folder)
    }
}

/// Why a file operation failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("there is no such file or directory")]
    NotFound,
    #[error("the file or directory exists already")]
    Exists,
    #[error("accessing the directory behind the datastore")]
    Io(#[from] io::Error),
}

impl Shelf {
    pub(crate) fn new(dir: Option<PathBuf>) -> Self {
        Self { entries: BTreeMap::new(), used: 0, reserved: 0, dir }
    }

    /// What is used and what running copies will use.
    pub(crate) fn taken(&self) -> i64 {
        self.used + self.reserved
    }

    pub(crate) fn reserve(&mut self, bytes: i64) {
        self.reserved += bytes;
    }

    pub(crate) fn release(&mut self, bytes: i64) {
        self.reserved -= bytes;
    }

    pub(crate) fn real_path(&self, path: &str) -> Option<PathBuf> {
        self.dir.as_ref().map(|dir| dir.join(path))
    }

    /// The entry at a path; the root is a folder without one.
    pub(crate) fn get(&self, path: &str) -> Option<&Entry> {
        self.entries.get(path)
    }

    pub(crate) fn is_folder(&self, path: &str) -> bool {
        path.is_empty() || self.get(path).is_some_and(|entry| entry.content.is_folder())
    }

    /// What is directly in a folder, by name.
    pub(crate) fn list<'a>(
        &'a self,
        folder: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a Entry)> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let mut next = Some(prefix.clone());
        std::iter::from_fn(move || {
            let (path, entry) = self.entries.range::<str, _>(from(next.as_deref()?)).next()?;
            let name = path.strip_prefix(&*prefix)?;
            if let Some((step, _)) = name.split_once('/') {
                // Something deeper: its folder came before it, so go on behind all of it. '0' is the character after '/'.
                next = Some(format!("{prefix}{step}0"));
                return Some(None);
            }
            next = Some(format!("{path}\0"));
            Some(Some((name, entry)))
        })
        .flatten()
    }

    /// Everything below a folder.
    fn below<'a>(&'a self, folder: &str) -> impl Iterator<Item = (&'a str, &'a Entry)> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let range =
            self.entries.range::<str, _>(from(&prefix)).map(|(path, entry)| (&**path, entry));
        range.take_while(move |(path, _)| path.starts_with(&prefix)).collect::<Vec<_>>().into_iter()
    }

    /// The folders below one, itself first.
    pub(crate) fn folders(&self, folder: &str) -> Vec<String> {
        let below = self.below(folder).filter(|(_, entry)| entry.content.is_folder());
        std::iter::once(folder.to_owned()).chain(below.map(|(path, _)| path.to_owned())).collect()
    }

    pub(crate) fn directory_bytes(&self, folder: &str) -> i64 {
        self.list(folder).map(|(_, entry)| entry.content.size()).sum()
    }

    /// Puts an entry at a path, over what was there.
    pub(crate) fn put(&mut self, path: &str, content: Content, now: Timestamp) {
        self.used += content.size();
        if let Some(old) = self.entries.insert(path.into(), Entry { content, modified: now }) {
            self.used -= old.content.size();
        }
    }

    pub(crate) fn make_folder(
        &mut self,
        path: &str,
        with_parents: bool,
        now: Timestamp,
    ) -> Result<(), FileError> {
        if path.is_empty() || self.get(path).is_some() {
            return if with_parents && self.is_folder(path) {
                Ok(())
            } else {
                Err(FileError::Exists)
            };
        }
        let above = parent(path).to_owned();
        if !self.is_folder(&above) {
            if !with_parents {
                return Err(FileError::NotFound);
            }
            self.make_folder(&above, true, now)?;
        }
        if let Some(real) = self.real_path(path) {
            std::fs::create_dir_all(real)?;
        }
        self.put(path, Content::Folder, now);
        Ok(())
    }

    /// Takes a file, or a folder with all that is in it, away.
    pub(crate) fn remove(&mut self, path: &str) -> Result<(), FileError> {
        if self.get(path).is_none() {
            return Err(FileError::NotFound);
        }
        if let Some(real) = self.real_path(path)
            && let Ok(kind) = std::fs::symlink_metadata(&real)
        {
            if kind.is_dir() {
                std::fs::remove_dir_all(&real)?;
            } else {
                std::fs::remove_file(&real)?;
            }
        }
        let doomed: Vec<Box<str>> =
            self.below(path).map(|(path, _)| path.into()).chain([path.into()]).collect();
        for path in doomed {
            if let Some(entry) = self.entries.remove(&path) {
                self.used -= entry.content.size();
            }
        }
        Ok(())
    }

    /// What stands at a path and below it, taken out to be put elsewhere. Real files stay where they are.
    pub(crate) fn take_out(&mut self, path: &str) -> Vec<(String, Entry)> {
        let mut paths: Vec<Box<str>> = vec![path.into()];
        paths.extend(self.below(path).map(|(path, _)| Box::from(path)));
        let mut taken = Vec::new();
        for at in paths {
            if let Some(entry) = self.entries.remove(&at) {
                self.used -= entry.content.size();
                taken.push((at[path.len()..].to_owned(), entry));
            }
        }
        taken
    }

    pub(crate) fn put_back(&mut self, path: &str, taken: Vec<(String, Entry)>) {
        for (rest, entry) in taken {
            let modified = entry.modified;
            self.put(&format!("{path}{rest}"), entry.content, modified);
        }
    }

    /// Takes notice of what somebody put into a folder of the directory, or took out of it.
    pub(crate) fn refresh(&mut self, folder: &str, now: Timestamp) {
        let Some(real) = self.real_path(folder) else { return };
        let found = read_folder(&real);
        let known: Vec<(String, bool)> = self
            .list(folder)
            .map(|(name, entry)| (name.to_owned(), matches!(entry.content, Content::Disk(_))))
            .collect();
        let at = |name: &str| {
            if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
        };
        for (name, is_on_disk) in &known {
            if *is_on_disk && !found.iter().any(|(other, _)| other == name) {
                let gone = self.entries.remove(at(name).as_str());
                self.used -= gone.map_or(0, |entry| entry.content.size());
            }
        }
        for (name, size) in found {
            let path = at(&name);
            let is_news = match (self.get(&path).map(|entry| &entry.content), size) {
                (None, _) => true,
                (Some(Content::Disk(old)), Some(new)) => *old != new,
                _ => false,
            };
            if is_news {
                self.put(&path, size.map_or(Content::Folder, Content::Disk), now);
            }
        }
    }
}

fn from(path: &str) -> (Bound<&str>, Bound<&str>) {
    (Bound::Included(path), Bound::Unbounded)
}

/// Names with the sizes of files; folders have none. What cannot be read is not there.
fn read_folder(real: &Path) -> Vec<(String, Option<i64>)> {
    let entries = std::fs::read_dir(real).into_iter().flatten().flatten();
    let row = |entry: std::fs::DirEntry| {
        let (name, kind) = (entry.file_name().into_string().ok()?, entry.metadata().ok()?);
        let size = i64::try_from(kind.len()).unwrap_or(i64::MAX);
        // A file that is being uploaded shows up when it is complete.
        (!name.ends_with(".uploading")).then_some((name, (!kind.is_dir()).then_some(size)))
    };
    entries.filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shelf() -> Shelf {
        let mut shelf = Shelf::new(None);
        let now = Timestamp::UNIX_EPOCH;
        for folder in ["iso", "iso/a", "vm1", "vm10"] {
            shelf.make_folder(folder, false, now).unwrap();
        }
        for (file, size) in [
            ("iso/a/x.iso", 7),
            ("vm1/vm1.vmx", 2),
            ("vm10/vm10.vmx", 3),
            ("top.txt", 1),
            ("vm1-b", 5),
        ] {
            shelf.put(file, Content::Hollow(size), now);
        }
        shelf
    }

    fn names(shelf: &Shelf, folder: &str) -> Vec<String> {
        shelf.list(folder).map(|(name, _)| name.to_owned()).collect()
    }

    #[test]
    fn a_folder_lists_its_own_entries_only() {
        let shelf = shelf();
        assert_eq!(names(&shelf, ""), ["iso", "top.txt", "vm1", "vm1-b", "vm10"]);
        assert_eq!(names(&shelf, "iso"), ["a"]);
        assert_eq!(names(&shelf, "vm1"), ["vm1.vmx"]);
        assert_eq!(shelf.folders("iso"), ["iso", "iso/a"]);
    }

    #[test]
    fn space_follows_what_is_put_replaced_moved_and_removed() {
        let mut shelf = shelf();
        assert_eq!(shelf.taken(), 18);
        shelf.put("top.txt", Content::Hollow(10), Timestamp::UNIX_EPOCH);
        assert_eq!(shelf.taken(), 27);
        let taken = shelf.take_out("iso");
        assert_eq!((shelf.taken(), shelf.is_folder("iso/a")), (20, false));
        shelf.put_back("media", taken);
        assert!(shelf.get("media/a/x.iso").is_some());
        shelf.remove("media").unwrap();
        assert_eq!(shelf.taken(), 20);
        assert!(matches!(shelf.remove("media"), Err(FileError::NotFound)));
    }

    #[test]
    fn a_folder_needs_its_parent_unless_parents_are_made_too() {
        let mut shelf = shelf();
        let now = Timestamp::UNIX_EPOCH;
        assert!(matches!(shelf.make_folder("x/y/z", false, now), Err(FileError::NotFound)));
        shelf.make_folder("x/y/z", true, now).unwrap();
        assert!(matches!(shelf.make_folder("x/y", false, now), Err(FileError::Exists)));
        shelf.make_folder("x/y", true, now).unwrap();
        assert!(matches!(shelf.make_folder("top.txt", true, now), Err(FileError::Exists)));
    }
}
