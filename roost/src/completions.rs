//! `roost completions`: what a shell asks for when a person presses Tab.

use clap::CommandFactory as _;
use clap_complete::{Shell, generate};

use crate::cli::Args;
use roost_client::deliver;

pub(crate) fn print(shell: Shell) -> anyhow::Result<()> {
    deliver(&script(shell))
}

fn script(shell: Shell) -> String {
    let mut text = Vec::new();
    generate(shell, &mut Args::command(), env!("CARGO_BIN_NAME"), &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use clap::{Command, ValueEnum as _};

    use super::*;

    /// The names of all commands that a person is shown, and their long options.
    fn words(command: &Command, words: &mut Vec<String>) {
        for option in command.get_arguments().filter(|option| !option.is_hide_set()) {
            words.extend(option.get_long().map(ToOwned::to_owned));
        }
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            words.push(sub.get_name().to_owned());
            self::words(sub, words);
        }
    }

    #[test]
    fn every_shell_completes_every_command_and_option() {
        let mut wanted = Vec::new();
        words(&Args::command(), &mut wanted);
        assert!(wanted.iter().any(|word| word == "vcenter"), "{wanted:?}");
        for shell in Shell::value_variants() {
            let script = script(*shell);
            for word in &wanted {
                assert!(script.contains(word.as_str()), "{shell} does not complete {word}");
            }
        }
    }
}
