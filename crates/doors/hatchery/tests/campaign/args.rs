//! The command line, which is also that of every other test of the workspace.

use roost_hatchery::planted::Bug;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Args {
    pub(crate) task: Task,
    pub(crate) bug: Option<Bug>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// The seeds that are always run, and some that were never run before.
    Suite {
        from: u64,
    },
    Seeds {
        from: u64,
        number: u64,
    },
    One {
        seed: u64,
    },
    /// Each seed twice.
    Replays {
        from: u64,
        seeds: u64,
    },
    /// A filter asked for other tests.
    Nothing,
}

impl Args {
    pub(crate) fn parse(
        args: impl Iterator<Item = String>,
        seeds_variable: Option<&str>,
    ) -> Result<Self, String> {
        let (mut seeds, mut from, mut one, mut bug, mut replays) = (None, 1, None, None, None);
        let mut is_for_us = true;
        let mut args = args.peekable();
        while let Some(arg) = args.next() {
            let mut number = |name: &str| -> Result<u64, String> {
                let value = args.next().ok_or_else(|| format!("{name} needs a number"))?;
                value.parse().map_err(|_| format!("{name} needs a number, not {value:?}"))
            };
            match arg.as_str() {
                "--seeds" => seeds = Some(number("--seeds")?),
                "--replays" => replays = Some(number("--replays")?),
                "--from" => from = number("--from")?,
                "--seed" => one = Some(number("--seed")?),
                "--planted" => {
                    let name = args.next().ok_or("--planted needs the name of a bug")?;
                    let named = Bug::ALL.into_iter().find(|bug| format!("{bug:?}") == name);
                    bug = Some(named.ok_or_else(|| {
                        format!("there is no bug {name:?}; there are {:?}", Bug::ALL)
                    })?);
                }
                // What the usual test harness takes and what does not concern this one.
                "--test-threads" | "--skip" | "--color" | "--format" | "-Z" => drop(args.next()),
                "--list" | "--ignored" => is_for_us = false,
                flag if flag.starts_with('-') => {}
                filter => is_for_us &= "campaign".contains(filter),
            }
        }
        if seeds.is_none()
            && let Some(value) = seeds_variable
        {
            let number = value.parse().map_err(|_| format!("ROOST_SEEDS={value} is no number"))?;
            seeds = Some(number);
        }
        let task = match (is_for_us, one, replays, seeds) {
            (false, ..) => Task::Nothing,
            (true, Some(seed), ..) => Task::One { seed },
            (true, None, Some(seeds), _) => Task::Replays { from, seeds },
            (true, None, None, Some(number)) => Task::Seeds { from, number },
            (true, None, None, None) => Task::Suite { from },
        };
        Ok(Self { task, bug })
    }
}
