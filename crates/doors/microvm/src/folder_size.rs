use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// What the files of a folder take of the disk: holes take nothing. `None` if it cannot be read.
pub(crate) fn folder_size(folder: &Path) -> Option<u64> {
    let files = std::fs::read_dir(folder).ok()?;
    let sizes = files.filter_map(|file| file.ok()?.metadata().ok()).map(|file| file.blocks() * 512);
    Some(sizes.sum())
}
