//! Lists in pages, and the deletion of many at once: the same for every kind.

use serde_json::{Value, json};

use super::step::{Step, bare, step};

/// `object` makes one that the kind takes, by name and labels; `change` is a merge patch that it takes.
pub(super) fn on_collections(
    path: &str,
    object: impl Fn(&str, Value) -> Value,
    change: &Value,
) -> Vec<Step> {
    let ask = |query: &str| format!("{path}?{query}");
    let mut steps: Vec<_> = ["p1", "p2", "p3", "p4", "p5"]
        .into_iter()
        .map(|name| {
            let half = if name < "p4" { "low" } else { "high" };
            step("page: create", "POST", path, object(name, json!({"half": half})))
        })
        .collect();
    steps.extend([
        bare("page: first of two", "GET", &ask("limit=2")),
        bare("page: second", "GET", &ask("limit=2&continue=$continue")),
        bare("page: last", "GET", &ask("limit=2&continue=$continue")),
        bare("page: of one selection", "GET", &ask("limit=2&labelSelector=half%3Dlow")),
        bare(
            "page: rest of it",
            "GET",
            &ask("limit=2&labelSelector=half%3Dlow&continue=$continue"),
        ),
        bare("page: all that there are", "GET", &ask("limit=5")),
        bare("page: more than there are", "GET", &ask("limit=500")),
        bare("page: from the cache", "GET", &ask("limit=2&resourceVersion=0")),
        bare("page: begun", "GET", &ask("limit=3")),
        Step::patch("page: changed meanwhile", &format!("{path}/p5"), "merge", change.clone()),
        bare("page: gone meanwhile", "DELETE", &format!("{path}/p4")),
        step("page: new meanwhile", "POST", path, object("p6", json!({"half": "high"}))),
        bare("page: as it was at the beginning", "GET", &ask("continue=$continue")),
        bare("page: begun again", "GET", &ask("limit=3")),
        bare("page: with a version", "GET", &ask("continue=$continue&resourceVersion=$list")),
        bare("page: with a match", "GET", &ask("continue=$continue&resourceVersionMatch=Exact")),
        bare("page: a token that is none", "GET", &ask("limit=2&continue=%2A")),
        bare("page: exactly then", "GET", &ask("resourceVersion=$list&resourceVersionMatch=Exact")),
        bare(
            "page: not older",
            "GET",
            &ask("resourceVersion=$list&resourceVersionMatch=NotOlderThan"),
        ),
        bare("page: a match without a version", "GET", &ask("resourceVersionMatch=Exact")),
        bare("page: exactly any", "GET", &ask("resourceVersion=0&resourceVersionMatch=Exact")),
        bare("page: an unknown match", "GET", &ask("resourceVersion=1&resourceVersionMatch=Some")),
        bare("page: a version that is none", "GET", &ask("resourceVersion=new")),
        bare("page: a bad selector", "GET", &ask("labelSelector=a%3D%3D%3Db")),
        bare("page: a field that is none", "GET", &ask("fieldSelector=metadata.color%3Dred")),
        bare("many: dry run", "DELETE", &ask("labelSelector=half%3Dlow&dryRun=All")),
        bare("many: still there", "GET", &ask("labelSelector=half%3Dlow")),
        bare("many: by a label that none has", "DELETE", &ask("labelSelector=half%3Dnone")),
        bare("many: by name", "DELETE", &ask("fieldSelector=metadata.name%3Dp1")),
        step(
            "many: with a wrong precondition",
            "DELETE",
            &ask("labelSelector=half%3Dlow"),
            json!({"preconditions": {"uid": "other"}}),
        ),
        Step::patch(
            "many: held",
            &format!("{path}/p2"),
            "merge",
            json!({"metadata": {"finalizers": ["example.com/hold"]}}),
        ),
        step(
            "many: by label",
            "DELETE",
            &ask("labelSelector=half%3Dlow"),
            json!({"propagationPolicy": "Background"}),
        ),
        bare("many: the held one is left", "GET", &ask("labelSelector=half%3Dlow")),
        bare("many: the others are not touched", "GET", &ask("labelSelector=half%3Dhigh")),
        Step::patch(
            "many: let go",
            &format!("{path}/p2"),
            "merge",
            json!({"metadata": {"finalizers": null}}),
        ),
        step(
            "many: an unknown policy",
            "DELETE",
            &ask("labelSelector=half%3Dhigh"),
            json!({"propagationPolicy": "Sideways"}),
        ),
        bare("many: all in the namespace", "DELETE", path),
        bare("many: nothing is left", "GET", &ask("labelSelector=half")),
        bare("many: of nothing", "DELETE", path),
    ]);
    steps
}
