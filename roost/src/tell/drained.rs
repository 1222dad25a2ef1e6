use std::pin::pin;
use std::time::Duration;

use anyhow::bail;
use roost_console::views::{Overview, Spawning, SteeringView};
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
        let workers = client.read::<Overview>(&["overview"], &[]).await?.capacity.workers;
        let left = workers.used + workers.reserved;
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
