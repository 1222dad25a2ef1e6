use std::collections::BTreeSet;

/// The metrics of ours that an expression or a text names. What Prometheus makes itself (`up`, `ALERTS`) is not among them.
pub(crate) fn metrics(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    let ours = words.filter(|word| {
        let starts = [
            "roost_hatchery_",
            "roost_log_lines_",
            "roost_task_",
            "cds_hatchery_",
            "cds_http_",
            "controller_runtime_",
            "workqueue_",
            "leader_election_",
            "vmservice_",
            "agent_forge_",
            "vk_cocoon_",
        ];
        starts.iter().any(|start| word.starts_with(start))
    });
    ours.map(ToOwned::to_owned).collect()
}

#[test]
fn only_names_of_ours_are_found_in_an_expression() {
    let expression =
        r#"sum by (link) (rate(cds_hatchery_jobs_count{a="cds-v1"}[5m])) / up > roost_hatchery_x"#;
    assert_eq!(
        Vec::from_iter(metrics(expression)),
        ["cds_hatchery_jobs_count", "roost_hatchery_x"]
    );
}
