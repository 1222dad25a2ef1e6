use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::sleep;

use super::ask::decisions;
use super::events::Events;
use super::known::Known;
use crate::ask::Client;

/// Soon enough for somebody who watches a restart, seldom enough for a service that is down over night.
const TRY_AGAIN: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));

/// Hears what happens, and tries again whenever that ends. Does not end.
pub(super) async fn keep_hearing(client: Client, known: Arc<Known>) {
    let mut pause = TRY_AGAIN.0;
    loop {
        let mut has_heard = false;
        let ended = hear(&client, &known, &mut has_heard).await;
        // What went wrong in the end; the rest of it is known to whoever sees where they look.
        let why = ended.err().map(|error| error.root_cause().to_string());
        known.facts().unheard(why.unwrap_or_else(|| "the service has stopped".to_owned()));
        pause = if has_heard { TRY_AGAIN.0 } else { (pause * 2).min(TRY_AGAIN.1) };
        sleep(pause).await;
    }
}

/// Until the service ends it.
async fn hear(client: &Client, known: &Known, has_heard: &mut bool) -> anyhow::Result<()> {
    // Anew each time: a service that was restarted counts from one again.
    let journal = decisions(client).await?;
    let last = journal.last().map(|decision| decision.seq);
    let mut listening = client.listen(last).await?;
    known.facts().decisions = journal;
    let mut events = Events::default();
    while let Some(piece) = listening.next().await? {
        for event in events.feed(&piece)? {
            *has_heard = true;
            match event.name.as_str() {
                "overview" => {
                    let overview = serde_json::from_str(&event.data).context("an overview")?;
                    known.facts().heard(overview);
                }
                "decision" => {
                    let decision = serde_json::from_str(&event.data).context("a decision")?;
                    known.facts().decided(decision);
                }
                // A newer service may tell of more.
                _ => {}
            }
        }
    }
    Ok(())
}
