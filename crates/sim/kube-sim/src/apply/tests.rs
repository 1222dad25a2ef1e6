use serde_json::{Value, json};

use super::set::{Set, Step};
use super::shape::Shape;
use crate::builtin;

#[test]
fn sets_are_written_as_the_real_server_writes_them() {
    let kind = builtin::kinds().into_iter().find(|kind| kind.plural == "pods").unwrap();
    let pod = json!({
        "metadata": {"labels": {"a": "b"}, "finalizers": ["f"]},
        "spec": {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}], "tolerations": [{"key": "k"}]}
    });
    let set = Shape::root(&kind, None).fields(&pod);
    let want = json!({
        "f:metadata": {"f:labels": {"f:a": {}}, "f:finalizers": {"v:\"f\"": {}}},
        "f:spec": {
            "f:containers": {"k:{\"name\":\"c\"}": {
                ".": {}, "f:name": {}, "f:image": {},
                "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}
            }},
            "f:tolerations": {}
        }
    });
    assert_eq!(set.to_json(), want);
    assert_eq!(Set::read(&want), set);
}

#[test]
fn steps_lead_to_items() {
    let list: Value = json!([{"name": "a", "n": 1}, {"name": "b", "n": 2}]);
    let step = Step::Key("{\"name\":\"b\"}".into());
    assert_eq!(step.of(&list), Some(&json!({"name": "b", "n": 2})));
    assert_eq!(step.shown(), "[name=\"b\"]");
    let set = json!(["x", "y"]);
    assert_eq!(Step::Item("\"y\"".into()).of(&set), Some(&json!("y")));
}
