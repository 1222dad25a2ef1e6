//! The built-in rules: a few commands and just enough of a shell around them.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;
use std::time::Duration;

use crate::guest::{GuestEffect, GuestProgram, GuestRun};

/// What the commands can see.
pub(super) struct Shell<'a> {
    variables: BTreeMap<String, String>,
    /// The content of a file of the guest.
    read: &'a dyn Fn(&str) -> Option<String>,
    host_name: &'a str,
    result: GuestRun,
    is_over: bool,
}

/// How a command is joined to the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Joint {
    Always,
    IfSucceeded,
    IfFailed,
    /// Takes the output of the one before it.
    Pipe,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    text: String,
    /// Nothing in it was quoted, so it may be an operator.
    is_bare: bool,
}

/// Runs a program by the rules: `path` with `arguments`, as the tools hand it to `/bin/bash`.
pub(super) fn run(
    program: &GuestProgram,
    host_name: &str,
    read: &dyn Fn(&str) -> Option<String>,
) -> GuestRun {
    let pairs = program.environment.iter().filter_map(|pair| pair.split_once('='));
    let variables = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mut shell =
        Shell { variables, read, host_name, result: GuestRun::default(), is_over: false };
    shell.script(&format!("{} {}", program.path, program.arguments));
    shell.result
}

impl Shell<'_> {
    fn script(&mut self, script: &str) {
        let mut reader = Reader { chars: script.chars().peekable() };
        let (mut joint, mut piped) = (Some(Joint::Always), None);
        while let Some(how) = joint.filter(|_| !self.is_over) {
            let words;
            (words, joint) = reader.command(&self.variables);
            let is_wanted = match how {
                Joint::Always | Joint::Pipe => true,
                Joint::IfSucceeded => self.result.exit_code == 0,
                Joint::IfFailed => self.result.exit_code != 0,
            };
            if is_wanted && !words.is_empty() {
                let output = self.command(words, piped.take());
                match joint {
                    Some(Joint::Pipe) => piped = Some(output),
                    _ => self.result.output.push_str(&output),
                }
            }
        }
    }

    /// Runs one command with its redirections. Returns what it printed and did not redirect.
    fn command(&mut self, words: Vec<Word>, input: Option<String>) -> String {
        let (mut arguments, mut targets) = (Vec::new(), Vec::new());
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let operator = ["2>&1", "1>>", "2>>", ">>", "&>", "1>", "2>", ">", "<"].into_iter();
            let operator =
                operator.filter(|_| word.is_bare).find(|operator| word.text.starts_with(operator));
            let Some(operator) = operator else {
                arguments.push(word.text);
                continue;
            };
            let rest = &word.text[operator.len()..];
            let target = if !rest.is_empty() || operator == "2>&1" {
                Some(rest.to_owned())
            } else {
                words.next().map(|w| w.text)
            };
            targets.push((operator, target.unwrap_or_default()));
        }
        let redirected = targets.iter().rfind(|(operator, _)| *operator == "<");
        let input = redirected.map_or(input, |(_, path)| (self.read)(path));
        let mut output = self.carry_out(&arguments, input);
        for (operator, path) in targets {
            let content = match operator {
                ">" | "1>" | "&>" => std::mem::take(&mut output),
                ">>" | "1>>" => {
                    (self.read)(&path).unwrap_or_default() + &std::mem::take(&mut output)
                }
                "2>" => String::new(),
                _ => continue,
            };
            if path != "/dev/null" {
                self.result.effects.push(GuestEffect::WriteFile { path, content });
            }
        }
        output
    }

    fn carry_out(&mut self, arguments: &[String], input: Option<String>) -> String {
        let assignments = arguments.iter().take_while(|word| is_assignment(word)).count();
        for pair in &arguments[..assignments] {
            if let Some((name, value)) = pair.split_once('=') {
                self.variables.insert(name.into(), value.into());
            }
        }
        let Some((command, rest)) = arguments[assignments..].split_first() else {
            return String::new();
        };
        let name = command.rsplit('/').next().unwrap_or(command);
        self.result.exit_code = 0;
        match name {
            "echo" => {
                let (is_plain, words) = match rest.split_first() {
                    Some((flag, words)) if flag == "-n" => (true, words),
                    _ => (false, rest),
                };
                words.join(" ") + if is_plain { "" } else { "\n" }
            }
            "env" if rest.is_empty() => {
                lines(self.variables.iter().map(|(name, value)| format!("{name}={value}")))
            }
            "printenv" => self.printenv(rest),
            "false" => {
                self.result.exit_code = 1;
                String::new()
            }
            "exit" => {
                self.result.exit_code =
                    rest.first().and_then(|code| code.parse().ok()).unwrap_or(0);
                self.is_over = true;
                String::new()
            }
            "sleep" => {
                let seconds: f64 = rest.first().and_then(|text| text.parse().ok()).unwrap_or(0.0);
                self.result.takes += Duration::try_from_secs_f64(seconds).unwrap_or_default();
                String::new()
            }
            "cat" if rest.is_empty() => input.unwrap_or_default(),
            "cat" => self.cat(rest),
            "hostname" => format!("{}\n", self.host_name),
            "uname" => "Linux\n".into(),
            "export" => {
                for pair in rest {
                    if let Some((name, value)) = pair.split_once('=') {
                        self.variables.insert(name.into(), value.into());
                    }
                }
                String::new()
            }
            "bash" | "sh" => self.nested(rest, input),
            "sudo" | "nohup" | "exec" | "eval" | "env" => {
                self.carry_out(without_flags(rest), input)
            }
            "shutdown" | "poweroff" | "halt" | "reboot" | "systemctl" | "init" => {
                self.result.effects.extend(power_effect(name, rest));
                String::new()
            }
            _ => String::new(),
        }
    }

    fn printenv(&mut self, names: &[String]) -> String {
        let found: Vec<String> =
            names.iter().filter_map(|name| self.variables.get(name)).cloned().collect();
        self.result.exit_code = i32::from(found.len() < names.len());
        lines(found.into_iter())
    }

    fn cat(&mut self, paths: &[String]) -> String {
        let mut output = String::new();
        for path in paths {
            match (self.read)(path) {
                Some(content) => output.push_str(&content),
                None => self.result.exit_code = 1,
            }
        }
        output
    }

    /// `bash -c '...'`, or a script that is a file of the guest.
    fn nested(&mut self, arguments: &[String], input: Option<String>) -> String {
        let outer = std::mem::take(&mut self.result.output);
        match arguments {
            [flags, script, ..] if flags.starts_with('-') && flags.contains('c') => {
                self.script(script);
            }
            [path, ..] if !path.starts_with('-') => match (self.read)(path) {
                Some(script) => self.script(&script),
                None => self.result.exit_code = 127,
            },
            _ => self.script(&input.unwrap_or_default()),
        }
        self.is_over = false;
        std::mem::replace(&mut self.result.output, outer)
    }
}

