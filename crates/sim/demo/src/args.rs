use std::fmt;
use std::io::{IsTerminal as _, stdout};
use std::net::SocketAddr;

use clap::Parser;

#[derive(Debug, Parser)]
pub struct Demo {
    /// Which door to show: CI jobs, VirtualMachine objects, nodes of HyperShift, or pods; or all of them at work on one vCenter. The last three alone run in real time, without the options below
    #[arg(value_enum, default_value_t = DemoDoor::All, value_name = "DOOR")]
    pub(crate) door: DemoDoor,

    /// Where all chance comes from: the same seed is the same run, at any speed [default: a new one, printed]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// Jobs that arrive, in waves; a few of them cannot be served and are refused
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=2_000), value_name = "N")]
    pub(crate) jobs: u32,

    /// Simulated seconds per second; 1 is real time, 0 or `max` is as fast as it goes
    #[arg(long, default_value = "25", value_name = "X")]
    pub(crate) speed: Speed,

    /// Let both servers misbehave: lost sessions, a vCenter that restarts, failed clones, calls that hang, closed websockets, bursts of errors
    #[arg(long)]
    pub(crate) chaos: bool,

    /// Stay after the end, to look around in the web page, until Ctrl-C
    #[arg(long)]
    pub(crate) keep: bool,

    /// Print lines, also on a terminal
    #[arg(long)]
    pub(crate) plain: bool,

    /// Address and port of the web page; port 0 picks a free one [default: 127.0.0.1:8086, or another port if that is taken]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) listen: Option<SocketAddr>,

    /// Print the demo's own configuration file, and do nothing else
    #[arg(long)]
    pub(crate) print_config: bool,
}

impl Demo {
    /// Whether a view has the terminal, into which nothing else may be written.
    pub fn has_terminal(&self) -> bool {
        !matches!(self.door, DemoDoor::All | DemoDoor::Hatchery) || self.is_live()
    }

    pub(crate) fn is_live(&self) -> bool {
        !self.plain && stdout().is_terminal()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DemoDoor {
    All,
    Hatchery,
    VmOperator,
    AgentForge,
    Kubelet,
}

/// How fast simulated time goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Speed {
    /// So many simulated seconds per second.
    Times(f64),
    Max,
}

/// Beyond it the machine is the limit, and `max` says so.
const FASTEST: f64 = 10_000.0;

/// A second of the simulation then takes under two minutes: slow enough for anybody.
const SLOWEST: f64 = 0.01;

impl std::str::FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("max") {
            return Ok(Self::Max);
        }
        let times: f64 = text.parse().map_err(|_| "not a number, nor `max`".to_owned())?;
        if times == 0.0 {
            return Ok(Self::Max);
        }
        if (SLOWEST..=FASTEST).contains(&times) {
            Ok(Self::Times(times))
        } else {
            Err(format!("not from {SLOWEST} to {FASTEST}, nor 0 or `max`"))
        }
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Times(times) => write!(f, "{times}x"),
            Self::Max => f.write_str("max"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_a_factor_or_as_fast_as_it_goes() {
        for (text, wanted) in [
            ("1", Some(Speed::Times(1.0))),
            ("0.5", Some(Speed::Times(0.5))),
            ("0", Some(Speed::Max)),
            ("MAX", Some(Speed::Max)),
            ("-1", None),
            ("1e9", None),
            ("NaN", None),
            ("inf", None),
            ("fast", None),
        ] {
            assert_eq!(text.parse::<Speed>().ok(), wanted, "{text}");
        }
    }
}
