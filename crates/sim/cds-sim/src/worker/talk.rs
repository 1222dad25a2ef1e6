use std::time::Duration;

use http::StatusCode;
use roost_cds::{Answer, Api, Call, CallError, Secret};
use tokio::time::{self, Instant};

/// A worker does not give up on the API as quickly as a hatchery does: its machine was expensive.
const PATIENCE: Duration = Duration::from_mins(5);
const PAUSE: Duration = Duration::from_secs(5);

/// What a worker says to the API, with its own token.
#[derive(Debug)]
pub(crate) struct Talk {
    pub(crate) api: Api,
    pub(crate) token: Secret,
}

impl Talk {
    /// Makes a call, again and again while the API cannot be reached or is not well. The flag says that an earlier attempt
    /// may have had its effect.
    pub(crate) async fn call(&self, call: &Call) -> (Result<Answer, CallError>, bool) {
        let give_up = Instant::now() + PATIENCE;
        let mut maybe_done = false;
        loop {
            match self.api.call(call, Some(&self.token)).await {
                Err(error) if is_passing(&error) && Instant::now() < give_up => {
                    maybe_done |= error.may_have_happened();
                    time::sleep(PAUSE).await;
                }
                Err(error) => {
                    let done = maybe_done || error.may_have_happened();
                    return (Err(error), done);
                }
                answer => return (answer, maybe_done),
            }
        }
    }
}

fn is_passing(error: &CallError) -> bool {
    match error.status() {
        Some(status) => status.is_server_error() || status == StatusCode::CONFLICT,
        None => true,
    }
}
