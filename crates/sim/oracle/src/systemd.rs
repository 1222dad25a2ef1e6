//! `systemd-analyze`, which reads units as systemd does and says what they leave open.

use crate::availability::{Missing, Oracle, require_tool};
use crate::go::Binary;

/// That of the machine: a systemd is not something to fetch.
pub fn systemd_analyze() -> Option<Binary> {
    static ORACLE: Oracle<Binary> = Oracle::new("systemd-analyze");
    ORACLE.get(|| {
        require_tool("systemd-analyze", "--version", Missing::Package { name: "systemd" })?;
        Ok(Binary::at("systemd-analyze"))
    })
}
