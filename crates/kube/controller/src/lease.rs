//! One process works at a time: the one that holds the Lease.
//!
//! The rules are those of client-go, so that Roost and the program it takes over from exclude each other. A
//! candidate takes the lease when it has not seen it renewed for its whole duration, measured by the
//! candidate's own clock from when it saw the last change: clocks of two machines are never compared. A leader stops work
//! when it could not renew for `renew_deadline`, counted from when its last successful renewal was *sent*, which leaves the rest of the
//! duration as a margin. A lease that is given up names nobody and is taken at once.
//!
//! No request is waited for longer than half of `renew_deadline`, so one that hangs costs neither a leader its lease nor
//! a candidate its turn. A write whose answer comes after the time that it bought is no leadership.

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
            match timeout(self.patience(), self.try_once()).await {
                Ok(Ok(Some(sent))) => {
                    let until = sent + self.settings.renew_deadline;
                    if Instant::now() < until {
                        info!(lease = %self.settings.name, "{} holds lease {}", self.settings.identity, self.settings.name);
                        return until;
                    }
                    warn!(lease = %self.settings.name, "the answer that lease {} is ours came too late", self.settings.name);
                }
                Ok(Ok(None)) if !is_waiting => {
                    is_waiting = true;
                    let holder = self.holder().unwrap_or_default().to_owned();
                    info!(lease = %self.settings.name, %holder, "lease {} is held by {holder}", self.settings.name);
                }
                Ok(Ok(None)) => {}
                Ok(Err(error)) => {
                    warn!(lease = %self.settings.name, %error, "lease {} could not be read or taken", self.settings.name);
                }
                Err(_) => {
                    warn!(lease = %self.settings.name, "no answer about lease {} within {:?}", self.settings.name, self.patience());
                }
            }
            // Twice as often as the holder renews, so that a lease that is given up is taken within one period. Spread, so that
            // candidates that wait for the same moment do not collide for ever. And at the moment at which it runs out.
            let period = self.settings.retry_period / 2;
            let period = self.random.duration(period, period.mul_f64(1.2));
            sleep(self.runs_out_in().map_or(period, |rest| rest.min(period))).await;
        }
    }

    /// How long one request may take.
    fn patience(&self) -> Duration {
        self.settings.renew_deadline / 2
    }

    /// When the lease of somebody else may be taken, unless it is renewed. `None` if that time has come.
    fn runs_out_in(&self) -> Option<Duration> {
        let (lease, since) = self.seen.as_ref()?;
        let duration = lease.spec.as_ref()?.lease_duration_seconds?;
        let duration = Duration::from_secs(u64::try_from(duration).ok()?);
        let rest = (*since + duration).saturating_duration_since(Instant::now());
        (!rest.is_zero()).then_some(rest)
    }

    /// Keeps renewing a lease that is held until `until`; returns when it may be lost.
    pub(crate) async fn hold(&mut self, mut until: Instant) {
        loop {
            sleep(self.settings.retry_period.min(until.saturating_duration_since(Instant::now())))
                .await;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                warn!(lease = %self.settings.name, "lease {} could not be renewed in time", self.settings.name);
                return;
            }
            match timeout(left.min(self.patience()), self.try_once()).await {
                Ok(Ok(Some(sent))) => until = sent + self.settings.renew_deadline,
                Ok(Ok(None)) => {
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
        let name = &self.settings.name;
        match timeout(self.settings.retry_period, self.give_up()).await {
            Ok(Ok(true)) => info!(lease = %name, "lease {name} is given up"),
            Ok(Ok(false)) => debug!(lease = %name, "lease {name} is not ours to give up"),
            Ok(Err(error)) => warn!(lease = %name, %error, "lease {name} was not given up"),
            Err(_) => warn!(lease = %name, "lease {name} was not given up in time"),
        }
        self.seen = None;
    }

    /// False if somebody else holds it.
    async fn give_up(&self) -> kube::Result<bool> {
        let Some((lease, _)) = &self.seen else { return Ok(false) };
        let (name, params) = (&self.settings.name, PostParams::default());
        let Some(given_up) = self.without_holder(lease) else { return Ok(false) };
        match self.leases.0.replace(name, &params, &given_up).await {
            // A renewal whose answer was lost, or somebody who set a label.
            Err(kube::Error::Api(status)) if status.is_conflict() => {}
            answer => return answer.map(|_| true),
        }
        let lease = self.leases.0.get(name).await?;
        let Some(given_up) = self.without_holder(&lease) else { return Ok(false) };
        self.leases.0.replace(name, &params, &given_up).await.map(|_| true)
    }

    /// The lease with nobody as holder, if it is ours.
    fn without_holder(&self, lease: &Lease) -> Option<Lease> {
        let mut lease = lease.clone();
        let spec = lease.spec.as_mut()?;
        if spec.holder_identity.as_deref() != Some(&self.settings.identity) {
            return None;
        }
        let now = MicroTime(self.clock.now());
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        (spec.acquire_time, spec.renew_time) = (Some(now.clone()), Some(now));
        Some(lease)
    }

    fn holder(&self) -> Option<&str> {
        self.seen.as_ref()?.0.spec.as_ref()?.holder_identity.as_deref()
    }

    /// When the write was sent that made the lease ours, or `None` if it is not.
    async fn try_once(&mut self) -> kube::Result<Option<Instant>> {
        // A leader writes on what it wrote last; only after a conflict does it have to look.
        if self.holder() == Some(&self.settings.identity)
            && let Some((lease, _)) = self.seen.clone()
        {
            match self.write(&lease, false).await {
                Err(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => {}
                answer => return answer.map(Some),
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
            (Step::Wait, _) => return Ok(None),
            (Step::Create, _) | (_, None) => self.create().await,
            (Step::Renew, Some(lease)) => self.write(&lease, false).await,
            (Step::Take, Some(lease)) => self.write(&lease, true).await,
        };
        match outcome {
            Ok(sent) => Ok(Some(sent)),
            // Somebody else was faster.
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    async fn create(&mut self) -> kube::Result<Instant> {
        let sent = Instant::now();
        let metadata =
            ObjectMeta { name: Some(self.settings.name.clone()), ..ObjectMeta::default() };
        let spec = self.spec(&LeaseSpec::default(), true, self.clock.now());
        let lease =
            Lease { metadata, spec: Some(LeaseSpec { lease_transitions: Some(0), ..spec }) };
        let lease = self.leases.0.create(&PostParams::default(), &lease).await?;
        self.seen = Some((lease, Instant::now()));
        Ok(sent)
    }

    /// Replaces the lease on top of the version that was seen, so of two who try only one succeeds.
    async fn write(&mut self, lease: &Lease, is_new_holder: bool) -> kube::Result<Instant> {
        let sent = Instant::now();
        let spec =
            self.spec(&lease.spec.clone().unwrap_or_default(), is_new_holder, self.clock.now());
        let lease = Lease { spec: Some(spec), ..lease.clone() };
        let name = &self.settings.name;
        let lease = self.leases.0.replace(name, &PostParams::default(), &lease).await?;
        self.seen = Some((lease, Instant::now()));
        Ok(sent)
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
