//! The command line of one QEMU. Pure.

use std::path::Path;

use super::store::{CMDLINE, INITRD, KERNEL, Machine, OVERLAY, SEED, SERIAL};

/// How a VM comes to life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    Boot,
    /// It waits for the memory of a snapshot.
    Memory,
}

pub(super) const PID: &str = "pid";
pub(super) const QMP: &str = "qmp.sock";
pub(super) const EVENTS: &str = "events.sock";
pub(super) const CONSOLE: &str = "console.sock";
pub(super) const AGENT: &str = "agent.sock";
/// The card's name at the monitor.
pub(super) const NET: &str = "net0";

/// `folder` is the VM's own: which files are in it decides what it starts from.
pub(super) fn command_line(
    accelerators: &[String],
    machine: &Machine,
    folder: &Path,
    start: Start,
) -> Vec<String> {
    let path = |name: &str| escape(&folder.join(name).to_string_lossy());
    let has = |name: &str| folder.join(name).exists();
    let config = &machine.vm.config;
    let hardware = &machine.hardware;
    let socket = |name: &str| format!("{},server=on,wait=off", path(name));
    let mut line = Line::default();
    line.two("-name", &format!("guest={}", escape(&config.name)));
    line.two("-machine", &hardware.machine).two("-cpu", &hardware.cpu);
    for accelerator in accelerators {
        line.two("-accel", accelerator);
    }
    line.two("-smp", &config.cpu.to_string());
    line.two("-m", &format!("{}M", config.memory.div_ceil(1024 * 1024)));
    line.one("-nodefaults").one("-no-user-config").two("-display", "none");
    line.two("-sandbox", "on,obsolete=deny");
    line.one("-daemonize").two("-pidfile", &folder.join(PID).to_string_lossy());
    line.two("-qmp", &format!("unix:{}", socket(QMP)));
    line.two("-qmp", &format!("unix:{}", socket(EVENTS)));
    let log = format!("logfile={},logappend=on", path(SERIAL));
    line.two("-chardev", &format!("socket,id=console,path={},{log}", socket(CONSOLE)));
    line.two("-serial", "chardev:console");
    line.two("-device", "virtio-serial-pci");
    line.two("-chardev", &format!("socket,id=agent,path={}", socket(AGENT)));
    line.two("-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0");
    let forwards = machine.ports.iter().map(|port| format!(",hostfwd={}", forward(machine, *port)));
    line.two("-netdev", &format!("user,id={NET}{}", forwards.collect::<String>()));
    line.two("-device", &format!("virtio-net-pci,netdev={NET},mac={},romfile=", hardware.mac));
    if has(OVERLAY) {
        line.two("-drive", &format!("file={},if=virtio,format=qcow2,discard=unmap", path(OVERLAY)));
        let seed = format!("file.driver=vvfat,file.dir={},file.label=CIDATA", path(SEED));
        line.two("-drive", &format!("{seed},if=virtio,format=raw,readonly=on"));
    }
    if has(KERNEL) {
        line.two("-kernel", &folder.join(KERNEL).to_string_lossy());
        if has(INITRD) {
            line.two("-initrd", &folder.join(INITRD).to_string_lossy());
        }
        let words = std::fs::read_to_string(folder.join(CMDLINE)).unwrap_or_default();
        line.two("-append", if has(CMDLINE) { words.trim() } else { "console=ttyS0" });
    }
    if start == Start::Memory {
        line.two("-incoming", "defer").one("-S");
    }
    line.0
}

/// A port of the guest, at the same port of the VM's address on this host.
pub(super) fn forward(machine: &Machine, port: u16) -> String {
    format!("tcp:{}:{port}-:{port}", machine.address())
}

/// In a list of options a comma ends a value, and two are one.
fn escape(text: &str) -> String {
    text.replace(',', ",,")
}

#[derive(Default)]
struct Line(Vec<String>);

impl Line {
    fn one(&mut self, word: &str) -> &mut Self {
        self.0.push(word.to_owned());
        self
    }

    fn two(&mut self, option: &str, value: &str) -> &mut Self {
        self.one(option).one(value)
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::Hardware;
    use super::*;
    use crate::record::{Nic, StaticAddress, VmConfig, VmRecord};

    fn machine() -> Machine {
        let network = StaticAddress { ip: "127.88.0.2".into(), ..StaticAddress::default() };
        let vm = VmRecord {
            id: "VM1".into(),
            config: VmConfig {
                name: "a,b".into(),
                cpu: 2,
                memory: 256 << 20,
                ..Default::default()
            },
            network_configs: vec![Nic { network: Some(network), ..Nic::default() }],
            ..VmRecord::default()
        };
        let hardware =
            Hardware { machine: "pc".into(), cpu: "max".into(), mac: "52:54:00:00:00:01".into() };
        Machine { vm, hardware, ports: [22, 80].into() }
    }

    fn line(start: Start, files: &[&str]) -> String {
        let name = format!("roost-argv-{}-{:?}", std::process::id(), std::thread::current().id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        for file in files {
            std::fs::write(folder.join(file), "quiet\n").unwrap();
        }
        let accelerators = ["kvm", "tcg"].map(str::to_owned);
        let line = command_line(&accelerators, &machine(), &folder, start).join(" ");
        std::fs::remove_dir_all(&folder).unwrap();
        line.replace(&*folder.to_string_lossy(), "DIR")
    }

    #[test]
    fn what_is_in_the_folder_is_what_it_starts_from() {
        let kernel = line(Start::Boot, &[KERNEL, INITRD, CMDLINE]);
        assert!(
            kernel.ends_with("-kernel DIR/vmlinuz -initrd DIR/initrd -append quiet"),
            "{kernel}"
        );
        assert!(!kernel.contains("-drive"), "{kernel}");
        let disk = line(Start::Boot, &[OVERLAY]);
        assert!(disk.contains("-drive file=DIR/overlay.qcow2,if=virtio,format=qcow2"), "{disk}");
        assert!(disk.contains("label=CIDATA") && !disk.contains("-kernel"), "{disk}");
        let woken = line(Start::Memory, &[OVERLAY]);
        assert_eq!(woken, format!("{disk} -incoming defer -S"), "the same machine, waiting");
    }

    #[test]
    fn ports_are_forwarded_from_the_vms_own_address() {
        let line = line(Start::Boot, &[KERNEL]);
        let forwards =
            "-netdev user,id=net0,hostfwd=tcp:127.88.0.2:22-:22,hostfwd=tcp:127.88.0.2:80-:80";
        assert!(line.contains(forwards), "{line}");
        assert!(line.contains("guest=a,,b ") && line.contains("-smp 2 -m 256M"), "{line}");
        assert!(line.contains("-accel kvm -accel tcg"), "{line}");
    }
}
