//! The files of a release, as far as they can be made without a compiler for musl and without a container engine.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::{file, read, roost};

/// Answers what the recipe asks of a binary, and is small.
const STAND_IN: &str = "#!/bin/sh\nif [ \"$1\" = man ]; then mkdir -p \"$3\"; echo roost > \"$3/roost.1\"; else echo \"$@\"; fi\n";

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

fn made() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("release");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let binary = folder.join("stand-in");
    fs::write(&binary, STAND_IN).unwrap();
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
    let out = folder.join("out");
    let mut make = Command::new(file("deploy/release/make"));
    run(make.arg("--binary").arg(&binary).arg("--out").arg(&out).env("SOURCE_DATE_EPOCH", "1"));
    out
}

#[test]
fn a_release_is_a_binary_a_package_and_an_image() {
    let out = made();
    let version = env!("CARGO_PKG_VERSION");
    let deb = out.join(format!("roost_{version}_amd64.deb"));
    let contents = run(Command::new("dpkg-deb").arg("--contents").arg(&deb));
    for path in [
        "./usr/bin/roost",
        "./usr/lib/systemd/system/roost.service",
        "./usr/lib/sysusers.d/roost.conf",
        "./etc/roost/roost.toml",
        "./usr/share/man/man1/roost.1",
        "./usr/share/bash-completion/completions/roost",
    ] {
        assert!(contents.lines().any(|line| line.ends_with(path)), "{path} in {contents}");
    }
    assert!(contents.lines().all(|line| line.contains(" root/root ")), "{contents}");
    let fields = run(Command::new("dpkg-deb").arg("--field").arg(&deb));
    assert!(fields.contains(&format!("Version: {version}\n")), "{fields}");
    let unit = run(Command::new("sh").arg("-c").arg(format!(
        "dpkg-deb --fsys-tarfile {} | tar -xO ./usr/lib/systemd/system/roost.service",
        deb.display()
    )));
    assert!(unit.contains("ExecStart=/usr/bin/roost run"), "{unit}");

    let oci = out.join("unpacked");
    fs::create_dir_all(&oci).unwrap();
    let image = out.join(format!("roost-{version}-amd64.oci.tar"));
    run(Command::new("tar").arg("-xf").arg(&image).arg("-C").arg(&oci));
    let json = |text: String| -> Value { serde_json::from_str(&text).unwrap() };
    // Every blob is what its digest says, from the index down to the binary.
    let blob = |descriptor: &Value| {
        let digest = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
        let path = oci.join("blobs/sha256").join(digest);
        let sum = run(Command::new("sha256sum").arg(&path));
        assert!(sum.starts_with(digest), "{sum}");
        assert_eq!(fs::metadata(&path).unwrap().len(), descriptor["size"].as_u64().unwrap());
        path
    };
    let index = json(fs::read_to_string(oci.join("index.json")).unwrap());
    let manifest = json(fs::read_to_string(blob(&index["manifests"][0])).unwrap());
    let config = json(fs::read_to_string(blob(&manifest["config"])).unwrap());
    assert_eq!(config["config"]["Entrypoint"][0], "/roost");
    let layer = blob(&manifest["layers"][0]);
    let files = run(Command::new("tar").arg("-tf").arg(layer));
    assert!(files.lines().any(|path| path == "./roost"), "{files}");
    run(Command::new("sha256sum").args(["--check", "--quiet", "SHA256SUMS"]).current_dir(&out));
}

#[test]
fn what_the_compose_file_starts_is_there() {
    let compose: Value = serde_saphyr::from_str(&read("deploy/compose/compose.yaml")).unwrap();
    let services = compose["services"].as_object().unwrap();
    assert_eq!(services.len(), 5);
    for (name, service) in services {
        for volume in service["volumes"].as_array().into_iter().flatten() {
            let here = volume.as_str().unwrap().split(':').next().unwrap();
            let is_made = here.contains("release-files") || here.contains("key.pem");
            let path = file("deploy/compose").join(here);
            assert!(is_made || path.exists(), "{name}: {}", path.display());
        }
        let Some(command) = service["command"].as_array() else { continue };
        let mut args: Vec<&str> = command.iter().map(|word| word.as_str().unwrap()).collect();
        args.push("--help");
        let output = roost(&args);
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
