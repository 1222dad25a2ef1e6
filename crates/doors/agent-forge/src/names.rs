//! Names that are made of other names.

use ring::digest::{SHA256, digest};

/// The longest value of a label.
const LABEL: usize = 63;
/// So that a hash of ten digits and its hyphen still fit into 253.
const BASE: usize = 242;

/// `sha256` in lower-case hexadecimal digits.
pub(crate) fn hex_digest(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// A name as the value of a label: itself, or if it is too long its beginning and a hash of all of it.
pub fn label_value(name: &str) -> String {
    if name.len() <= LABEL {
        return name.to_owned();
    }
    let hash = &hex_digest(name.as_bytes())[..10];
    let kept: String = name.chars().take(LABEL - 11).collect();
    format!("{}-{hash}", kept.trim_end_matches(['-', '.', '_']))
}

/// What a VsphereAgent is called when another pool's has the name of its AgentMachine.
pub fn alternate_name(
    pool_namespace: &str,
    pool: &str,
    machine_namespace: &str,
    agent_machine: &str,
) -> String {
    let all = format!("{pool_namespace}/{pool}/{machine_namespace}/{agent_machine}");
    let base = format!("{agent_machine}-{pool}");
    let base: String = base.trim_matches('-').chars().take(BASE).collect();
    format!("{}-{}", base.trim_matches('-'), &hex_digest(all.as_bytes())[..10])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alternate_name_is_the_one_that_upstream_gives() {
        let name = alternate_name("demo", "demo-worker", "demo-demo", "demo-worker-8phl4");
        assert_eq!(name, "demo-worker-8phl4-demo-worker-e48ad71057");
        let long = alternate_name("ns", "pool", "cp", &"m".repeat(253));
        assert_eq!(long.len(), 253);
    }

    #[test]
    fn a_name_that_is_too_long_for_a_label_is_hashed_and_stays_its_own() {
        assert_eq!(label_value("blue-gp-7kx2q"), "blue-gp-7kx2q");
        let (one, other) = (format!("{}-a", "n".repeat(70)), format!("{}-b", "n".repeat(70)));
        assert_eq!(label_value(&one).len(), 63);
        assert_ne!(label_value(&one), label_value(&other));
        assert!(label_value(&format!("{}.x{}", "n".repeat(51), "y".repeat(20))).len() <= 63);
    }
}
