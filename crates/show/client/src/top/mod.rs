//! `roost top`: the terminal view of a service that runs elsewhere.
//!
//! Three tasks keep what is [known](known::Known) up to date: one [hears](hear) the events, one [asks](ask) for the lists and for what is opened, one
//! carries out orders. The view only reads what is known, so that it never waits for the service.

mod args;
mod ask;
mod events;
mod hear;
mod known;
mod remote;

use std::io::{IsTerminal as _, stdin, stdout};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, bail};
use tokio::task::JoinSet;

pub use self::args::Top;

use self::known::Known;
use self::remote::Remote;
use crate::ask::{Client, Surroundings};
use crate::interruption::interruption;
use crate::output::say;
use crate::terminal::{self, Origin as _};

impl Top {
    /// Whether it takes the terminal for itself.
    pub fn is_live(&self) -> bool {
        has_terminal() && !self.once
    }
}

fn has_terminal() -> bool {
    stdout().is_terminal() && stdin().is_terminal()
}

pub async fn run(args: Top, surroundings: &dyn Surroundings) -> anyhow::Result<()> {
    if !has_terminal() && !args.once {
        bail!(
            "`roost top` needs a terminal; `roost top --once` prints one frame as text, `roost status` the same as lines"
        );
    }
    let client = Client::find(args.reach(), surroundings)?;
    // The first answer must come: after it, a service that cannot be heard is shown as that.
    let known = Arc::new(Known::new(ask::everything(&client).await?));
    let mut remote = Remote::new(client.clone(), Arc::clone(&known));
    if args.once {
        let (width, height) = size();
        say(&terminal::print_once(&remote.look(None), width, height));
        return Ok(());
    }
    let mut interrupted = pin!(interruption()?);
    let mut tasks = JoinSet::new();
    tasks.spawn(hear::keep_hearing(client.clone(), Arc::clone(&known)));
    tasks.spawn(ask::keep_asking(client, known));
    let is_over = Arc::new(AtomicBool::new(false));
    let seen_by_view = Arc::clone(&is_over);
    let mut watching = tokio::task::spawn_blocking(move || {
        terminal::watch(&mut remote, |_| seen_by_view.load(Ordering::Relaxed))
    });
    let watched = tokio::select! {
        biased;
        () = &mut interrupted => {
            is_over.store(true, Ordering::Relaxed);
            // The view gives the terminal back first.
            watching.await
        }
        watched = &mut watching => watched,
    };
    watched.context("the view")?.context("the terminal")
}

/// Of the frame that is printed: the terminal's, or what the surroundings say, or what every terminal has.
fn size() -> (u16, u16) {
    let variable = |name| std::env::var(name).ok().and_then(|value| value.parse::<u16>().ok());
    let terminal = terminal_size::terminal_size().filter(|_| stdout().is_terminal());
    let (width, height) = terminal.map_or((80, 24), |(width, height)| (width.0, height.0));
    (
        variable("COLUMNS").unwrap_or(width).clamp(20, 400),
        variable("LINES").unwrap_or(height).clamp(10, 200),
    )
}
