use roost_oracle::promtool;

use crate::everything::Everything;
use crate::exposed::series;
use crate::promql::metrics;
use crate::{file, read};

/// Files of rules: the hatchery's, and those of the Kubernetes doors.
const RULES: [&str; 2] = ["alerts", "alerts-kubernetes"];

/// The names of all alerts, in the order of the files.
pub(crate) fn alerts() -> Vec<String> {
    values("alert")
}

/// What stands behind `key:` in the rules, in their order.
pub(crate) fn values(key: &str) -> Vec<String> {
    let rules: String =
        RULES.iter().map(|name| read(&format!("deploy/prometheus/{name}.yml"))).collect();
    let lines = rules.lines().map(|line| line.trim_start().trim_start_matches("- "));
    let found = lines.filter_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
    found.map(|value| value.trim_matches('"').to_owned()).collect()
}

#[test]
fn every_alert_fires_when_it_should_and_is_quiet_when_it_should() {
    let Some(promtool) = promtool() else { return };
    let folder = file("deploy/prometheus");
    for args in [
        ["check", "config", "prometheus.yml"],
        ["check", "rules", "alerts.yml"],
        ["test", "rules", "alerts_test.yml"],
        ["check", "rules", "alerts-kubernetes.yml"],
        ["test", "rules", "alerts-kubernetes_test.yml"],
    ] {
        let output = promtool.run(&folder, &args);
        assert!(output.is_success(), "{args:?}:\n{}{}", output.stdout, output.stderr);
    }
}

#[test]
fn every_alert_is_tested_for_firing_and_for_staying_quiet() {
    let tests: String =
        RULES.iter().map(|name| read(&format!("deploy/prometheus/{name}_test.yml"))).collect();
    for alert in alerts() {
        let named = format!("alertname: {alert}\n");
        let cases: Vec<_> = tests.split(&named).skip(1).collect();
        let is_quiet = |case: &&str| case.trim_start().starts_with("exp_alerts: []");
        assert!(!cases.iter().all(is_quiet), "{alert} is never seen to fire");
        // Whether a service is gone has no near miss but its grace, which is one of these.
        assert!(cases.iter().any(is_quiet), "{alert} is never seen to stay quiet");
    }
}

#[test]
fn alerts_use_metrics_that_are_exposed() {
    let exposed = series();
    let used = metrics(&read("deploy/prometheus/alerts.yml"));
    assert!(used.len() > 10, "{used:?}");
    let others = metrics(&read("deploy/prometheus/alerts-kubernetes.yml"));
    assert!(others.len() > 5, "{others:?}");
    let used: std::collections::BTreeSet<_> = used.union(&others).cloned().collect();
    let unknown: Vec<_> = used.difference(&exposed).collect();
    assert!(unknown.is_empty(), "nothing exposes {unknown:?}");
}

#[test]
fn every_alert_says_what_it_is_how_bad_it_is_and_where_to_read_on() {
    let count = alerts().len();
    for key in ["severity", "summary", "description", "runbook_url"] {
        assert_eq!(values(key).len(), count, "{key}");
    }
    let severities = values("severity");
    assert!(severities.iter().all(|word| ["critical", "warning"].contains(&word.as_str())));
}

#[test]
fn prometheus_finds_no_fault_with_our_own_names() {
    let Some(promtool) = promtool() else { return };
    let output = promtool.check_metrics(&Everything::new().text());
    let said = format!("{}{}", output.stdout, output.stderr);
    assert!(!said.contains("error while linting"), "{said}");
    // The names of CDS are what they are.
    let ours: Vec<_> = said.lines().filter(|line| line.contains("roost_")).collect();
    assert!(ours.is_empty(), "{}", ours.join("\n"));
}
