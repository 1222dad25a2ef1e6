use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};

/// Ctrl-C, or the signal that service managers send. Listens from now on, so that neither is missed before it is awaited.
pub fn interruption() -> anyhow::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt()).context("listening for Ctrl-C")?;
    let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
