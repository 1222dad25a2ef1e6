//! Scripts for pyVmomi in front of a simulated vCenter.
#![allow(clippy::unwrap_used, reason = "it is part of tests")]

use std::path::Path;

use roost_oracle::Pyvmomi;

use crate::wire_door::WireDoor;

/// What a script of this folder prints at a server; `None` where pyVmomi cannot be had.
pub(crate) fn run(door: &WireDoor, script: &str, args: &[&str]) -> Option<String> {
    let pyvmomi = Pyvmomi::new()?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pyvmomi");
    let read =
        |name: &str| std::fs::read_to_string(folder.join(name).with_extension("py")).unwrap();
    let script = read("support") + &read(script);
    Some(pyvmomi.stdout(&script, &[&[door.url().as_str()], args].concat()))
}
