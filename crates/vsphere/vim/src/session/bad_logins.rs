//! How often a refused login may be tried: never more than three times in a row with the same credentials, with a pause in
//! between, because servers lock accounts.

use std::collections::VecDeque;
use std::time::Duration;

use roost_supervise::Backoff;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::{CallError, Credentials};

const MOST_IN_A_ROW: u32 = 3;

/// A source that turns between old passwords must not get three tries for each turn, so refused ones are remembered.
const REMEMBERED: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct BadLogins {
    in_a_row: u32,
    paused_until: Option<Instant>,
    refused: VecDeque<[u8; 32]>,
}

impl BadLogins {
    /// Whether these credentials may be sent now.
    pub(crate) fn check(&self, credentials: &Credentials, now: Instant) -> Result<(), CallError> {
        if !self.refused.contains(&digest(credentials)) {
            return Ok(());
        }
        if self.in_a_row >= MOST_IN_A_ROW {
            return Err(self.stopped(credentials));
        }
        match self.paused_until {
            Some(until) if until > now => Err(self.paused(credentials, until - now)),
            _ => Ok(()),
        }
    }

    /// Takes note of a refusal and says what it means for all who wait.
    pub(crate) fn refused(
        &mut self,
        credentials: &Credentials,
        now: Instant,
        pause: Duration,
    ) -> CallError {
        let digest = digest(credentials);
        if !self.refused.contains(&digest) {
            self.in_a_row = 0;
            self.refused.push_back(digest);
            if self.refused.len() > REMEMBERED {
                self.refused.pop_front();
            }
        }
        self.in_a_row += 1;
        if self.in_a_row >= MOST_IN_A_ROW {
            return self.stopped(credentials);
        }
        let pause = Backoff::new(pause, Duration::MAX).pause(self.in_a_row);
        self.paused_until = Some(now + pause);
        self.paused(credentials, pause)
    }

    pub(crate) fn accepted(&mut self) {
        *self = Self::default();
    }

    fn stopped(&self, credentials: &Credentials) -> CallError {
        CallError::BadCredentials { user: credentials.user.clone(), attempts: self.in_a_row }
    }

    fn paused(&self, credentials: &Credentials, retry_in: Duration) -> CallError {
        CallError::LoginPaused { user: credentials.user.clone(), attempts: self.in_a_row, retry_in }
    }
}

/// So that nothing here holds a password.
fn digest(credentials: &Credentials) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update((credentials.user.len() as u64).to_be_bytes());
    hash.update(&credentials.user);
    hash.update(credentials.password().0);
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_mins(1);

    fn password(text: &str) -> Credentials {
        Credentials::new("roost", text)
    }

    #[tokio::test(start_paused = true)]
    async fn three_refusals_stop_until_the_credentials_change() {
        let (mut bad, start) = (BadLogins::default(), Instant::now());
        let old = password("old");
        assert!(bad.check(&old, start).is_ok());
        assert!(matches!(
            bad.refused(&old, start, PAUSE),
            CallError::LoginPaused { attempts: 1, .. }
        ));
        assert!(
            matches!(bad.check(&old, start), Err(CallError::LoginPaused { retry_in, .. }) if retry_in == PAUSE)
        );
        let second = start + PAUSE;
        assert!(bad.check(&old, second).is_ok());
        assert!(
            matches!(bad.refused(&old, second, PAUSE), CallError::LoginPaused { attempts: 2, retry_in, .. } if retry_in == PAUSE * 2)
        );
        let third = second + PAUSE * 2;
        assert!(bad.check(&old, third).is_ok());
        assert!(matches!(
            bad.refused(&old, third, PAUSE),
            CallError::BadCredentials { attempts: 3, .. }
        ));
        let much_later = third + Duration::from_hours(24);
        assert!(matches!(bad.check(&old, much_later), Err(CallError::BadCredentials { .. })));
        assert!(bad.check(&password("new"), third).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn turning_back_to_refused_credentials_gives_no_new_tries() {
        let (mut bad, now) = (BadLogins::default(), Instant::now());
        bad.refused(&password("a"), now, PAUSE);
        bad.refused(&password("b"), now, PAUSE);
        assert!(bad.check(&password("a"), now).is_err());
        assert!(bad.check(&password("b"), now).is_err());
        bad.refused(&password("b"), now, PAUSE);
        assert!(matches!(
            bad.refused(&password("a"), now, PAUSE),
            CallError::BadCredentials { .. }
        ));
        bad.accepted();
        assert!(bad.check(&password("a"), now).is_ok());
    }
}
