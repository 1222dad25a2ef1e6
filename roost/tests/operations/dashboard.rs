use std::collections::BTreeSet;
use std::fmt::Write as _;

use roost_oracle::promtool;
use serde_json::Value;

use crate::exposed::series;
use crate::promql::metrics;
use crate::read;

/// What a panel asks.
#[derive(Debug, Clone)]
pub(crate) struct Query {
    panel: String,
    /// With everything that Grafana would fill in filled in.
    pub(crate) expression: String,
}

fn dashboard() -> Value {
    serde_json::from_str(&read("deploy/grafana/roost-hatchery.json")).unwrap()
}

/// What panels and annotations ask, with `window` as the range of rates.
pub(crate) fn queries(window: &str) -> Vec<Query> {
    queries_of(&dashboard(), window)
}

fn named(door: &str) -> Value {
    serde_json::from_str(&read(&format!("deploy/grafana/roost-{door}.json"))).unwrap()
}

fn queries_of(dashboard: &Value, window: &str) -> Vec<Query> {
    let fill =
        |expression: &str| expression.replace("$service", ".+").replace("$__rate_interval", window);
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut queries = Vec::new();
    for panel in list(&dashboard["panels"]) {
        for target in list(&panel["targets"]) {
            let panel = panel["title"].as_str().unwrap().to_owned();
            queries.push(Query { panel, expression: fill(target["expr"].as_str().unwrap()) });
        }
    }
    for annotation in list(&dashboard["annotations"]["list"]) {
        let panel = annotation["name"].as_str().unwrap().to_owned();
        queries.push(Query { panel, expression: fill(annotation["expr"].as_str().unwrap()) });
    }
    queries
}

/// Those of the Kubernetes doors.
const OTHERS: [&str; 3] = ["vm-operator", "agent-forge", "kubelet"];

#[test]
fn the_dashboard_asks_for_metrics_that_are_exposed() {
    let mut used = metrics(&read("deploy/grafana/roost-hatchery.json"));
    for other in OTHERS {
        used.extend(metrics(&read(&format!("deploy/grafana/roost-{other}.json"))));
    }
    let exposed = series();
    let unknown: Vec<_> = used.difference(&exposed).collect();
    assert!(unknown.is_empty(), "nothing exposes {unknown:?}");
}

#[test]
fn the_dashboard_shows_every_metric_of_our_own() {
    let used = metrics(&read("deploy/grafana/roost-hatchery.json"));
    // One series of a histogram is enough, and a counter is registered without its suffix.
    let base = |name: &str| {
        let suffixes = ["_bucket", "_sum", "_count", "_total"];
        let cut = suffixes.iter().find_map(|suffix| name.strip_suffix(suffix));
        cut.unwrap_or(name).to_owned()
    };
    let shown: BTreeSet<String> = used.iter().map(|name| base(name)).collect();
    let ours: BTreeSet<String> =
        series().iter().filter(|name| name.starts_with("roost_")).map(|name| base(name)).collect();
    let missing: Vec<_> = ours.difference(&shown).collect();
    assert!(missing.is_empty(), "no panel shows {missing:?}");
}

#[test]
fn every_query_of_the_dashboard_is_promql() {
    let Some(promtool) = promtool() else { return };
    let mut rules = "groups:\n  - name: dashboard\n    rules:\n".to_owned();
    let others = OTHERS.map(|other| queries_of(&named(other), "5m"));
    let all = queries("5m").into_iter().chain(others.into_iter().flatten());
    for (number, query) in all.enumerate() {
        let expression = serde_json::to_string(&query.expression).unwrap();
        let _ = writeln!(rules, "      # {}", query.panel);
        let _ = writeln!(rules, "      - record: panel:{number}\n        expr: {expression}");
    }
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(folder.join("dashboard-rules.yml"), rules).unwrap();
    let output = promtool.run(folder, &["check", "rules", "dashboard-rules.yml"]);
    assert!(output.is_success(), "{}{}", output.stdout, output.stderr);
}

#[test]
fn panels_have_ids_of_their_own_and_places_of_their_own() {
    for dashboard in OTHERS.iter().map(|door| named(door)).chain([dashboard()]) {
        places_are_apart(&dashboard);
    }
}

fn places_are_apart(dashboard: &Value) {
    let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = &panel["title"];
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title}");
        let at = |key: &str| panel["gridPos"][key].as_u64().unwrap();
        assert!(at("x") + at("w") <= 24, "{title} is beyond the edge");
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(taken.insert((x, y)), "{title} covers another panel");
            }
        }
        let is_row = panel["type"] == "row";
        assert!(is_row || panel["datasource"]["uid"] == "${datasource}", "{title}");
    }
}
