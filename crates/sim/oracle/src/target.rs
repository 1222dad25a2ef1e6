//! Where fetched oracles live: `<target>/oracles`, so that `cargo clean` removes them and nothing else
//! on the machine is touched.

use std::env;
use std::path::{Path, PathBuf};

/// The first of these that is there: the target folder that the running test executable is in, the one
/// that `CARGO_TARGET_DIR` names, the workspace's own.
///
/// The executable comes first because it is right whatever chose the folder (variable, Cargo
/// configuration, command line); documentation tests run outside of it and need the other two. A
/// relative `CARGO_TARGET_DIR` is skipped: it is relative to where Cargo was started, which a test
/// does not know.
pub(crate) fn oracles() -> PathBuf {
    let of_executable = env::current_exe().ok().and_then(|exe| holding(&exe));
    let named = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
    of_executable.or(named).unwrap_or_else(|| crate_folder("../../../target")).join("oracles")
}

/// A folder of the source tree, by its path from this crate.
pub(crate) fn crate_folder(relative: &str) -> PathBuf {
    let mut path = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    for part in Path::new(relative) {
        if part == ".." {
            path.pop();
        } else {
            path.push(part);
        }
    }
    path
}

/// The nearest folder above `executable` that Cargo marked as a target folder. The cache tag is missing
/// where someone made the folder before Cargo did, the compiler information where a cache was restored.
fn holding(executable: &Path) -> Option<PathBuf> {
    executable
        .ancestors()
        .find(|dir| [".rustc_info.json", "CACHEDIR.TAG"].iter().any(|tag| dir.join(tag).is_file()))
        .map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use std::fs;

    #[test]
    fn the_target_folder_is_found_from_any_depth_of_it() {
        let scratch = Scratch::new("target");
        let target = scratch.path().join("built");
        fs::create_dir_all(target.join("debug/deps")).unwrap();
        fs::write(target.join("CACHEDIR.TAG"), "").unwrap();
        for executable in ["debug/deps/test-1", "x86_64-unknown-linux-gnu/release/deps/test-1"] {
            assert_eq!(holding(&target.join(executable)).as_ref(), Some(&target), "{executable}");
        }
    }

    #[test]
    fn source_folders_are_named_without_dots() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(crate_folder("go"), here.join("go"));
        assert_eq!(crate_folder("../clock"), here.with_file_name("clock"));
    }
}
