//! One process works at a time: the one that holds the Lease.
//!
//! The rules are those of client-go, so that Roost and the program it takes over from exclude each other. A
//! candidate takes the lease when it has not seen it renewed for its whole duration, measured by the
//! candidate's own clock from when it saw the last change: clocks of two machines are never compared. A leader stops work
//! when it could not renew for `renew_deadline`, counted from when its last successful renewal was *sent*, which leaves the rest of the
//! duration as a margin. A lease that is given up names nobody and is taken at once.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use roost_clock::{Clock, Random};
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, info, warn};

/// Which lease, held how long.
#[derive(Debug, Clone)]
pub struct LeaseSettings {
    pub namespace: String,
    pub name: String,
    /// Who we are: unique among the replicas, such as the pod's name and a random part.
    pub identity: String,
    pub duration: Duration,
    pub renew_deadline: Duration,
    pub retry_period: Duration,
}

impl LeaseSettings {
    /// With the times that client-go has: 15 s, 10 s and 2 s.
    pub fn new(namespace: &str, name: &str, identity: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: identity.to_owned(),
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

/// A lease that we try for, hold, and give up.
#[derive(Debug)]
pub(crate) struct Candidate {
    settings: LeaseSettings,
    leases: LeaseApi,
    clock: Arc<dyn Clock>,
    random: Random,
    /// The lease as last seen, and when we saw that it had changed.
    seen: Option<(Lease, Instant)>,
}

struct LeaseApi(Api<Lease>);

impl std::fmt::Debug for LeaseApi {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("LeaseApi")
    }
}

/// What a look at the lease asks a candidate to do. Pure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Create,
    /// It is ours already, from before a restart under the same name or after a lost answer.
    Renew,
    Take,
    Wait,
}

fn step(lease: Option<&Lease>, unchanged_for: Duration, us: &str) -> Step {
    let Some(spec) = lease.map(|lease| lease.spec.clone().unwrap_or_default()) else {
        return Step::Create;
    };
    let holder = spec.holder_identity.as_deref().unwrap_or_default();
    let duration = u64::try_from(spec.lease_duration_seconds.unwrap_or(0)).unwrap_or(0);
    match holder {
        "" => Step::Take,
        holder if holder == us => Step::Renew,
        _ if unchanged_for >= Duration::from_secs(duration) => Step::Take,
        _ => Step::Wait,
    }
}

impl Candidate {
    pub(crate) fn new(
        client: Client,
        settings: LeaseSettings,
        clock: Arc<dyn Clock>,
        random: &Random,
    ) -> Self {
        let leases = LeaseApi(Api::namespaced(client, &settings.namespace));
        let random = random.fork(&settings.identity);
        Self { settings, leases, clock, random, seen: None }
    }

    pub(crate) fn name(&self) -> &str {
        &self.settings.name
    }

    /// Returns when we hold the lease: until when, unless it is renewed.
    pub(crate) async fn acquire(&mut self) -> Instant {
        let mut is_waiting = false;
        loop {
            let sent = Instant::now();
            match self.try_once().await {
                Ok(true) => {
                    info!(lease = %self.settings.name, "{} holds lease {}", self.settings.identity, self.settings.name);
                    return sent + self.settings.renew_deadline;
                }
                Ok(false) if !is_waiting => {
                    is_waiting = true;
                    let holder = self.holder().unwrap_or_default().to_owned();
                    info!(lease = %self.settings.name, %holder, "lease {} is held by {holder}", self.settings.name);
                }
                Ok(false) => {}
                Err(error) => {
                    warn!(lease = %self.settings.name, %error, "lease {} could not be read or taken", self.settings.name);
                }
            }
            // Twice as often as the holder renews, so that a lease that is given up is taken within one period. Spread, so that
            // candidates that wait for the same moment do not collide for ever.
            let period = self.settings.retry_period / 2;
            sleep(self.random.duration(period, period.mul_f64(1.2))).await;
        }
    }

    /// Keeps renewing a lease that is held until `until`; returns when it may be lost.
    pub(crate) async fn hold(&mut self, mut until: Instant) {
        loop {
            sleep(self.settings.retry_period.min(until.saturating_duration_since(Instant::now())))
                .await;
            let sent = Instant::now();
            let left = until.saturating_duration_since(sent);
            if left.is_zero() {
                warn!(lease = %self.settings.name, "lease {} could not be renewed in time", self.settings.name);
                return;
            }
            match timeout(left, self.try_once()).await {
                Ok(Ok(true)) => until = sent + self.settings.renew_deadline,
                Ok(Ok(false)) => {
                    let holder = self.holder().unwrap_or_default();
                    warn!(lease = %self.settings.name, holder, "lease {} was taken by {holder}", self.settings.name);
                    return;
                }
                Ok(Err(error)) => {
                    debug!(lease = %self.settings.name, %error, "lease {} was not renewed", self.settings.name);
                }
                Err(_) => {}
            }
        }
    }

