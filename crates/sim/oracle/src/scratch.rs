//! Folders that live as long as a value.

use crate::target;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, process};

/// An empty folder of our own below `<target>/oracles`, removed on drop.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(purpose: &str) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Unique among living processes; a folder that is there is of a dead one with our number.
        let name = format!("{purpose}-{}-{number}", process::id());
        let path = target::oracles().join("scratch").join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path)
            .unwrap_or_else(|error| panic!("creating {}: {error}", path.display()));
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // `cargo clean` takes what stays.
        let _ = fs::remove_dir_all(&self.0);
    }
}
