//! What keeps a pool from changing anything.

use std::time::Duration;

use jiff::Timestamp;
use kube::api::DynamicObject;
use kube::{Api, ResourceExt};
use roost_controller::Key;
use roost_supervise::Chain;
use serde_json::Value;
use tokio::time::Instant;

use super::world::{World, lock};
use crate::api::{PoolDefaults, VsphereAgentPool};
use crate::outside;

/// A NodePool is read again after this time. It is no watch, because the role of the upstream operator has no right to it.
const LASTS: Duration = Duration::from_secs(30);

/// What a NodePool said, and when.
#[derive(Debug, Clone)]
pub(crate) struct ReadPause {
    said: Said,
    at: Instant,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Said {
    /// Its `pausedUntil`, empty if it has none.
    Until(String),
    Unknown(String),
}

impl Said {
    fn hold(&self, node_pool: &str, now: Timestamp) -> Option<String> {
        match self {
            Self::Until(until) if is_paused(until, now) => {
                Some(format!("NodePool {node_pool} is paused: pausedUntil is {until}"))
            }
            Self::Until(_) => None,
            Self::Unknown(why) => Some(format!("whether NodePool {node_pool} is paused: {why}")),
        }
    }
}

impl World {
    /// Why nothing may be changed for this pool; `None` if it may.
    pub(crate) async fn hold_of(&self, pool: &VsphereAgentPool) -> Option<String> {
        if pool.is_dry_run() {
            return Some(format!("{} is in a dry run", Key::of(pool)));
        }
        if pool.is_paused() {
            return Some(format!("{} is paused", Key::of(pool)));
        }
        self.pause_of(pool).await.hold(&pool.spec.node_pool_ref.name, self.now())
    }

    /// The same from what was read last, without asking anybody.
    pub(crate) fn known_hold(&self, pool: &VsphereAgentPool) -> Option<String> {
        if pool.is_dry_run() {
            return Some(format!("{} is in a dry run", Key::of(pool)));
        }
        if pool.is_paused() {
            return Some(format!("{} is paused", Key::of(pool)));
        }
        let name = &pool.spec.node_pool_ref.name;
        let key = Key::new(&pool.namespace().unwrap_or_default(), name);
        let known = lock(&self.pauses).get(&key).map(|known| known.said.clone());
        known.and_then(|said| said.hold(name, self.now()))
    }

    async fn pause_of(&self, pool: &VsphereAgentPool) -> Said {
        let namespace = pool.namespace().unwrap_or_default();
        let key = Key::new(&namespace, &pool.spec.node_pool_ref.name);
        let known = lock(&self.pauses).get(&key).cloned();
        if let Some(known) = known.as_ref().filter(|known| known.at.elapsed() < LASTS) {
            return known.said.clone();
        }
        let kind = outside::node_pools();
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &namespace, &kind);
        let said = match api.get_opt(key.name()).await {
            Ok(found) => {
                let until = found.as_ref().and_then(|it| it.data.pointer("/spec/pausedUntil"));
                Said::Until(until.and_then(Value::as_str).unwrap_or_default().to_owned())
            }
            // No right to read it, or no such kind: as upstream, which does not look.
            Err(kube::Error::Api(status)) if (400..500).contains(&status.code) => {
                Said::Until(String::new())
            }
            // What it said last holds until it can be asked again.
            Err(error) => match known {
                Some(known) => known.said,
                None => Said::Unknown(Chain(&error).to_string()),
            },
        };
        // One that is not known is asked again at the next pass.
        if matches!(said, Said::Until(_)) {
            lock(&self.pauses).insert(key, ReadPause { said: said.clone(), at: Instant::now() });
        }
        said
    }
}

/// `true`, or a time that has not come.
fn is_paused(until: &str, now: Timestamp) -> bool {
    until == "true" || until.parse::<Timestamp>().is_ok_and(|until| now < until)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_a_word_or_a_time_that_has_not_come() {
        let now: Timestamp = "2026-07-01T10:00:00Z".parse().unwrap();
        for (until, paused) in [
            ("true", true),
            ("false", false),
            ("", false),
            ("2026-07-01T10:00:01Z", true),
            ("2026-07-01T12:00:00+02:00", false),
            ("tomorrow", false),
        ] {
            assert_eq!(is_paused(until, now), paused, "{until:?}");
        }
    }
}
