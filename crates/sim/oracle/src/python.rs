//! Python as it comes, for tests that need one thing of its standard library: a pseudo terminal.

use crate::availability::{Missing, Oracle, require_tool};
use crate::go::Binary;

/// That of the machine.
pub fn python3() -> Option<Binary> {
    static ORACLE: Oracle<Binary> = Oracle::new("python3");
    ORACLE.get(|| {
        require_tool("python3", "--version", Missing::Python)?;
        Ok(Binary::at("python3"))
    })
}
