use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::words::{Style, secs, secs_between};

/// A server that cannot be reached, and what that means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutageView {
    /// Such as `vCenter`.
    pub server: String,
    /// When it was last heard.
    pub since: Option<Timestamp>,
    /// What it or the network says.
    pub trouble: Option<String>,
    /// What goes on nevertheless.
    pub goes_on: String,
    /// What waits until it is back.
    pub held: String,
    /// When it is asked again, in words.
    pub next_try: String,
    /// The name of the page in `docs/runbooks`, without its ending.
    pub runbook: Option<String>,
}

impl OutageView {
    /// In one line.
    pub fn words(&self, now: Timestamp) -> String {
        let since = self.since.map(|since| {
            let lasts = secs(secs_between(since, now), Style::Long);
            format!(" since {} UTC ({lasts})", crate::words::clock(since))
        });
        let trouble = self.trouble.as_ref().map(|trouble| format!(": {trouble}"));
        format!(
            "{} is unreachable{}{}. {} {} {}",
            self.server,
            since.unwrap_or_default(),
            trouble.unwrap_or_default(),
            self.goes_on,
            self.held,
            self.next_try
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_says_since_when_what_goes_on_what_waits_and_when_it_is_tried_again() {
        let outage = OutageView {
            server: "vCenter".into(),
            since: Some(Timestamp::constant(100, 0)),
            trouble: Some("connection refused".into()),
            goes_on: "VMs that run go on.".into(),
            held: "New VMs and deletions wait.".into(),
            next_try: "It is tried again within a minute.".into(),
            runbook: None,
        };
        assert_eq!(
            outage.words(Timestamp::constant(163, 0)),
            "vCenter is unreachable since 00:01:40 UTC (1 min 3 s): connection refused. \
             VMs that run go on. New VMs and deletions wait. It is tried again within a minute."
        );
    }
}