fn power_effect(name: &str, arguments: &[String]) -> Option<GuestEffect> {
    let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    match name {
        "shutdown" if has("-c") => None,
        "shutdown" if has("-r") => Some(GuestEffect::Reboot),
        "shutdown" | "poweroff" | "halt" => Some(GuestEffect::PowerOff),
        "reboot" => Some(GuestEffect::Reboot),
        "init" => has("0")
            .then_some(GuestEffect::PowerOff)
            .or_else(|| has("6").then_some(GuestEffect::Reboot)),
        _ if has("poweroff") || has("halt") => Some(GuestEffect::PowerOff),
        _ => has("reboot").then_some(GuestEffect::Reboot),
    }
}

fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.fold(String::new(), |text, line| text + &line + "\n")
}

fn without_flags(arguments: &[String]) -> &[String] {
    let flags = arguments.iter().take_while(|word| word.starts_with('-')).count();
    &arguments[flags..]
}

fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
}

/// Cuts a script into commands as they are needed, so that each sees the variables that those before it have set. Comments,
/// loops and the like are not known; their words become commands that succeed.
struct Reader<'a> {
    chars: Peekable<Chars<'a>>,
}

impl Reader<'_> {
    /// The words of the next command, and how the one after it is joined; `None` if it was the last.
    fn command(&mut self, variables: &BTreeMap<String, String>) -> (Vec<Word>, Option<Joint>) {
        let (mut words, mut word) = (Vec::new(), None::<Word>);
        while let Some(char) = self.chars.next() {
            match char {
                '\'' => {
                    let word = word.get_or_insert_with(bare);
                    word.is_bare = false;
                    word.text.extend(self.chars.by_ref().take_while(|char| *char != '\''));
                }
                '"' => {
                    let word = word.get_or_insert_with(bare);
                    word.is_bare = false;
                    self.double_quoted(&mut word.text, variables);
                }
                '\\' => word
                    .get_or_insert_with(bare)
                    .text
                    .extend(self.chars.next().filter(|char| *char != '\n')),
                '$' => {
                    let value = self.variable(variables);
                    word.get_or_insert_with(bare).text.push_str(&value);
                }
                // `2>&1` and `&>` are redirections, not joints.
                '&' if word.as_ref().is_some_and(|word| word.text.ends_with('>'))
                    || self.chars.peek() == Some(&'>') =>
                {
                    word.get_or_insert_with(bare).text.push('&');
                }
                ';' | '\n' | '&' | '|' => {
                    words.extend(word);
                    let is_double = char != '\n' && self.chars.next_if_eq(&char).is_some();
                    return (
                        words,
                        Some(match (char, is_double) {
                            ('&', true) => Joint::IfSucceeded,
                            ('|', true) => Joint::IfFailed,
                            ('|', false) => Joint::Pipe,
                            _ => Joint::Always,
                        }),
                    );
                }
                ' ' | '\t' | '\r' => words.extend(word.take()),
                _ => word.get_or_insert_with(bare).text.push(char),
            }
        }
        words.extend(word);
        (words, None)
    }

    fn double_quoted(&mut self, text: &mut String, variables: &BTreeMap<String, String>) {
        while let Some(char) = self.chars.next().filter(|char| *char != '"') {
            match char {
                '\\' => text.extend(self.chars.next()),
                '$' => text.push_str(&self.variable(variables)),
                _ => text.push(char),
            }
        }
    }

    /// The value of the variable whose name follows.
    fn variable(&mut self, variables: &BTreeMap<String, String>) -> String {
        let is_name = |char: &char| char.is_ascii_alphanumeric() || *char == '_';
        let name: String = match self.chars.next_if_eq(&'{') {
            Some(_) => self.chars.by_ref().take_while(|char| *char != '}').collect(),
            None => std::iter::from_fn(|| self.chars.next_if(is_name)).collect(),
        };
        match name.as_str() {
            "" => "$".into(),
            _ => variables.get(&name).cloned().unwrap_or_default(),
        }
    }
}

