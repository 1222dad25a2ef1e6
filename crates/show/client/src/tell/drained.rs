use std::pin::pin;
use std::time::Duration;

use anyhow::bail;
use roost_views::{Overview, Part, Spawning, SteeringView};
use tokio::time::sleep;

use crate::ask::Client;
use crate::interruption::interruption;
use crate::output::say;

const LOOK: Duration = Duration::from_secs(1);

/// Until no worker is left. Somebody else may end the drain; then there is nothing to wait for.
pub(super) async fn wait(client: &Client, is_quiet: bool) -> anyhow::Result<()> {
    let mut interrupted = pin!(interruption()?);
    let mut before = None;
    loop {
        let overview = client.read::<Overview>(&["overview"], &[]).await?;
        let at_work = overview.lanes.iter().filter(|lane| lane.part != Part::Leaving);
        let workers = overview.capacity.get("workers").map(|it| it.used + it.reserved);
        let left = workers.unwrap_or_else(|| at_work.map(|lane| lane.count).sum());
        if before.replace(left) != Some(left) && !is_quiet {
            say(&match left {
                0 => "no worker is left\n".to_owned(),
                1 => "1 worker is left\n".to_owned(),
                left => format!("{left} workers are left\n"),
            });
        }
        if left == 0 {
            return Ok(());
        }
        if client.read::<SteeringView>(&["steering"], &[]).await?.spawning == Spawning::Open {
            bail!("somebody has resumed spawning; {left} workers are there");
        }
        tokio::select! {
            biased;
            () = &mut interrupted => bail!("{left} workers are left; the service goes on draining"),
            () = sleep(LOOK) => {}
        }
    }
}
