//! What all doors of a process share, as people see it.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use roost_views::{
    AddressView, DecisionQuery, DecisionView, DeletionsDetail, LinkDetail, StepView, SubjectKind,
};

use crate::{Core, CoreView, DoorWords};

/// The core of the first door, with what the others have beside it.
pub struct JoinedCore {
    /// Of the vCenter that people look at first.
    pub first: Arc<dyn Core>,
    /// Of vCenters that only another door works in.
    pub others: Vec<Arc<dyn Core>>,
    /// What each door and its requests are called.
    pub doors: Vec<DoorWords>,
    /// Of doors that do not write their own.
    pub registries: Vec<Arc<Registry>>,
}

impl fmt::Debug for JoinedCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinedCore").field("first", &self.first).finish_non_exhaustive()
    }
}

impl JoinedCore {
    /// A journal is shared, so that what it holds may be about the requests of any door.
    fn named(&self, mut decision: DecisionView) -> DecisionView {
        if let SubjectKind::Request(noun) = &mut decision.subject_kind
            && let Some(words) = self.doors.iter().find(|words| words.name == decision.door)
        {
            words.noun.clone_into(noun);
        }
        decision
    }
}

impl Core for JoinedCore {
    fn decisions(&self, query: &DecisionQuery) -> Vec<DecisionView> {
        let mut found = self.first.decisions(query);
        for other in &self.others {
            found.extend(other.decisions(query));
        }
        if !self.others.is_empty() {
            found.sort_by_key(|decision| decision.at);
            found.drain(..found.len().saturating_sub(query.limit.unwrap_or(usize::MAX)));
        }
        found.into_iter().map(|decision| self.named(decision)).collect()
    }

    fn overview(&self) -> CoreView {
        let mut view = self.first.overview();
        for other in self.others.iter().map(|other| other.overview()) {
            view.deletions.last_minute += other.deletions.last_minute;
            view.other_links.extend(other.other_links);
            // What another server says is no word about this one.
            if other.link.server != view.link.server {
                view.other_links.push(other.link);
                continue;
            }
            // A door that has opened none yet says nothing about the link.
            if other.link.last_contact.is_some() {
                view.link.vms_seen += other.link.vms_seen;
                view.link.connected &= other.link.connected;
                view.link.synced &= other.link.synced;
                view.link.trouble = view.link.trouble.or(other.link.trouble);
            }
        }
        view
    }

    fn link_detail(&self) -> LinkDetail {
        self.first.link_detail()
    }

    fn addresses(&self) -> Vec<AddressView> {
        self.first.addresses()
    }

    fn deletions(&self) -> DeletionsDetail {
        let mut detail = self.first.deletions();
        for other in &self.others {
            detail.decisions.extend(other.deletions().decisions);
        }
        let decisions = std::mem::take(&mut detail.decisions);
        detail.decisions = decisions.into_iter().map(|decision| self.named(decision)).collect();
        detail
    }

    fn timeline(&self, vm: &str) -> Vec<StepView> {
        let first = self.first.timeline(vm);
        if !first.is_empty() {
            return first;
        }
        self.others
            .iter()
            .map(|other| other.timeline(vm))
            .find(|it| !it.is_empty())
            .unwrap_or(first)
    }

    fn metrics(&self) -> String {
        let mut text = self.first.metrics();
        for registry in &self.registries {
            let mut own = String::new();
            if encode(&mut own, registry).is_ok() {
                text.push_str(&plain_text(&own));
            }
        }
        text
    }
}

/// The newer format leaves `_total` out of the names of counters; the port speaks the older one.
fn plain_text(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut counters: Vec<&str> = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ")
            && let Some(name) = rest.strip_suffix(" counter")
        {
            counters.push(name);
        }
    }
    for line in text.lines() {
        if line.starts_with("# EOF") || line.starts_with("# UNIT") {
            continue;
        }
        let head = ["# HELP ", "# TYPE "].into_iter().find(|head| line.starts_with(head));
        let name = head.and_then(|head| line[head.len()..].split(' ').next());
        match (head, name) {
            (Some(head), Some(name)) if counters.contains(&name) && !name.ends_with("_total") => {
                let rest = &line[head.len() + name.len()..];
                // Writing into memory cannot fail.
                let _ = writeln!(plain, "{head}{name}_total{rest}");
            }
            _ => {
                plain.push_str(line);
                plain.push('\n');
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use roost_views::LinkView;

    use super::*;

    #[derive(Debug)]
    struct Linked(&'static str, bool);

    impl Core for Linked {
        fn decisions(&self, _: &DecisionQuery) -> Vec<DecisionView> {
            Vec::new()
        }

        fn overview(&self) -> CoreView {
            let link = LinkView {
                server: self.0.to_owned(),
                connected: self.1,
                synced: self.1,
                last_contact: Some(jiff::Timestamp::UNIX_EPOCH),
                trouble: (!self.1).then(|| "permission denied".to_owned()),
                ..LinkView::default()
            };
            CoreView { link, ..CoreView::default() }
        }
    }

    /// A host of microVMs that failed made the vCenter look unreachable.
    #[test]
    fn a_server_of_another_kind_says_nothing_about_this_one() {
        let joined = |others: Vec<Arc<dyn Core>>| JoinedCore {
            first: Arc::new(Linked(LinkView::VCENTER, true)),
            others,
            doors: Vec::new(),
            registries: Vec::new(),
        };
        let runtime = joined(vec![Arc::new(Linked("microVM runtime", false))]).overview();
        assert!(runtime.link.connected && runtime.link.trouble.is_none(), "{runtime:?}");
        assert_eq!(runtime.other_links[0].server, "microVM runtime");
        let second = joined(vec![Arc::new(Linked(LinkView::VCENTER, false))]).overview();
        assert!(!second.link.connected && second.other_links.is_empty(), "{second:?}");
    }

    #[test]
    fn counters_are_named_in_the_older_format_as_their_samples_are() {
        let newer = "# HELP a Some.\n# TYPE a counter\na_total{x=\"1\"} 1\n# HELP b Own.\n# TYPE b gauge\n# UNIT b seconds\nb 2\n# EOF\n";
        let older = "# HELP a_total Some.\n# TYPE a_total counter\na_total{x=\"1\"} 1\n# HELP b Own.\n# TYPE b gauge\nb 2\n";
        assert_eq!(plain_text(newer), older);
    }
}
