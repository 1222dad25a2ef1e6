//! A real machine without hardware: QEMU and a kernel of Debian, with a small guest that is put together here.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::availability::{Missing, Oracle};
use crate::debian;
use crate::install::install_once;
use crate::process;
use crate::target;

const ASK_LIMIT: Duration = Duration::from_mins(1);

/// Programs and files to start a guest with. The guest counts ten times a second into `/srv/counter`, serves that folder at port 8080, and has a
/// guest agent and a shell at its serial console.
#[derive(Debug, Clone)]
pub struct Microvm {
    pub qemu: PathBuf,
    pub qemu_img: PathBuf,
    pub kernel: PathBuf,
    pub initrd: PathBuf,
    pub cmdline: &'static str,
    /// Where the packages of the guest are unpacked: kernel, guest agent, busybox.
    pub packages: [PathBuf; 3],
}

/// From the Debian packages `qemu-system-x86`, `qemu-utils`, `qemu-guest-agent`, `busybox-static` and `linux-image-cloud-amd64`; nothing is installed.
pub fn microvm() -> Option<Microvm> {
    static ORACLE: Oracle<Microvm> = Oracle::new("QEMU");
    ORACLE.get(fetch)
}

fn fetch() -> Result<Microvm, Missing> {
    let packages = ["qemu-system-x86", "qemu-utils"];
    let qemu = debian::unpacked_with_needs("qemu", &packages, "usr/bin/qemu-img")?;
    let firmware = ["seabios", "qemu"].map(|name| qemu.join("usr/share").join(name));
    let firmware = firmware.map(|folder| format!("-L {}", folder.display())).join(" ");
    let kernel = debian::unpacked_behind("linux-image-cloud-amd64", "boot")?;
    let agent =
        debian::unpacked_with_needs("qemu-guest-agent", &["qemu-guest-agent"], "usr/sbin/qemu-ga")?;
    let busybox = debian::unpacked("busybox-static", "usr/share/doc/busybox-static")?;
    let guest = Guest { kernel: &kernel, agent: &agent, busybox: &busybox };
    let sum = INIT.bytes().fold(0_u32, |sum, byte| sum.rotate_left(5) ^ u32::from(byte));
    let version = guest.version()?;
    let folder = install_once(
        &target::oracles(),
        &format!("microvm-guest-{version}-{sum:08x}"),
        "initrd",
        |attempt| guest.build(&attempt.join("initrd")),
    )?;
    Ok(Microvm {
        qemu: program(&folder, &qemu, "qemu-system-x86_64", &firmware)?,
        qemu_img: program(&folder, &qemu, "qemu-img", "")?,
        kernel: kernel.join("boot").join(format!("vmlinuz-{version}")),
        initrd: folder.join("initrd"),
        cmdline: "console=ttyS0 quiet panic=1 random.trust_cpu=on",
        packages: [kernel, agent, busybox],
    })
}

fn libraries(folder: &Path) -> String {
    let machine = format!("{}-linux-gnu", std::env::consts::ARCH);
    let folders = ["usr/lib", "lib"].map(|lib| folder.join(lib).join(&machine));
    folders.map(|folder| folder.display().to_string()).join(":")
}

/// A program that finds its libraries and firmware in `package`.
fn program(folder: &Path, package: &Path, name: &str, arguments: &str) -> Result<PathBuf, Missing> {
    let path = folder.join(name);
    let real = package.join("usr/bin").join(name);
    let script = format!(
        "#!/bin/sh\nLD_LIBRARY_PATH={} exec {} {arguments} \"$@\"\n",
        libraries(package),
        real.display()
    );
    let write = || {
        if fs::read_to_string(&path).is_ok_and(|there| there == script) {
            return Ok(());
        }
        // Tests that start at once write the same; none may see half of it.
        let fresh = folder.join(format!("{name}.{}", std::process::id()));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o755);
        options.open(&fresh)?.write_all(script.as_bytes())?;
        fs::rename(fresh, &path)
    };
    write().map_err(|source| Missing::Folder { path: path.clone(), source })?;
    Ok(path)
}

/// In the order in which they are loaded.
const MODULES: [&str; 10] = [
    "drivers/virtio/virtio",
    "drivers/virtio/virtio_ring",
    "drivers/virtio/virtio_pci_legacy_dev",
    "drivers/virtio/virtio_pci_modern_dev",
    "drivers/virtio/virtio_pci",
    "drivers/char/virtio_console",
    "net/core/failover",
    "drivers/net/net_failover",
    "drivers/net/virtio_net",
    "drivers/block/virtio_blk",
];