    /// Names nobody as holder, so that the next one need not wait.
    pub(crate) async fn release(&mut self) {
        let Some((lease, _)) = &self.seen else { return };
        if self.holder() != Some(&self.settings.identity) {
            return;
        }
        let mut lease = lease.clone();
        let now = MicroTime(self.clock.now());
        if let Some(spec) = &mut lease.spec {
            spec.holder_identity = Some(String::new());
            spec.lease_duration_seconds = Some(1);
            (spec.acquire_time, spec.renew_time) = (Some(now.clone()), Some(now));
        }
        let (name, params) = (&self.settings.name, PostParams::default());
        let replaced = self.leases.0.replace(name, &params, &lease);
        match timeout(self.settings.retry_period, replaced).await {
            Ok(Ok(_)) => info!(lease = %name, "lease {name} is given up"),
            Ok(Err(error)) => warn!(lease = %name, %error, "lease {name} was not given up"),
            Err(_) => warn!(lease = %name, "lease {name} was not given up in time"),
        }
        self.seen = None;
    }

    fn holder(&self) -> Option<&str> {
        self.seen.as_ref()?.0.spec.as_ref()?.holder_identity.as_deref()
    }

    /// True if we hold the lease afterwards.
    async fn try_once(&mut self) -> kube::Result<bool> {
        // A leader writes on what it wrote last; only after a conflict does it have to look.
        if self.holder() == Some(&self.settings.identity)
            && let Some((lease, _)) = self.seen.clone()
        {
            match self.write(&lease, false).await {
                Err(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => {}
                answer => return answer.map(|()| true),
            }
        }
        let found = self.leases.0.get_opt(&self.settings.name).await?;
        let now = Instant::now();
        let is_changed = match (&self.seen, &found) {
            (Some((seen, _)), Some(found)) => seen.spec != found.spec,
            _ => true,
        };
        let since = self.seen.as_ref().map_or(now, |(_, since)| *since);
        let since = if is_changed { now } else { since };
        self.seen = found.clone().map(|lease| (lease, since));
        let step =
            step(found.as_ref(), now.saturating_duration_since(since), &self.settings.identity);
        let outcome = match (step, found) {
            (Step::Wait, _) => return Ok(false),
            (Step::Create, _) | (_, None) => self.create().await,
            (Step::Renew, Some(lease)) => self.write(&lease, false).await,
            (Step::Take, Some(lease)) => self.write(&lease, true).await,
        };
        match outcome {
            Ok(()) => Ok(true),
            // Somebody else was faster.
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    async fn create(&mut self) -> kube::Result<()> {
        let metadata =
            ObjectMeta { name: Some(self.settings.name.clone()), ..ObjectMeta::default() };
        let spec = self.spec(&LeaseSpec::default(), true, self.clock.now());
        let lease =
            Lease { metadata, spec: Some(LeaseSpec { lease_transitions: Some(0), ..spec }) };
        let lease = self.leases.0.create(&PostParams::default(), &lease).await?;
        self.seen = Some((lease, Instant::now()));
        Ok(())
    }

    /// Replaces the lease on top of the version that was seen, so of two who try only one succeeds.
    async fn write(&mut self, lease: &Lease, is_new_holder: bool) -> kube::Result<()> {
        let spec =
            self.spec(&lease.spec.clone().unwrap_or_default(), is_new_holder, self.clock.now());
        let lease = Lease { spec: Some(spec), ..lease.clone() };
        let name = &self.settings.name;
        let lease = self.leases.0.replace(name, &PostParams::default(), &lease).await?;
        self.seen = Some((lease, Instant::now()));
        Ok(())
    }

    fn spec(&self, old: &LeaseSpec, is_new_holder: bool, now: Timestamp) -> LeaseSpec {
        let transitions = old.lease_transitions.unwrap_or(0);
        LeaseSpec {
            holder_identity: Some(self.settings.identity.clone()),
            lease_duration_seconds: i32::try_from(self.settings.duration.as_secs()).ok(),
            acquire_time: if is_new_holder {
                Some(MicroTime(now))
            } else {
                old.acquire_time.clone()
            },
            renew_time: Some(MicroTime(now)),
            lease_transitions: Some(if is_new_holder { transitions + 1 } else { transitions }),
            ..old.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(holder: &str, seconds: i32) -> Lease {
        let spec = LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: Some(seconds),
            ..LeaseSpec::default()
        };
        Lease { spec: Some(spec), ..Lease::default() }
    }

    #[test]
    fn a_candidate_waits_for_the_whole_duration() {
        let secs = Duration::from_secs;
        for (case, lease, unchanged_for, expected) in [
            ("none", None, secs(0), Step::Create),
            ("free", Some(lease("", 1)), secs(0), Step::Take),
            ("ours", Some(lease("us", 15)), secs(99), Step::Renew),
            ("held", Some(lease("them", 15)), secs(14), Step::Wait),
            ("expired", Some(lease("them", 15)), secs(15), Step::Take),
            ("broken", Some(Lease::default()), secs(0), Step::Take),
        ] {
            assert_eq!(step(lease.as_ref(), unchanged_for, "us"), expected, "{case}");
        }
    }
}
