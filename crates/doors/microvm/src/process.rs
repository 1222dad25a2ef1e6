//! The end of a process that is not a child.

use std::io;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Returns when the process has ended, within moments, without asking again and again. An error if there is none, or it cannot be followed here.
pub async fn process_ended(pid: u32) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let process = pidfd_open(pid, PidfdFlags::NONBLOCK)?;
    #[expect(
        deprecated,
        reason = "what replaces it is unsafe, and this descriptor stays ours until the end"
    )]
    let process = AsyncFd::with_interest(process, Interest::READABLE)?;
    process.readable().await.map(drop)
}

#[cfg(test)]
mod tests {
    use tokio::process::Command;

    use super::*;

    #[tokio::test]
    async fn the_end_of_a_process_is_seen() {
        let mut child = Command::new("sleep").arg("600").kill_on_drop(true).spawn().unwrap();
        let ended = tokio::spawn(process_ended(child.id().unwrap()));
        tokio::task::yield_now().await;
        assert!(!ended.is_finished());
        child.start_kill().unwrap();
        ended.await.unwrap().unwrap();
        child.wait().await.unwrap();
    }

    #[tokio::test]
    async fn a_process_that_is_not_there_is_an_error() {
        assert!(process_ended(0).await.is_err());
        let mut child = Command::new("true").spawn().unwrap();
        let id = child.id().unwrap();
        child.wait().await.unwrap();
        assert!(process_ended(id).await.is_err());
    }
}
