//! Which accelerator a VM gets. `/dev/kvm` may be there and be of no use: where there is no hardware support behind it, guests stand still or
//! crawl. So both are tried with a guest that does nothing but end.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::{sleep, timeout};

use super::QemuSettings;

/// Writes to the port that ends QEMU, and stops.
const BOOT_SECTOR: [u8; 7] = [0xb0, 0x01, 0xe6, 0xf4, 0xf4, 0xeb, 0xfd];
/// What QEMU ends with when 1 was written to that port.
const ENDED: i32 = 3;
/// Hardware is faster than none; how much later it may come and still be chosen, on a host whose processors are busy.
const HEAD_START: Duration = Duration::from_secs(1);
const LIMIT: Duration = Duration::from_mins(1);

/// The first if it is not slower than the second. What is not two is not compared.
pub(super) async fn choose(settings: &QemuSettings, folder: &Path) -> Vec<String> {
    let all = &settings.accelerators;
    let [first, second] = all.as_slice() else { return all.clone() };
    let disk = folder.join("probe.img");
    let mut sector = BOOT_SECTOR.to_vec();
    sector.resize(510, 0);
    sector.extend([0x55, 0xaa]);
    if fs::write(&disk, sector).is_err() {
        return all.clone();
    }
    let later = async {
        let _ = timeout(LIMIT, ends(settings, second, &disk)).await;
        sleep(HEAD_START).await;
    };
    let works = tokio::select! {
        biased;
        works = ends(settings, first, &disk) => works,
        () = later => false,
    };
    let _ = fs::remove_file(&disk);
    let chosen = if works { first } else { second };
    tracing::info!("VMs run with accelerator {chosen}");
    vec![chosen.clone()]
}

async fn ends(settings: &QemuSettings, accelerator: &str, disk: &Path) -> bool {
    let mut command = Command::new(&settings.binary);
    command.args(["-machine", "pc", "-accel", accelerator, "-m", "16M", "-nodefaults"]);
    command.args(["-no-user-config", "-display", "none", "-boot", "c"]);
    command.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4", "-drive"]);
    let path = disk.to_string_lossy().replace(',', ",,");
    command.arg(format!("file={path},format=raw,if=ide,snapshot=on"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    command.status().await.is_ok_and(|status| status.code() == Some(ENDED))
}
