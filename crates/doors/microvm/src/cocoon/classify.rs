//! `cocoon` tells its failures in words. These are the ones that callers react to.

use crate::error::RuntimeError;

/// What a failed command means. `subject` is what it was about: a VM, a snapshot or an image.
pub(super) fn failure(command: &str, subject: &str, output: &str) -> RuntimeError {
    let said = output.to_lowercase();
    let owned = || subject.to_owned();
    // "not found" alone says nothing: a missing configuration or binary is not a missing VM.
    if said.contains("vm not found") || said.contains("no such vm") {
        RuntimeError::VmNotFound { vm: owned() }
    } else if said.contains("snapshot not found") {
        RuntimeError::SnapshotNotFound { snapshot: owned() }
    } else if said.contains("not found in any backend") {
        RuntimeError::ImageNotFound { image: owned() }
    } else if said.contains("snapshot name")
        && (said.contains("already exists") || said.contains("already in use"))
    {
        RuntimeError::SnapshotNameTaken { name: owned() }
    } else if said.contains("vm name") && said.contains("already exists") {
        RuntimeError::NameTaken { name: owned() }
    } else if said.contains("vsock not configured") || said.contains("exec: dial agent") {
        RuntimeError::NoGuestDaemon { vm: owned(), detail: tidy(output) }
    } else if said.contains("does not support net resize") {
        RuntimeError::NotSupported { what: "changing the number of network cards" }
    } else {
        RuntimeError::Failed { command: command.to_owned(), detail: tidy(output) }
    }
}

/// The text without `Error: ` and not longer than a message should be.
pub(super) fn tidy(output: &str) -> String {
    const LONGEST: usize = 2000;
    let text = output.trim();
    let text = text.strip_prefix("Error: ").unwrap_or(text);
    if text.is_empty() {
        return "it failed and said nothing".to_owned();
    }
    // The end says most: it is where a program reports why it gave up.
    let mut from = text.len().saturating_sub(LONGEST);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text[from..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_vm_is_told_from_everything_else_that_is_missing() {
        for (output, is_gone) in [
            ("Error: inspect: vm X: VM not found", true),
            ("Error: vm X: VM not found", true),
            ("no such VM: x", true),
            ("Error: config file not found", false),
            ("sudo: cocoon: command not found", false),
            ("Error: open db: permission denied", false),
            ("Error: inspect: snapshot not found", false),
            ("", false),
        ] {
            assert_eq!(failure("vm inspect", "X", output).is_vm_gone(), is_gone, "{output}");
        }
    }

    #[test]
    fn taken_names_are_known_in_both_wordings() {
        let vm = r#"Error: clone VM: reserve VM record: vm name "X" already exists (id: Y)"#;
        assert!(matches!(failure("vm clone", "X", vm), RuntimeError::NameTaken { .. }));
        for text in [
            r#"Error: snapshot name "X" already exists"#,
            r#"snapshot name "X" already in use by abc"#,
        ] {
            assert!(
                matches!(
                    failure("snapshot save", "X", text),
                    RuntimeError::SnapshotNameTaken { .. }
                ),
                "{text}"
            );
        }
    }

    #[test]
    fn a_guest_without_a_daemon_is_known() {
        let text = "Error: exec: vsock not configured for this VM; recreate it";
        assert!(matches!(failure("vm exec", "X", text), RuntimeError::NoGuestDaemon { .. }));
    }

    #[test]
    fn long_output_keeps_its_end() {
        let text = format!("{}ü the reason", "x".repeat(3000));
        let tidied = tidy(&text);
        assert!(tidied.len() <= 2000 && tidied.ends_with("the reason"));
    }
}