const INIT: &str = "#!/bin/sh
export PATH=/bin:/sbin LD_LIBRARY_PATH=/lib/x86_64-linux-gnu
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mkdir -p /tmp /run /srv /dev/pts; mount -t devpts pts /dev/pts
for module in /lib/modules/*; do insmod $module; done
ip link set lo up; ip link set eth0 up; ip addr add 10.0.2.15/24 dev eth0; ip route add default via 10.0.2.2
(n=0; while :; do n=$((n+1)); echo $n > /srv/next; mv /srv/next /srv/counter; sleep 0.1; done) &
while [ ! -e /dev/vport0p1 ] && [ ! -e /dev/vport1p1 ]; do sleep 0.1; done
qemu-ga -m virtio-serial -p $(ls /dev/vport*p1 | head -n 1) -t /run -f /run/agent.pid &
httpd -p 8080 -h /srv
echo guest is ready
while :; do setsid cttyhack sh < /dev/ttyS0 > /dev/ttyS0 2>&1; sleep 1; done
";

struct Guest<'a> {
    kernel: &'a Path,
    agent: &'a Path,
    busybox: &'a Path,
}

impl Guest<'_> {
    fn version(&self) -> Result<String, Missing> {
        let folder = self.kernel.join("boot");
        let names = fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let version = names.find_map(|name| Some(name.strip_prefix("vmlinuz-")?.to_owned()));
        let failed = || io::Error::other("there is no kernel in it");
        version.ok_or_else(|| Missing::Folder { path: folder.clone(), source: failed() })
    }

    fn build(&self, to: &Path) -> Result<(), Missing> {
        let version = self.version()?;
        let libraries = self.libraries()?;
        let write = || {
            let mut archive = Archive::default();
            for folder in ["bin", "sbin", "dev", "proc", "sys", "lib/modules", "lib64"] {
                archive.folder(folder);
            }
            let busybox = ["bin/busybox", "usr/bin/busybox"].map(|path| self.busybox.join(path));
            let busybox = busybox.iter().find(|path| path.exists());
            let busybox = busybox.ok_or_else(|| io::Error::other("busybox is not where it was"))?;
            archive.program("bin/busybox", &fs::read(busybox)?);
            archive.link("bin/sh", "busybox");
            archive.program("bin/qemu-ga", &fs::read(self.agent.join("usr/sbin/qemu-ga"))?);
            for library in &libraries {
                let name = library.file_name().unwrap_or_default().to_string_lossy();
                let folder =
                    if name.starts_with("ld-linux") { "lib64" } else { "lib/x86_64-linux-gnu" };
                archive.program(&format!("{folder}/{name}"), &fs::read(library)?);
            }
            let modules = ["usr/lib/modules", "lib/modules"]
                .map(|lib| self.kernel.join(lib).join(&version).join("kernel"));
            for (number, module) in MODULES.iter().enumerate() {
                // Some kernels have it built in.
                let found = modules.iter().flat_map(|folder| {
                    ["ko", "ko.xz"].map(|end| folder.join(format!("{module}.{end}")))
                });
                if let Some(path) = found.into_iter().find(|path| path.exists()) {
                    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    archive.program(&format!("lib/modules/{number:02}-{name}"), &fs::read(path)?);
                }
            }
            archive.program("init", INIT.as_bytes());
            fs::write(to, archive.finish())
        };
        write().map_err(|source| Missing::Folder { path: to.to_owned(), source })
    }

    /// What the guest agent is linked with, and what loads them.
    fn libraries(&self) -> Result<BTreeSet<PathBuf>, Missing> {
        let mut ask = Command::new("ldd");
        ask.arg(self.agent.join("usr/sbin/qemu-ga")).env("LD_LIBRARY_PATH", libraries(self.agent));
        let failed = |detail| Missing::Fetch { step: "ldd qemu-ga".to_owned(), detail };
        let output =
            process::run(&mut ask, ASK_LIMIT).map_err(|error| failed(error.to_string()))?;
        let words = output.stdout.split_whitespace().filter(|word| word.starts_with('/'));
        let found: BTreeSet<PathBuf> = words.map(PathBuf::from).collect();
        if output.is_success() && !output.stdout.contains("not found") {
            Ok(found)
        } else {
            Err(failed(output.stdout + &output.stderr))
        }
    }
}

/// A cpio archive as kernels read it.
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    folders: BTreeSet<String>,
    count: u32,
}

impl Archive {
    fn folder(&mut self, path: &str) {
        let mut so_far = String::new();
        for part in path.split('/') {
            so_far.push_str(part);
            if self.folders.insert(so_far.clone()) {
                self.entry(&so_far, 0o040_755, &[]);
            }
            so_far.push('/');
        }
    }

    fn program(&mut self, path: &str, content: &[u8]) {
        if let Some((folder, _)) = path.rsplit_once('/') {
            self.folder(folder);
        }
        self.entry(path, 0o100_755, content);
    }

    fn link(&mut self, path: &str, to: &str) {
        self.entry(path, 0o120_777, to.as_bytes());
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.count += 1;
        let fields = [
            self.count,
            mode,
            0,
            0,
            1,
            0,
            length(content),
            0,
            0,
            0,
            0,
            length(path.as_bytes()) + 1,
            0,
        ];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_padded_and_ends_with_its_trailer() {
        let mut archive = Archive::default();
        archive.program("a/b/init", b"hello");
        archive.folder("a/b");
        let bytes = archive.finish();
        let text = String::from_utf8_lossy(&bytes);
        let names: Vec<_> = text.match_indices("070701").map(|(at, _)| &text[at + 110..]).collect();
        let names: Vec<_> = names.iter().filter_map(|rest| rest.split('\0').next()).collect();
        assert_eq!(
            names,
            ["a", "a/b", "a/b/init", "TRAILER!!!"],
            "folders once, before their files"
        );
        assert!(bytes.len().is_multiple_of(4));
    }
}
