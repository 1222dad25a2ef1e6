//! Command lines, read as `cocoon` reads them: flags before or between the words, values behind their flags.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use roost_microvm::{Backend, CloneFrom, CloneOptions, RunOptions};

use crate::host::{Refusal, size};

#[derive(Debug)]
pub(super) struct Args {
    pub(super) verb: Verb,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Run(RunOptions),
    Clone(CloneOptions),
    Inspect { vm: String },
    List,
    Start { vm: String },
    Stop { vm: String },
    Remove { vm: String, force: bool },
    Net { vm: String, nics: u32 },
    Exec { vm: String, env: BTreeMap<String, String>, argv: Vec<String> },
    ExecHelp,
    Logs { vm: String, tail: Option<usize>, follow: bool },
    Events,
    Save { name: String, vm: String },
    Snapshot { name: String },
    Snapshots,
    RemoveSnapshot { name: String },
    Import { name: String },
    Export { name: String },
    Pull { image: String },
    Image { image: String },
    Images,
    ImageImport { name: String },
}

/// Flags that take no value.
const SWITCHES: [&str; 13] = [
    "--windows",
    "--fc",
    "--no-direct-io",
    "--pull",
    "--on-demand",
    "--force",
    "--event",
    "--follow",
    "-f",
    "-i",
    "--interactive",
    "--help",
    "-h",
];

#[derive(Default)]
struct Line {
    words: VecDeque<String>,
    values: Vec<(String, String)>,
    switches: Vec<String>,
    rest: Vec<String>,
}

impl Line {
    fn read(argv: &[String]) -> Result<Self, Refusal> {
        let mut line = Self::default();
        let mut argv = argv.iter();
        while let Some(word) = argv.next() {
            if word == "--" {
                line.rest = argv.cloned().collect();
                break;
            }
            if SWITCHES.contains(&word.as_str()) {
                line.switches.push(word.clone());
            } else if word.starts_with('-') && word.len() > 1 {
                let value = argv
                    .next()
                    .ok_or_else(|| Refusal(format!("flag needs an argument: {word}")))?;
                line.values.push((word.clone(), value.clone()));
            } else {
                line.words.push_back(word.clone());
            }
        }
        Ok(line)
    }

    fn has(&self, name: &str) -> bool {
        self.switches.iter().any(|switch| switch == name)
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.values.iter().find(|(flag, _)| flag == name).map(|(_, value)| value.as_str())
    }

