//! The Helm charts are the kustomize files with places for values, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use crate::{assert_generated, read};

struct Chart {
    folder: &'static str,
    kustomize: &'static str,
    namespace: &'static str,
    /// Files that are templates, and what in them is a value.
    files: &'static [&'static str],
    values: &'static [(&'static str, &'static str)],
    /// Files that kustomize leaves out unless they are asked for, and the value that asks Helm for them.
    options: &'static [(&'static str, &'static str)],
}

const CHARTS: [Chart; 2] = [
    Chart {
        folder: "deploy/helm/roost-vm-operator",
        kustomize: "deploy/vm-operator",
        namespace: "vmop-system",
        files: &["rbac.yaml", "webhooks.yaml", "deployment.yaml"],
        values: &[
            ("replicas: 2", "replicas: {{ .Values.replicas }}"),
            ("image: roost\n", "image: {{ .Values.image }}\n"),
            (
                "{name: MAX_CONCURRENT_RECONCILES, value: \"20\"}",
                "{name: MAX_CONCURRENT_RECONCILES, value: \"{{ .Values.maxConcurrentReconciles }}\"}",
            ),
        ],
        options: &[],
    },
    Chart {
        folder: "deploy/helm/roost-agent-forge",
        kustomize: "deploy/agent-forge",
        namespace: "agent-forge-operator-system",
        files: &["rbac.yaml", "people.yaml", "deployment.yaml"],
        values: &[
            ("replicas: 1", "replicas: {{ .Values.replicas }}"),
            ("image: roost\n", "image: {{ .Values.image }}\n"),
        ],
        options: &[
            ("service-monitor.yaml", "serviceMonitor"),
            ("network-policy.yaml", "networkPolicy"),
        ],
    },
];

impl Chart {
    fn template(&self, file: &str) -> String {
        let mut text = read(&format!("{}/{file}", self.kustomize));
        for (is, value) in self.values {
            text = text.replace(is, value);
        }
        // A name may have the namespace as its beginning; only the namespace itself is a value.
        text.replace(
            &format!("namespace: {}", self.namespace),
            "namespace: {{ .Release.Namespace }}",
        )
    }

    /// `name: value` lines at the top of `values.yaml`.
    fn defaults(&self) -> BTreeMap<String, String> {
        let text = read(&format!("{}/values.yaml", self.folder));
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let pairs = lines.filter_map(|line| line.split_once(": "));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// As Helm does with these templates and the defaults.
    fn render(&self, template: &str) -> String {
        let mut text = template.replace("{{ .Release.Namespace }}", self.namespace);
        for (name, value) in self.defaults() {
            text = text.replace(&format!("{{{{ .Values.{name} }}}}"), &value);
        }
        text
    }
}

#[test]
fn a_chart_with_its_defaults_is_what_kustomize_applies() {
    for chart in &CHARTS {
        for file in chart.files {
            let path = format!("{}/templates/{file}", chart.folder);
            assert_generated(&path, &chart.template(file));
            let rendered = chart.render(&read(&path));
            assert!(!rendered.contains("{{"), "{path} uses a value that is not there:\n{rendered}");
            let wanted = read(&format!("{}/{file}", chart.kustomize));
            assert!(rendered == wanted, "{path} renders to something else");
        }
    }
}

#[test]
fn what_is_an_option_is_left_out_unless_it_is_asked_for() {
    for chart in &CHARTS {
        let kustomization = read(&format!("{}/kustomization.yaml", chart.kustomize));
        for (file, value) in chart.options {
            assert!(kustomization.contains(&format!("\n  # - {file}\n")), "{file}");
            assert_eq!(chart.defaults().get(*value).map(String::as_str), Some("false"), "{value}");
            let wanted =
                format!("{{{{- if .Values.{value} }}}}\n{}{{{{- end }}}}\n", chart.template(file));
            assert_generated(&format!("{}/templates/{file}", chart.folder), &wanted);
            let object: serde_json::Value =
                serde_saphyr::from_str(&read(&format!("{}/{file}", chart.kustomize))).unwrap();
            assert_eq!(object["metadata"]["namespace"], chart.namespace, "{file}");
        }
    }
}

#[test]
fn every_value_is_used_and_explained() {
    for chart in &CHARTS {
        let text = read(&format!("{}/values.yaml", chart.folder));
        let templates = std::fs::read_dir(crate::file(&format!("{}/templates", chart.folder)));
        let used: String = templates
            .unwrap()
            .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
            .collect();
        let defaults = chart.defaults();
        assert!(!defaults.is_empty());
        for name in defaults.keys() {
            assert!(used.contains(&format!(".Values.{name}")), "{name} is used by nothing");
            let at = text.find(&format!("\n{name}: ")).unwrap_or_default();
            let before = text[..at].lines().next_back();
            assert!(before.is_some_and(|line| line.starts_with('#')), "{name} has no comment");
        }
        let named: BTreeSet<&str> = used
            .split(".Values.")
            .skip(1)
            .map(|rest| rest.split(|c: char| !c.is_alphanumeric()).next().unwrap())
            .collect();
        let unknown: Vec<_> = named.iter().filter(|name| !defaults.contains_key(**name)).collect();
        assert!(unknown.is_empty(), "no default for {unknown:?}");
    }
}

#[test]
fn a_chart_brings_the_definitions_that_its_door_serves() {
    for (chart, folder) in
        [("vm-operator", "roost-vm-operator"), ("agent-forge", "roost-agent-forge")]
    {
        let crds = std::fs::read_dir(crate::file(&format!("deploy/helm/{folder}/crds"))).unwrap();
        let shipped: String =
            crds.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap()).collect();
        let printed = crate::roost(&["crds", chart]);
        let printed = String::from_utf8(printed.stdout).unwrap();
        let names = |text: &str| -> BTreeSet<String> {
            let names = text.lines().filter_map(|line| line.strip_prefix("  name: "));
            names.map(str::to_owned).collect()
        };
        assert_eq!(names(&shipped), names(&printed), "{folder}");
        assert!(!names(&printed).is_empty());
    }
}

#[test]
fn charts_say_their_version_and_the_manifests_parse() {
    let version = env!("CARGO_PKG_VERSION");
    for chart in &CHARTS {
        let text = read(&format!("{}/Chart.yaml", chart.folder));
        for line in ["apiVersion: v2".to_owned(), format!("appVersion: {version}")] {
            assert!(text.lines().any(|own| own == line), "{line} in {text}");
        }
    }
}
