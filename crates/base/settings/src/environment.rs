use std::fmt;
use std::io;
use std::path::Path;

/// What surrounds the process: its environment variables and the files it may read.
pub trait Surroundings: fmt::Debug {
    fn variable(&self, name: &str) -> Option<String>;
    fn read_file(&self, path: &Path) -> io::Result<String>;
}

/// A list of 50,000 tables takes a quarter of it.
const MAX_FILE: u64 = 16 << 20;

/// The machine's own.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemSurroundings;

impl Surroundings for SystemSurroundings {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    /// Only a regular file, and none larger than [`MAX_FILE`]: a pipe would never end, and a device never say anything.
    fn read_file(&self, path: &Path) -> io::Result<String> {
        // Before it is opened: to open a pipe is to wait for whoever writes.
        let found = std::fs::metadata(path)?;
        if !found.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        if found.len() > MAX_FILE {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 16 MiB"));
        }
        std::fs::read_to_string(path)
    }
}
