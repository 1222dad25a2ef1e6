//! Everything that is waited for has a name and an end.

use std::time::Duration;

use roost_supervise::Chain;
use tokio::time::timeout;

/// For a name server.
pub(super) const NAME: Duration = Duration::from_secs(5);
/// For a connection; one that takes longer is as good as none to a service that calls in seconds.
pub(super) const CONNECT: Duration = Duration::from_secs(4);
pub(super) const HANDSHAKE: Duration = Duration::from_secs(10);
/// For one call, its retries included.
pub(super) const CALL: Duration = Duration::from_secs(15);
/// For all VMs of a datacenter.
pub(super) const INVENTORY: Duration = Duration::from_secs(45);
/// From the first word to a session: three calls in a row.
pub(super) const LOGIN: Duration = Duration::from_mins(1);
/// For a sign-in, which is tried three times.
pub(super) const SIGN_IN: Duration = Duration::from_secs(20);
/// For leaving: a session that is not ended ends by itself.
pub(super) const GOODBYE: Duration = Duration::from_secs(5);
/// For all that is asked in a session, whatever the server does. With all of the above the doctor ends within five minutes.
pub(super) const QUESTIONS: Duration = Duration::from_secs(90);

/// Waits that long and no longer; what did not come, or what failed, is told in one line.
pub(super) async fn within<T, E: Into<anyhow::Error>>(
    limit: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, String> {
    match timeout(limit, work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(told(error)),
        Err(_) => Err(format!("no answer within {} s", limit.as_secs())),
    }
}

/// An error with all of its causes.
pub(super) fn told(error: impl Into<anyhow::Error>) -> String {
    Chain(&*error.into()).to_string()
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_never_answers_is_not_waited_for() {
        let never = pending::<Result<(), std::io::Error>>();
        assert_eq!(within(CALL, never).await, Err("no answer within 15 s".to_owned()));
    }
}
