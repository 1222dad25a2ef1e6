//! Commands that tell a running service what to do.
//!
//! The same actions as the web page's, over the same API: each needs the token, is entered in the service's journal, and is answered in words.

mod args;
mod drained;
mod request;

use anyhow::Context as _;
use roost_views::foreign::escaped_json;

pub use self::args::Tell;
pub(crate) use self::request::tell;

use crate::ask::{Client, Surroundings, clean};
use crate::output::say;

pub async fn run(command: Tell, surroundings: &dyn Surroundings) -> anyhow::Result<()> {
    let telling = command.telling();
    let client = Client::find(&telling.reach, surroundings)?;
    let done = tell(&client, &command.action(), telling.reason.as_deref()).await?;
    if telling.json {
        let text = serde_json::to_string_pretty(&done).context("writing JSON")?;
        say(&format!("{}\n", escaped_json(&text)));
    } else {
        say(&format!("{}\n", clean(&done.words)));
    }
    if command.waits() {
        drained::wait(&client, telling.json).await?;
    }
    Ok(())
}
