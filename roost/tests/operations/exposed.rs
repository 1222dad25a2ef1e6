use std::collections::{BTreeMap, BTreeSet};

use crate::everything::Everything;

/// A metric as `/mon/metrics` shows it.
#[derive(Debug, Default)]
pub(crate) struct Exposed {
    pub(crate) kind: String,
    pub(crate) help: String,
    /// Without those that every metric has.
    pub(crate) labels: BTreeSet<String>,
}

/// All of them by name.
pub(crate) fn exposed() -> BTreeMap<String, Exposed> {
    parse(&Everything::new().text())
}

fn parse(text: &str) -> BTreeMap<String, Exposed> {
    let mut metrics: BTreeMap<String, Exposed> = BTreeMap::new();
    let mut current = "";
    for line in text.lines() {
        if let Some((name, help)) = after(line, "# HELP ") {
            current = name;
            let help = help.trim_end_matches('.').to_owned();
            metrics.insert(name.to_owned(), Exposed { help, ..Exposed::default() });
        } else if let Some((name, kind)) = after(line, "# TYPE ") {
            kind.clone_into(&mut metrics.get_mut(name).unwrap().kind);
        } else if !line.starts_with('#') {
            let labels = labels(line).filter(|label| !COMMON.contains(label)).map(Into::into);
            metrics.get_mut(current).unwrap().labels.extend(labels);
        }
    }
    metrics
}

/// On every metric, and what makes a histogram one.
const COMMON: [&str; 3] = ["service_name", "service_type", "le"];

fn after<'a>(line: &'a str, mark: &str) -> Option<(&'a str, &'a str)> {
    line.strip_prefix(mark)?.split_once(' ')
}

/// Values here hold neither `="` nor `,`.
fn labels(sample: &str) -> impl Iterator<Item = &str> {
    let inside = sample.split_once('{').and_then(|(_, rest)| rest.rsplit_once('}'));
    let pairs = inside.map(|(inside, _)| inside).unwrap_or_default().split(',');
    pairs.filter_map(|pair| pair.split_once("=\"")).map(|(name, _)| name)
}

/// Every name that a query can ask for: a histogram is three series and none of its own name.
pub(crate) fn series() -> BTreeSet<String> {
    let names = exposed().into_iter().flat_map(|(name, metric)| {
        if metric.kind == "histogram" {
            ["_bucket", "_sum", "_count"].map(|part| format!("{name}{part}")).to_vec()
        } else {
            vec![name]
        }
    });
    names.chain(of_kubernetes_doors()).collect()
}

/// Those of the Kubernetes doors, by the names with which they are registered: a family without series is not shown, so that they cannot be asked for.
fn of_kubernetes_doors() -> BTreeSet<String> {
    let sources = [
        ("", "roost/src/page.rs"),
        ("", "crates/kube/controller/src/metrics.rs"),
        ("", "crates/kube/workqueue/src/metrics.rs"),
        ("", "crates/doors/vm-operator/src/run/metrics.rs"),
        ("agent_forge_", "crates/doors/agent-forge/src/metrics.rs"),
        ("vk_cocoon_", "crates/doors/kubelet/src/metrics.rs"),
        ("vk_cocoon_", "crates/doors/kubelet/src/usage/collector.rs"),
    ];
    let mut names = BTreeSet::new();
    for (prefix, path) in sources {
        let text = crate::read(path);
        let literals = text.split('"').skip(1).step_by(2);
        for name in literals.filter(|name| name.contains('_') && is_name(name)) {
            // Which of them it is stands in the type of the metric.
            for suffix in ["", "_total", "_bucket", "_sum", "_count"] {
                names.insert(format!("{prefix}{name}{suffix}"));
            }
        }
    }
    names
}

fn is_name(text: &str) -> bool {
    text.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_')
}