    fn size(&self, name: &str) -> Result<Option<u64>, Refusal> {
        self.value(name).map(size).transpose()
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Refusal> {
        let bad = |text: &str| Refusal(format!("invalid argument \"{text}\" for \"{name}\" flag"));
        self.value(name).map(|text| text.parse().map_err(|_| bad(text))).transpose()
    }

    fn word(&mut self, what: &str) -> Result<String, Refusal> {
        self.words
            .pop_front()
            .ok_or_else(|| Refusal(format!("accepts 1 arg(s), received 0: {what}")))
    }

    fn named(&self) -> Result<String, Refusal> {
        self.value("--name")
            .map(str::to_owned)
            .ok_or_else(|| Refusal("required flag(s) \"name\" not set".into()))
    }

    fn backend(&self) -> Backend {
        if self.has("--fc") { Backend::new(Backend::FIRECRACKER) } else { Backend::default() }
    }
}

pub(super) fn parse(argv: &[String]) -> Result<Args, Refusal> {
    let mut line = Line::read(argv)?;
    let group = line.word("a command")?;
    let verb = line.word("a command")?;
    let verb = match (group.as_str(), verb.as_str()) {
        ("vm", "run") => run(&mut line)?,
        ("vm", "clone") => clone(&mut line)?,
        ("vm", "inspect") => Verb::Inspect { vm: line.word("VM")? },
        ("vm", "list") => Verb::List,
        ("vm", "start") => Verb::Start { vm: line.word("VM")? },
        ("vm", "stop") => Verb::Stop { vm: line.word("VM")? },
        ("vm", "rm") => Verb::Remove { force: line.has("--force"), vm: line.word("VM")? },
        ("vm", "net") => {
            let nics = line.number("--nics")?.unwrap_or(1);
            Verb::Net { nics, vm: line.word("VM")? }
        }
        ("vm", "exec") if line.has("--help") => Verb::ExecHelp,
        ("vm", "exec") => exec(&mut line)?,
        ("vm", "logs") => Verb::Logs {
            tail: line.number("--tail")?,
            follow: line.has("--follow") || line.has("-f"),
            vm: line.word("VM")?,
        },
        ("vm", "status") => Verb::Events,
        ("snapshot", "save") => Verb::Save { name: line.named()?, vm: line.word("VM")? },
        ("snapshot", "inspect") => Verb::Snapshot { name: line.word("SNAPSHOT")? },
        ("snapshot", "list") => Verb::Snapshots,
        ("snapshot", "rm") => Verb::RemoveSnapshot { name: line.word("SNAPSHOT")? },
        ("snapshot", "import") => Verb::Import { name: line.named()? },
        ("snapshot", "export") => Verb::Export { name: line.word("SNAPSHOT")? },
        ("image", "pull") => Verb::Pull { image: line.word("IMAGE")? },
        ("image", "inspect") => Verb::Image { image: line.word("IMAGE")? },
        ("image", "list") => Verb::Images,
        ("image", "import") => Verb::ImageImport { name: line.word("NAME")? },
        _ => return Err(Refusal(format!("unknown command \"{group} {verb}\" for \"cocoon\""))),
    };
    Ok(Args { verb })
}

fn run(line: &mut Line) -> Result<Verb, Refusal> {
    Ok(Verb::Run(RunOptions {
        name: line.named()?,
        cpus: line.number("--cpu")?,
        memory: line.size("--memory")?,
        storage: line.value("--storage").map(str::to_owned),
        network: line.value("--network").map(str::to_owned),
        windows: line.has("--windows"),
        backend: line.backend(),
        no_direct_io: line.has("--no-direct-io"),
        image: line.word("IMAGE")?,
    }))
}

fn clone(line: &mut Line) -> Result<Verb, Refusal> {
    let folder = line.value("--from-dir").map(PathBuf::from);
    let from = match (folder, line.words.pop_front()) {
        (Some(folder), None) => CloneFrom::Folder(folder),
        (None, Some(name)) => CloneFrom::Snapshot(name),
        _ => return Err(Refusal("give either SNAPSHOT or --from-dir".into())),
    };
    Ok(Verb::Clone(CloneOptions {
        name: line.named()?,
        from,
        network: line.value("--network").map(str::to_owned),
        backend: line.backend(),
        no_direct_io: line.has("--no-direct-io"),
        pull: line.has("--pull"),
        on_demand: line.has("--on-demand"),
        nics: line.number("--nics")?,
    }))
}

fn exec(line: &mut Line) -> Result<Verb, Refusal> {
    let pairs = line.values.iter().filter(|(flag, _)| flag == "-e" || flag == "--env");
    let env = pairs
        .filter_map(|(_, pair)| pair.split_once('='))
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .collect();
    let vm = line.word("VM")?;
    let argv = std::mem::take(&mut line.rest);
    if argv.is_empty() {
        return Err(Refusal("exec: no command given".into()));
    }
    Ok(Verb::Exec { vm, env, argv })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verb(line: &str) -> Result<Verb, Refusal> {
        let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
        parse(&argv).map(|args| args.verb)
    }

    #[test]
    fn command_lines_are_understood() {
        assert_eq!(verb("vm rm --force x"), Ok(Verb::Remove { vm: "x".into(), force: true }));
        assert_eq!(verb("snapshot export s -o -"), Ok(Verb::Export { name: "s".into() }));
        assert_eq!(verb("vm net --nics 0 x"), Ok(Verb::Net { vm: "x".into(), nics: 0 }));
        let Ok(Verb::Run(options)) =
            verb("vm run --output json --name n --cpu 2 --memory 2G --fc img")
        else {
            panic!()
        };
        assert_eq!(
            (options.cpus, options.memory, options.image.as_str()),
            (Some(2), Some(2 << 30), "img")
        );
        assert!(options.backend.is_firecracker());
        let Ok(Verb::Exec { env, argv, .. }) = verb("vm exec -i -e A=1 x -- sh -c ls") else {
            panic!()
        };
        assert_eq!((env.len(), argv.len()), (1, 3));
    }

    #[test]
    fn wrong_ones_are_refused() {
        for line in [
            "vm",
            "vm fly x",
            "vm inspect",
            "vm run img",
            "vm clone --name n",
            "vm clone --name n --from-dir /d s",
            "vm exec x --",
            "vm run --name",
        ] {
            assert!(verb(line).is_err(), "{line}");
        }
    }
}
