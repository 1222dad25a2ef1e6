//! The absolute paths of a guest, in the text that bash is handed.
//!
//! One pass, because what is put in place must not be looked at again: the directory of a guest is usually below `/tmp`
//! itself.

use std::collections::BTreeSet;
use std::path::Path;

use super::COMMANDS;

/// Directories that every guest has for itself. Launch scripts install the worker in the first and log into the second; this
/// machine's must not notice, nor may two guests meet there.
pub(super) const OWN_DIRECTORIES: [&str; 2] = ["/usr/local/bin", "/tmp"];

/// Puts real paths in the places of those of uploaded files, of what is below the guest's own directories, and of commands
/// that must not reach this machine. A path counts only where it stands whole: not as a part of a longer one.
pub(super) fn translate(
    line: &str,
    root: &Path,
    uploaded: &BTreeSet<String>,
    commands: &Path,
) -> String {
    let mut out = String::with_capacity(line.len());
    let mut done = 0;
    while let Some(next) = line[done..].find('/') {
        let (before, from) = line.split_at(done + next);
        out.push_str(&before[done..]);
        let path = match uploaded_at(from, uploaded) {
            Some(path) => path,
            None => &from[..from.find(|char| !is_part(char)).unwrap_or(from.len())],
        };
        let real = real_path(path, root, uploaded, commands);
        let real = real.filter(|_| !before.ends_with(leads_into_path));
        out.push_str(real.as_deref().unwrap_or(path));
        done = before.len() + path.len();
    }
    out + &line[done..]
}

fn is_part(char: char) -> bool {
    char.is_alphanumeric() || "/._-".contains(char)
}

/// Whether a slash after this continues a path, a pattern or an expansion that began before it.
fn leads_into_path(char: char) -> bool {
    is_part(char) || "})]~*?\\".contains(char)
}

/// The longest path of an uploaded file that `text` begins with. Such a path may hold any character.
fn uploaded_at<'a>(text: &'a str, uploaded: &BTreeSet<String>) -> Option<&'a str> {
    let stands_whole = |path: &&String| {
        text.strip_prefix(path.as_str()).is_some_and(|behind| !behind.starts_with(is_part))
    };
    let longest = uploaded.iter().filter(stands_whole).map(String::len).max()?;
    Some(&text[..longest])
}

fn real_path(
    path: &str,
    root: &Path,
    uploaded: &BTreeSet<String>,
    commands: &Path,
) -> Option<String> {
    let is_below = |directory: &&str| {
        path.strip_prefix(*directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if uploaded.contains(path) || OWN_DIRECTORIES.iter().any(is_below) {
        return Some(format!("{}{path}", root.display()));
    }
    let places = ["/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/"];
    let name = places.iter().find_map(|place| path.strip_prefix(place))?;
    let is_replaced = COMMANDS.iter().any(|(known, _)| *known == name);
    is_replaced.then(|| commands.join(name).display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(line: &str, uploaded: &[&str]) -> String {
        let uploaded = uploaded.iter().map(|path| (*path).to_owned()).collect();
        translate(line, Path::new("/tmp/g"), &uploaded, Path::new("/c"))
    }

    #[test]
    fn guest_paths_are_translated_where_they_stand_whole() {
        let uploaded = ["/home/run.sh", "/home/run", "/home/my script"];
        for (line, wanted) in [
            (
                "/bin/bash /home/run.sh /home/run.sh.bak '/home/run'",
                "/bin/bash /tmp/g/home/run.sh /home/run.sh.bak '/tmp/g/home/run'",
            ),
            ("'/home/my script' /home/my", "'/tmp/g/home/my script' /home/my"),
            ("/mnt/home/run", "/mnt/home/run"),
        ] {
            assert_eq!(translated(line, &uploaded), wanted);
        }
    }

    #[test]
    fn commands_that_would_reach_this_machine_are_replaced_by_absolute_path_too() {
        assert_eq!(
            translated("/sbin/shutdown -h now; /usr/bin/systemctl poweroff", &[]),
            "/c/shutdown -h now; /c/systemctl poweroff"
        );
        assert_eq!(translated("/opt/sbin/shutdown; /sbin/ip", &[]), "/opt/sbin/shutdown; /sbin/ip");
    }

    #[test]
    fn what_is_below_the_guests_own_directories_is_its_own() {
        for (line, wanted) in [
            ("worker 1>/tmp/worker.log 2>&1;", "worker 1>/tmp/g/tmp/worker.log 2>&1;"),
            ("-o /usr/local/bin/worker", "-o /tmp/g/usr/local/bin/worker"),
            ("cd /tmp && ls '/tmp/'*", "cd /tmp/g/tmp && ls '/tmp/g/tmp/'*"),
            ("PATH=/usr/local/bin:/usr/bin", "PATH=/tmp/g/usr/local/bin:/usr/bin"),
            ("x=\"/tmp/$name\"", "x=\"/tmp/g/tmp/$name\""),
        ] {
            assert_eq!(translated(line, &[]), wanted);
        }
    }

    #[test]
    fn what_only_looks_like_the_guests_own_stays() {
        for line in [
            "http://127.0.0.1:8081/tmp/x",
            "/var/tmp/x /tmpfs /usr/local/bingo",
            "$HOME/tmp ${HOME}/tmp $(pwd)/tmp ~/tmp */tmp",
            "sed 's/\\/tmp\\/x/y/'",
            "/usr/local/lib /usr/bin/env",
        ] {
            assert_eq!(translated(line, &[]), line);
        }
    }

    #[test]
    fn a_translated_path_is_not_translated_again() {
        assert_eq!(translated("/tmp/a /tmp/a", &["/tmp/a"]), "/tmp/g/tmp/a /tmp/g/tmp/a");
    }
}
