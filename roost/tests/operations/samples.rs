use crate::{assert_generated, read, roost};

#[test]
fn the_sample_configuration_is_what_config_new_prints() {
    let output = roost(&["config", "new"]);
    assert!(output.status.success());
    assert_generated("deploy/config/roost.toml", &String::from_utf8(output.stdout).unwrap());
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
