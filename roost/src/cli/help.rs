//! The overview of all commands, in groups, and two examples with each.

use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};

use super::Args;

/// What is not named here stands in the last group.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Try it", &["demo", "sim"]),
    ("Serve", &["run", "agent-forge", "vm-operator", "kubelet"]),
    ("Prepare", &["config", "check", "doctor", "crds"]),
    ("Look", &["status", "top", "requests", "vms", "pools", "decisions", "explain"]),
    ("Steer", &["pause", "resume", "drain", "freeze", "thaw", "delete", "refill", "recheck"]),
    ("Other", &[]),
];

/// Two for each command that people are shown.
const EXAMPLES: &[(&str, [&str; 2])] = &[
    ("demo", ["roost demo --chaos --keep", "roost demo agent-forge"]),
    ("run", ["roost run -c roost.toml", "roost run -c roost.toml --observe-only"]),
    ("agent-forge", ["KUBECONFIG=~/.kube/config roost agent-forge", "roost agent-forge --help"]),
    (
        "vm-operator",
        ["KUBECONFIG=~/.kube/config roost vm-operator", "POD_NAMESPACE=vmop roost vm-operator"],
    ),
    ("kubelet", ["VK_NODE_NAME=vk-1 roost kubelet", "VK_RUNTIME=qemu roost kubelet"]),
    (
        "check",
        ["roost check -c roost.toml", "roost check -c roost.toml && roost doctor -c roost.toml"],
    ),
    ("doctor", ["roost doctor -c roost.toml", "roost doctor -c roost.toml --json"]),
    ("config", ["roost config new > roost.toml", "roost config new | less"]),
    ("status", ["roost status --watch", "roost --at paris status"]),
    ("requests", ["roost requests --state waiting,refused", "roost requests -o name --no-headers"]),
    ("vms", ["roost vms --kind spare", "roost vms -o wide --sort address"]),
    ("pools", ["roost pools --short", "roost pools -o yaml"]),
    ("decisions", ["roost decisions --events", "roost decisions --subject 1045 -n 200"]),
    ("explain", ["roost explain 1045", "roost explain vm keen-bohr"]),
    ("top", ["roost top", "roost top --once"]),
    ("pause", ["roost pause --reason 'host upgrade'", "roost pause -c roost.toml"]),
    ("resume", ["roost resume", "roost --at paris resume"]),
    ("drain", ["roost drain --wait", "roost drain --reason 'moving to another cluster'"]),
    ("freeze", ["roost freeze --reason 'looking at orphans'", "roost freeze -c roost.toml"]),
    ("thaw", ["roost thaw", "roost thaw --approve --reason 'they are orphans'"]),
    ("delete", ["roost delete keen-bohr", "roost delete vm-412 --reason 'hangs'"]),
    ("refill", ["roost refill debian12", "roost refill debian12 --reason 'template is mended'"]),
    ("recheck", ["roost recheck 1045", "roost recheck 05d907f2"]),
    (
        "crds",
        ["roost crds | kubectl apply --server-side -f -", "roost crds agent-forge > crds.yaml"],
    ),
    ("sim", ["roost sim vcenter --guests exec", "roost sim cds --jobs 5"]),
    ("version", ["roost version", "roost version -o json"]),
    (
        "completions",
        ["roost completions bash > /etc/bash_completion.d/roost", "roost completions zsh"],
    ),
    ("man", ["roost man | man -l -", "roost man --dir /usr/local/share/man/man1"]),
];

/// The command line with its groups and examples.
pub(crate) fn command() -> Command {
    let mut command = Args::command();
    for (name, examples) in EXAMPLES {
        if command.find_subcommand(name).is_some() {
            let text = format!("Examples:\n  {}\n  {}", examples[0], examples[1]);
            command = command.mut_subcommand(name, |sub| sub.after_help(text));
        }
    }
    let template = format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n{}\nOptions:\n{{options}}{{after-help}}",
        groups(&command)
    );
    command.help_template(template)
}

fn groups(command: &Command) -> String {
    let shown = || command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let is_named = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let mut text = String::new();
    for (title, names) in GROUPS {
        let _ = write!(text, "\n{title}:\n");
        let mut line = |sub: &Command| {
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {:<13}{about}", sub.get_name());
        };
        if names.is_empty() {
            shown().filter(|sub| !is_named(sub.get_name())).for_each(&mut line);
        }
        for name in names {
            shown().filter(|sub| sub.get_name() == *name).for_each(&mut line);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_stands_in_a_group_and_has_two_examples_that_begin_with_it() {
        let mut command = command();
        let help = command.render_help().to_string();
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let name = sub.get_name();
            if name == "help" {
                continue;
            }
            assert!(help.contains(&format!("\n  {name:<13}")), "{name} in {help}");
            let examples = EXAMPLES.iter().find(|(known, _)| *known == name);
            let (_, examples) = examples.unwrap_or_else(|| panic!("{name} has no examples"));
            for example in examples {
                let is_it = example.contains(&format!(" {name}"));
                assert!(is_it && example.contains("roost "), "{name}: {example}");
            }
        }
        for (_, names) in GROUPS {
            for name in names {
                assert!(command.find_subcommand(name).is_some(), "there is no command {name}");
            }
        }
    }
}
