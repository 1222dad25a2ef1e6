//! Everything that is waited for has a name and an end.

use std::error::Error;
use std::time::Duration;

use roost_supervise::Chain;
use tokio::time::timeout;

/// For a name server.
pub const NAME: Duration = Duration::from_secs(5);
/// For a connection; one that takes longer is as good as none to a service that calls in seconds.
pub const CONNECT: Duration = Duration::from_secs(4);
pub const HANDSHAKE: Duration = Duration::from_secs(10);
/// For one call, its retries included.
pub const CALL: Duration = Duration::from_secs(15);
/// For all VMs of a datacenter.
pub const INVENTORY: Duration = Duration::from_secs(45);
/// From the first word to a session: three calls in a row.
pub const LOGIN: Duration = Duration::from_mins(1);
/// For a sign-in, which is tried three times.
pub const SIGN_IN: Duration = Duration::from_secs(20);
/// For leaving: a session that is not ended ends by itself.
pub const GOODBYE: Duration = Duration::from_secs(5);
/// For all that is asked in a session, whatever the server does. With all of the above the doctor ends within five minutes.
pub const QUESTIONS: Duration = Duration::from_secs(90);

/// Waits that long and no longer; what did not come, or what failed, is told in one line.
pub async fn within<T, E: Error>(
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
pub fn told(error: impl Error) -> String {
    Chain(&error).to_string()
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
