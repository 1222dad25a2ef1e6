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
    names.collect()
}
