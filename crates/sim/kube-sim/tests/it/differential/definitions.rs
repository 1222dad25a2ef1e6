//! Objects made at random from the schemas of large definitions, many of them wrong in some way: both servers keep the same
//! and refuse the same.
//!
//! The definitions are those in `tests/definitions`, and those in the folder that `ROOST_DEFINITIONS` names. `ROOST_SEED` is the seed.

use std::fs;
use std::path::{Path, PathBuf};

use kube::Client;
use roost_clock::Random;
use serde_json::{Value, json};

use super::step::{Step, step};
use super::{ask, define};
use crate::draw::Draw;

/// Objects per version of a definition.
const OBJECTS: usize = 30;

fn folders() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/definitions");
    let more = std::env::var_os("ROOST_DEFINITIONS").map(PathBuf::from);
    [own].into_iter().chain(more).collect()
}

pub(super) fn definitions() -> Vec<Value> {
    let mut found = Vec::new();
    for folder in folders() {
        let mut paths: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths.iter().filter(|path| path.extension().is_some_and(|end| end == "yaml")) {
            let text = fs::read_to_string(path).unwrap();
            let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
            found.extend(documents.into_iter().filter(Value::is_object));
        }
    }
    assert!(!found.is_empty());
    found
}

/// The differences between both servers.
pub(super) async fn compare(real: &Client, ours: &Client) -> Vec<String> {
    let seed = std::env::var("ROOST_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut random = seed.map_or_else(Random::from_system, Random::from_seed);
    let seed = random.seed();
    let mut differences = Vec::new();
    let (mut taken, mut refused) = (0, 0);
    for definition in definitions() {
        let spec = &definition["spec"];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
        let place = if spec["scope"] == "Namespaced" { "namespaces/default/" } else { "" };
        let path = |version: &str| format!("/apis/{group}/{version}/{place}{plural}");
        let versions: Vec<_> = spec["versions"].as_array().unwrap().iter().collect();
        for client in [real, ours] {
            define(client, &definition, &path(&text(&versions[0]["name"]))).await;
        }
        for version in versions.into_iter().filter(|version| version["served"] == true) {
            let name = text(&version["name"]);
            let of_kind = |object: &mut Value, number: usize| {
                object["apiVersion"] = json!(format!("{group}/{name}"));
                object["kind"] = spec["names"]["kind"].clone();
                object["metadata"] = json!({"name": format!("{name}-{number}")});
            };
            for number in 0..OBJECTS {
                for step in story(version, &path(&name), number, &mut random, of_kind) {
                    let (want, got) = (ask(real, &step).await, ask(ours, &step).await);
                    if want.0 < 300 {
                        taken += 1;
                    } else {
                        refused += 1;
                    }
                    if verdict(&want) != verdict(&got) {
                        differences.push(format!(
                            "ROOST_SEED={seed} {} {} {}\n  real {} {}\n  ours {} {}",
                            step.name, step.path, step.body, want.0, want.1, got.0, got.1
                        ));
                        // What follows differs for the same reason.
                        break;
                    }
                }
            }
        }
    }
    // Else the objects are all right or all wrong, and nothing is compared. A seed with 21 taken of 240 was seen.
    assert!(taken > refused / 25 && refused > taken / 25, "{taken} taken, {refused} refused");
    differences
}

/// One object's life: made, changed, its status written.
fn story(
    version: &Value,
    path: &str,
    number: usize,
    random: &mut Random,
    of_kind: impl Fn(&mut Value, usize),
) -> Vec<Step> {
    let schema = &version["schema"]["openAPIV3Schema"];
    // Every third one has no faults, so that there is something to change.
    let faults = if number.is_multiple_of(3) { 0.0 } else { 0.03 };
    let mut draw = Draw { random, faults };
    let mut object = draw.value(schema, 0);
    of_kind(&mut object, number);
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    let mut steps = vec![step("create", "POST", path, object)];
    let (spec, status) = (&schema["properties"]["spec"], &schema["properties"]["status"]);
    let one = format!("{path}/{name}");
    steps.push(Step::patch("patch", &one, "merge", json!({"spec": draw.value(spec, 0)})));
    if version["subresources"]["status"].is_object() && status.is_object() {
        let body = json!({"status": draw.value(status, 0)});
        steps.push(Step::patch("status", &format!("{one}/status"), "merge", body));
    }
    steps.push(step("get", "GET", &one, Value::Null));
    steps
}

/// What must be equal: all of what was taken, the reasons and places of a refusal. Its words are compared elsewhere.
fn verdict((code, body): &(u16, Value)) -> Value {
    if *code < 300 {
        let mut body = body.clone();
        // Who owns what is compared in the scripts.
        body["metadata"]["managedFields"] = Value::Null;
        return json!([code, body]);
    }
    let causes = body["details"]["causes"].as_array().cloned().unwrap_or_default();
    let mut places: Vec<_> =
        causes.iter().map(|cause| format!("{} {}", cause["reason"], cause["field"])).collect();
    places.sort();
    places.dedup();
    json!([code, body["reason"], places])
}
