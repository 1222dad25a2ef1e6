//! What keeps the programs of a guest from this machine when they run as root.
//!
//! A guest gets a mount and a pid namespace of its own: its folder is writable, `/tmp` is the one in that folder, all else is
//! read-only. That guards against programs that clean up after themselves too well, not against malice: a program that runs as root
//! could mount what it likes. It is done with the programs `unshare`, `mount` and `nsenter`, because this workspace has no unsafe code.

use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The namespaces of a guest. They end, with all that runs in them, when this is dropped.
#[derive(Debug)]
pub(crate) struct Confinement {
    unshare: Child,
    /// The first process of the namespace, as this machine counts.
    first: String,
}

/// Prints its own number when everything is in place and then adopts what programs leave behind.
const FIRST: &str = r#"
set -e
root=${1%/}
# Whether no path leads to a mount, because another one lies over it or over what it is in.
is_hidden() {
    mount=$1
    while :; do
        over= path=
        while read -r id parent _ _ at _; do
            if [ "$id" = "$mount" ]; then over=$parent path=$at; fi
        done < /proc/self/mountinfo
        [ -n "$over" ] || return 1
        while read -r id parent _ _ at _; do
            [ "$parent" = "$over" ] && [ "$id" != "$mount" ] || continue
            case "$path" in "${at%/}"/*) return 0 ;; esac
        done < /proc/self/mountinfo
        mount=$over
    done
}
read -r pid _ < /proc/self/stat
mount --make-rprivate /
mount --bind "$root" "$root"
mount --bind "$root/tmp" "$root/tmp"
mount --bind "$root/tmp" /tmp
mount -t proc -o ro proc /proc
while read -r number _ _ _ place _; do
    place=$(printf '%b' "$place")
    case "$place" in "$root"|"$root/tmp"|/tmp|/proc) continue ;; esac
    complaint=$(mount -o remount,bind,ro "$place" 2>&1) || is_hidden "$number" || {
        echo "$complaint" >&2
        exit 1
    }
done < /proc/self/mountinfo
echo "$pid"
exec > /dev/null 2>&1
while :; do sleep 3600 & wait $!; done
"#;

/// Whether programs would run with rights that can harm the machine.
pub(crate) fn is_needed() -> bool {
    rustix::process::geteuid().is_root()
}

impl Confinement {
    /// Around the guest whose directory is `root`, which has a `tmp`.
    pub(crate) fn new(root: &Path) -> io::Result<Self> {
        let mut unshare = Command::new("unshare")
            .args([
                "--mount",
                "--pid",
                "--fork",
                "--kill-child",
                "--",
                "/bin/sh",
                "-c",
                FIRST,
                "sh",
            ])
            .arg(root)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut first = String::new();
        if let Some(output) = unshare.stdout.take() {
            BufReader::new(output).read_line(&mut first)?;
        }
        let first = first.trim().to_owned();
        if first.is_empty() {
            let mut complaint = String::new();
            if let Some(mut errors) = unshare.stderr.take() {
                errors.read_to_string(&mut complaint)?;
            }
            let _ = unshare.wait();
            return Err(io::Error::other(format!(
                "no namespace for the guest: {}",
                complaint.trim()
            )));
        }
        Ok(Self { unshare, first })
    }

    /// What stands before the program and its arguments.
    pub(crate) fn enter(&self) -> [&str; 6] {
        ["nsenter", "--target", &self.first, "--mount", "--pid", "--"]
    }
}

impl Drop for Confinement {
    fn drop(&mut self) {
        // The first process dies with it, and all others with the first.
        let _ = self.unshare.kill();
        let _ = self.unshare.wait();
    }
}
