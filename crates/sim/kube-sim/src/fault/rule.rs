use roost_clock::Random;
use serde::{Deserialize, Serialize};

use crate::glob;
use crate::request::Request;

/// Which requests a fault is for, when, and what it does. Every pattern may hold `*`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Rule {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; `write` is all that change.
    pub verb: String,
    /// `pods`, `widgets.example.com`; with a subresource `pods/status`.
    pub resource: String,
    pub namespace: String,
    pub name: String,
    pub user: String,
    pub when: When,
    pub action: Action,
}

impl Default for Rule {
    fn default() -> Self {
        let any = || "*".to_owned();
        Self {
            verb: any(),
            resource: any(),
            namespace: any(),
            name: any(),
            user: any(),
            when: When::default(),
            action: Action::Timeout,
        }
    }
}

/// Which of the requests that fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct When {
    /// The first so many are let through.
    pub skip: u64,
    /// It acts at most this often.
    pub times: Option<u64>,
    /// How likely it acts; 1 is always.
    pub chance: f64,
}

impl Default for When {
    fn default() -> Self {
        Self { skip: 0, times: None, chance: 1.0 }
    }
}

impl When {
    pub(super) fn is_due(&self, matched: u64, fired: u64, random: &mut Random) -> bool {
        matched > self.skip
            && self.times.is_none_or(|times| fired < times)
            && random.chance(self.chance)
    }
}

/// What happens to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Action {
    /// `409 Conflict`, as if somebody had changed the object.
    Conflict,
    /// `504 Timeout`; nothing was done.
    Timeout,
    /// `429 Too Many Requests` with `Retry-After`.
    TooManyRequests { retry_after: u64 },
    /// Any other status code.
    Status { code: u16 },
    /// The connection breaks before anything is done.
    CutBefore,
    /// It is done, and then the connection breaks.
    CutAfter,
    /// Done and answered this much later.
    Delay { by_ms: u64 },
    /// Done at once, and answered this much later.
    DelayAfter { by_ms: u64 },
    /// Never answered.
    Hang,
    /// A watch ends after so many events.
    CutWatch { after: u64 },
    /// A watch ends with `410 Gone` after so many events.
    WatchGone { after: u64 },
    /// Every event of a watch comes twice.
    DuplicateEvents,
    /// Every event of a watch comes late.
    LateEvents { by_ms: u64 },
    /// Admission webhooks cannot be reached.
    WebhookDown,
    /// The server goes away: watches end, connections are refused for this long.
    Restart { for_ms: u64 },
}

/// Names a rule until it is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RuleId(pub u64);

/// A rule and what it did so far.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RuleReport {
    pub id: RuleId,
    pub rule: Rule,
    /// Requests that fitted.
    pub matched: u64,
    /// Requests that it acted on.
    pub fired: u64,
}

impl Rule {
    pub(super) fn fits(&self, request: &Request) -> bool {
        let target = &request.target;
        let verb = request.verb();
        let is_write = !matches!(verb, "get" | "list" | "watch");
        let mut resource = target.plural.clone();
        if !target.group.is_empty() {
            resource = format!("{resource}.{}", target.group);
        }
        if !target.subresource.is_empty() {
            resource = format!("{resource}/{}", target.subresource);
        }
        (self.verb == "write" && is_write || glob::fits(&self.verb, verb))
            && glob::fits(&self.resource, &resource)
            && glob::fits(&self.namespace, &target.namespace)
            && glob::fits(&self.name, &target.name)
            && glob::fits(&self.user, &request.user.name)
    }
}
