use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use roost_cds::Secret;

#[derive(Debug, Parser)]
pub struct SimCds {
    /// Address and port to listen on; port 0 picks a free one
    #[arg(long, default_value = "127.0.0.1:8081", value_name = "ADDR:PORT")]
    pub(crate) listen: SocketAddr,

    /// Name of the hatchery that may sign in
    #[arg(long, default_value = "roost", value_name = "NAME")]
    pub(crate) hatchery: String,

    /// Its V1 consumer token [default: a demo value, printed]
    #[arg(long, value_name = "TOKEN", env = "ROOST_SIM_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<Secret>,

    /// Its V2 hatchery token [default: a demo value, printed]
    #[arg(long, value_name = "TOKEN", env = "ROOST_SIM_TOKEN_V2", hide_env_values = true)]
    pub(crate) token_v2: Option<Secret>,

    /// The region for which it may start workers
    #[arg(long, default_value = "default", value_name = "REGION")]
    pub(crate) region: String,

    /// Template that a V2 worker model names as its image; give it again for more models
    #[arg(long = "template", default_value = "debian12", value_name = "NAME")]
    pub(crate) templates: Vec<String>,

    /// Jobs that arrive by themselves, in waves; the control endpoint can queue others
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) jobs: usize,

    /// Seconds from one wave to the next
    #[arg(long, default_value = "10", value_parser = seconds, value_name = "SECS")]
    pub(crate) every: Duration,

    /// Seconds that the work of such a job takes, give or take a half
    #[arg(long, default_value = "20", value_parser = seconds, value_name = "SECS")]
    pub(crate) work: Duration,

    /// Flavor that such a job may ask for; give it again for more, one of which each job picks
    #[arg(long = "flavor", value_name = "NAME")]
    pub(crate) flavors: Vec<String>,

    /// How likely such a job is one of V1, from 0 to 1
    #[arg(long, default_value = "0.25", value_parser = probability, value_name = "P")]
    pub(crate) v1_share: f64,

    /// Faults by chance: how likely each kind meets a request or an event, from 0 to 1
    #[arg(long, default_value = "0", value_parser = probability, value_name = "P")]
    pub(crate) chaos: f64,

    /// Seconds after which a V2 job that a hatchery took and no worker began waits again
    #[arg(long, default_value = "600", value_parser = seconds, value_name = "SECS")]
    pub(crate) scheduling_timeout: Duration,

    /// Seconds for which a V1 job stays booked
    #[arg(long, default_value = "120", value_parser = seconds, value_name = "SECS")]
    pub(crate) booking: Duration,

    /// Where all chance comes from: the same seed and the same calls are the same run [default: a new one, printed]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// Write what a hatchery needs to sign in into this file: its half of a configuration
    #[arg(long, value_name = "FILE")]
    pub(crate) write_config: Option<PathBuf>,

    /// Serve the control endpoint below /roost/control/; whoever reaches the port can use it
    ///
    /// GET summary, jobs, jobs/ID, workers, double_workers, calls; POST jobs, jobs/ID/stop, workers/NAME/disable, faults, down, up,
    /// websockets/close; DELETE faults, sessions. To queue a job: {"protocol": "v2", "model": "...", "flavor": "small",
    /// "takes_ms": 500, "outcome": "success"}. The README of crates/sim/cds-sim has the rest.
    #[arg(long)]
    pub(crate) control: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let secs: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(secs).map_err(|error| error.to_string())
}

fn probability(text: &str) -> Result<f64, String> {
    let is_one = |value: &f64| (0.0..=1.0).contains(value);
    text.parse().ok().filter(is_one).ok_or_else(|| "not a number from 0 to 1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_their_bounds() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for text in ["", "1m", "-1", "inf", "NaN"] {
            assert!(seconds(text).is_err(), "{text}");
        }
        assert_eq!(probability("0.05"), Ok(0.05));
        for text in ["", "5%", "-0.1", "1.1", "NaN"] {
            assert!(probability(text).is_err(), "{text}");
        }
    }
}
