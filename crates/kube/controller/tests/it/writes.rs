use std::sync::Arc;

use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use roost_clock::Random;
use roost_clock::{Clock, SimClock};
use roost_controller::{Draft, Remedial, Remedy, Saved, Truth, WriteError, Writer, set_condition};
use serde_json::json;

use crate::lab::Lab;
use crate::toy::{Toy, toy};

struct Desk {
    lab: Lab,
    writer: Writer,
}

impl Desk {
    async fn new() -> Self {
        let lab = Lab::new().await;
        let writer = Writer::new(lab.client.clone(), "toys", &Random::from_seed(1));
        lab.create(&toy("a", 1)).await;
        Self { lab, writer }
    }

    async fn draft(&self) -> Draft<Toy> {
        Draft::of(Arc::new(self.lab.get("a").await), ())
    }

    /// Somebody else writes the status.
    async fn foreign_status(&self, status: serde_json::Value) {
        let patch = Patch::Merge(json!({ "status": status }));
        self.lab.toys().patch_status("a", &PatchParams::default(), &patch).await.unwrap();
    }
}

fn set(draft: &mut Draft<Toy>, condition: &str, truth: Truth) {
    let now = SimClock::new().now();
    let conditions = &mut draft.status.get_or_insert_default().conditions;
    set_condition(conditions, condition, truth, "Because", "", None, now);
}

fn condition(name: &str, status: &str) -> serde_json::Value {
    json!({"type": name, "status": status, "reason": "They", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_when_nothing_differs() {
    let desk = Desk::new().await;
    let mut draft = desk.draft().await;
    let revision = desk.lab.sim.revision();
    draft.spec.size = 5;
    draft.spec.size = 1;
    assert_eq!(desk.writer.save(&mut draft).await.unwrap(), Saved::default());
    assert_eq!(desk.lab.sim.revision(), revision);
}

#[tokio::test(start_paused = true)]
async fn a_save_is_one_write_of_the_status_and_one_of_the_rest() {
    let desk = Desk::new().await;
    let mut draft = desk.draft().await;
    let revision = desk.lab.sim.revision();
    draft.labels_mut().insert("x".to_owned(), "1".to_owned());
    draft.annotations_mut().insert("y".to_owned(), "1".to_owned());
    draft.add_finalizer("a/b");
    set(&mut draft, "A", Truth::True);
    set(&mut draft, "B", Truth::False);
    assert_eq!(desk.writer.save(&mut draft).await.unwrap(), Saved { status: true, main: true });
    assert_eq!(desk.lab.sim.revision(), revision + 2);
    assert!(!draft.is_changed());
    assert_eq!(desk.writer.save(&mut draft).await.unwrap(), Saved::default());
}

#[tokio::test(start_paused = true)]
async fn labels_annotations_and_finalizers_of_others_survive() {
    let desk = Desk::new().await;
    let mut draft = desk.draft().await;
    desk.lab
        .patch("a", json!({"metadata": {"labels": {"theirs": "1"}, "annotations": {"theirs": "1"}, "finalizers": ["their/s"]}}))
        .await;
    draft.labels_mut().insert("ours".to_owned(), "1".to_owned());
    draft.add_finalizer("our/s");
    desk.writer.save(&mut draft).await.unwrap();
    let toy = desk.lab.get("a").await;
    assert_eq!(toy.labels().len(), 2);
    assert_eq!(toy.annotations()["theirs"], "1");
    assert_eq!(toy.finalizers(), ["their/s", "our/s"]);

    draft.remove_finalizer("our/s");
    desk.lab.patch("a", json!({"metadata": {"finalizers": ["their/s", "our/s", "more/s"]}})).await;
    desk.writer.save(&mut draft).await.unwrap();
    assert_eq!(desk.lab.get("a").await.finalizers(), ["their/s", "more/s"]);
}

#[tokio::test(start_paused = true)]
async fn conditions_of_others_survive_a_conflict() {
    let desk = Desk::new().await;
    let mut draft = desk.draft().await;
    desk.foreign_status(json!({"conditions": [condition("Theirs", "True")]})).await;
    set(&mut draft, "Ours", Truth::True);
    desk.writer.save(&mut draft).await.unwrap();
    let conditions = desk.lab.get("a").await.status.unwrap().conditions;
    let names: Vec<_> = conditions.iter().map(|condition| condition.type_.as_str()).collect();
    assert_eq!(names, ["Theirs", "Ours"]);
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_two_write_is_an_error_unless_it_is_owned() {
    let desk = Desk::new().await;
    let mut draft = desk.draft().await;
    set(&mut draft, "Ready", Truth::True);
    desk.writer.save(&mut draft).await.unwrap();
    desk.foreign_status(json!({"conditions": [condition("Ready", "Unknown")]})).await;
    set(&mut draft, "Ready", Truth::False);
    let error = desk.writer.save(&mut draft).await.unwrap_err();
    assert!(
        matches!(&error, WriteError::Contested { condition, .. } if condition == "Ready"),
        "{error}"
    );
    assert_eq!(error.remedy(), Remedy::Backoff);
    draft.own_conditions(&["Ready"]);
    desk.writer.save(&mut draft).await.unwrap();
    assert_eq!(desk.lab.get("a").await.status.unwrap().conditions[0].status, "False");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_gone_is_said_to_be() {
    let desk = Desk::new().await;
    let mut draft = desk.draft().await;
    desk.lab.toys().delete("a", &DeleteParams::default()).await.unwrap();
    draft.add_finalizer("our/s");
    let error = desk.writer.save(&mut draft).await.unwrap_err();
    assert!(matches!(error, WriteError::Gone { .. }), "{error}");
    assert_eq!(error.remedy(), Remedy::AwaitChange);

    // Another object of the same name is not the one that the draft is about.
    desk.lab.create(&toy("a", 9)).await;
    let error = desk.writer.save(&mut draft).await.unwrap_err();
    assert!(matches!(error, WriteError::Gone { .. }), "{error}");
    assert!(desk.lab.get("a").await.finalizers().is_empty());
}
