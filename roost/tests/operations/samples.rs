use std::fmt::Write as _;
use std::path::Path;

use roost_cds_sim::demo_hatchery_key;
use roost_tls::TlsIdentity;

use crate::{assert_generated, file, read, roost};

#[test]
fn the_sample_configuration_is_what_config_new_prints() {
    let output = roost(&["config", "new"]);
    assert!(output.status.success());
    assert_generated("deploy/config/roost.toml", &String::from_utf8(output.stdout).unwrap());
}

/// With files in place of those of `/etc/roost`, each is one that `roost check` has no word against.
#[test]
fn every_sample_can_be_used_as_it_is() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("samples");
    std::fs::create_dir_all(&folder).unwrap();
    let mut seen = String::new();
    for entry in std::fs::read_dir(file("deploy/config")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let text = read(&format!("deploy/config/{name}"));
        for secret in text.split("\"/etc/roost/").skip(1) {
            let secret = secret.split('"').next().unwrap();
            let content = if secret.ends_with("key.pem") {
                demo_hatchery_key().expose().to_owned()
            } else if secret.ends_with("ca.pem") {
                TlsIdentity::self_signed("ca", &["vcenter"]).unwrap().certificate_pem()
            } else {
                "secret".to_owned()
            };
            std::fs::write(folder.join(secret), content).unwrap();
        }
        let here = folder.join(&name);
        std::fs::write(&here, text.replace("/etc/roost", &folder.to_string_lossy())).unwrap();
        let output = roost(&["check", "-c", &here.to_string_lossy()]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && said.is_empty(), "{name}: {said}");
        let _ = write!(seen, "{name} ");
    }
    assert!(seen.contains("small.toml") && seen.contains("large.toml"), "{seen}");
}

#[test]
fn the_large_sample_has_addresses_for_all_it_asks_for() {
    let text = read("deploy/config/large.toml");
    let numbers = |key: &str| -> u32 {
        let values = text.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
        values.map(|value| value.parse::<u32>().unwrap()).sum()
    };
    // Of 64 addresses each: without network, broadcast and gateway.
    let addresses = 2 * (64 - 3);
    let wanted = numbers("maxWorker") + numbers("number");
    assert_eq!(wanted, 73);
    assert!(wanted + wanted / 10 <= addresses, "{wanted} of {addresses}");
    assert!(text.contains(&format!("# {addresses} addresses")), "{addresses}");
}

#[test]
fn the_image_is_built_with_the_toolchain_of_the_repository() {
    let toolchain = read("rust-toolchain.toml");
    let (_, rest) = toolchain.split_once("channel = \"").unwrap();
    let (channel, _) = rest.split_once('"').unwrap();
    let image = read("deploy/container/Containerfile");
    assert!(image.contains(&format!("rust:{channel}-alpine AS build")), "not with {channel}");
    assert!(image.contains(&format!("ENV RUSTUP_TOOLCHAIN={channel}\n")), "not with {channel}");
    let last = image.rsplit("\nFROM ").next().unwrap();
    assert!(last.starts_with("scratch\n"), "what runs is the binary and nothing else");
    assert!(last.contains("\nUSER 65532:65532\n"));
}
