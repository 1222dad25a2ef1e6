//! How a path that changed lies to a path that was asked for.

/// Whether the value at `path` holds the one at `below`, or is the same: `config` and `config.hardware.device[4000]`.
pub(super) fn holds(path: &str, below: &str) -> bool {
    below.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Whether a change of the one is a change of the other.
pub(super) fn touch(one: &str, other: &str) -> bool {
    holds(one, other) || holds(other, one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_touch_at_whole_steps_only() {
        for (asked, changed, touches) in [
            ("runtime.powerState", "runtime.powerState", true),
            ("runtime", "runtime.powerState", true),
            ("runtime.powerState", "runtime", true),
            ("runtime.power", "runtime.powerState", false),
            ("config.hardware.device", "config.hardware.device[4000]", true),
            ("config.hardware.device[4000].backing", "config.hardware.device[4000]", true),
            ("config.hardware.device[400]", "config.hardware.device[4000]", false),
            (r#"config.extraConfig["a.b"]"#, r#"config.extraConfig["a.b"]"#, true),
            (r#"config.extraConfig["a"]"#, r#"config.extraConfig["a.b"]"#, false),
            ("guest.net", "guest.ipAddress", false),
        ] {
            assert_eq!(touch(asked, changed), touches, "{asked} {changed}");
        }
    }
}