fn bare() -> Word {
    Word { text: String::new(), is_bare: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_line(path: &str, arguments: &str, environment: &[&str]) -> GuestRun {
        let program = GuestProgram {
            vm: "w".into(),
            user: "root".into(),
            path: path.into(),
            arguments: arguments.into(),
            directory: None,
            environment: environment.iter().map(|pair| (*pair).into()).collect(),
        };
        run(&program, "w", &|path| (path == "/etc/motd").then(|| "hello\n".into()))
    }

    #[test]
    fn the_built_in_commands_do_what_they_say() {
        for (path, arguments, output, code) in [
            ("/bin/echo", "-n ;env", "A=1\n", 0),
            ("/bin/echo", "a  'b  c' \"$A-${A}\"", "a b  c 1-1\n", 0),
            ("/bin/false", "", "", 1),
            ("/bin/true", "&& echo yes || echo no", "yes\n", 0),
            ("/bin/false", "&& echo yes || echo no", "no\n", 0),
            ("/bin/bash", "-c 'echo in; exit 7'", "in\n", 7),
            ("/bin/cat", "/etc/motd", "hello\n", 0),
            ("/bin/cat", "< /etc/motd", "hello\n", 0),
            ("/bin/cat", "/nowhere", "", 1),
            ("/bin/echo", "hi | cat", "hi\n", 0),
            ("/usr/bin/curl", "-fsSL http://example.com", "", 0),
            ("X=2", "; echo $X", "2\n", 0),
        ] {
            let run = run_line(path, arguments, &["A=1"]);
            assert_eq!((run.output.as_str(), run.exit_code), (output, code), "{path} {arguments}");
        }
    }

    #[test]
    fn sleeping_takes_time_and_redirections_write_files() {
        let run = run_line("/bin/sleep", "2.5; sleep 1", &[]);
        assert_eq!(run.takes, Duration::from_millis(3500));
        let run = run_line("/bin/bash", "-c 'env 1> /tmp/out 2> /tmp/err'", &["B=x"]);
        let file = |path: &str, content: &str| GuestEffect::WriteFile {
            path: path.into(),
            content: content.into(),
        };
        assert_eq!(run.effects, [file("/tmp/out", "B=x\n"), file("/tmp/err", "")]);
        assert_eq!(run.output, "");
        assert_eq!(run_line("/bin/echo", "x > /dev/null 2>&1", &[]).effects, []);
    }

    #[test]
    fn asking_for_power_off_is_an_effect() {
        for arguments in ["-h now", "now"] {
            assert_eq!(run_line("/sbin/shutdown", arguments, &[]).effects, [GuestEffect::PowerOff]);
        }
        assert_eq!(
            run_line("/bin/echo", "-n ; sudo -n shutdown -r now", &[]).effects,
            [GuestEffect::Reboot]
        );
        assert_eq!(run_line("/bin/systemctl", "poweroff", &[]).effects, [GuestEffect::PowerOff]);
        assert_eq!(run_line("/bin/systemctl", "restart cron", &[]).effects, []);
    }
}
