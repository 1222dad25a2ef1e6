//! Events are told apart: each has the priority of its cause.

use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use roost_controller::Cause;
use serde_json::json;
use std::time::Duration;
use tokio::time::sleep;

use crate::lab::{Lab, key, secs};
use crate::toy::{Mood, toy};

impl Lab {
    /// All that was asked of the reconciler's priorities since the last time.
    async fn asked(&self) -> Vec<(String, Cause)> {
        self.settle().await;
        std::mem::take(&mut self.world.inside().causes)
    }

    /// The events since the last time, by name and cause. A pass that ends asks as well, in case it is to come again.
    async fn causes(&self) -> Vec<(String, Cause)> {
        let mut causes = self.asked().await;
        causes.retain(|(_, cause)| !matches!(cause, Cause::Requeued { .. }));
        causes.sort_by_key(|(name, cause)| (name.clone(), format!("{cause:?}")));
        causes.dedup();
        causes
    }
}

async fn make_secret(client: &Client, name: &str) {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let secret = Secret { metadata, ..Secret::default() };
    secrets.create(&PostParams::default(), &secret).await.unwrap();
}

fn one(name: &str, cause: Cause) -> Vec<(String, Cause)> {
    vec![(name.to_owned(), cause)]
}

#[tokio::test(start_paused = true)]
async fn every_event_has_its_own_cause() {
    let lab = Lab::new().await;
    lab.create(&toy("a", 1)).await;
    let replica = lab.replica();
    assert_eq!(lab.causes().await, one("a", Cause::InitialList), "there when the watch began");

    let mut later = toy("b", 1);
    later.spec.secret_name = Some("s".to_owned());
    lab.create(&later).await;
    assert_eq!(lab.causes().await, one("b", Cause::Created), "and its own writes are no cause");

    lab.patch("b", json!({"spec": {"size": 2}})).await;
    assert_eq!(lab.causes().await, one("b", Cause::Changed));

    replica.trigger.signal(key("a"));
    assert_eq!(lab.causes().await, one("a", Cause::Signal));

    make_secret(&lab.client, "s").await;
    assert_eq!(lab.causes().await, one("b", Cause::Related));

    lab.delete("b").await;
    let gone = [Cause::Changed, Cause::Deleted].map(|cause| ("b".to_owned(), cause));
    assert_eq!(lab.causes().await, gone, "marked, and gone with its finalizer");

    sleep(Duration::from_mins(34)).await;
    assert_eq!(lab.causes().await, one("a", Cause::Resync), "nothing is new");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_comes_back_says_what_it_was_handed_out_at() {
    let lab = Lab::new().await;
    let replica = lab.replica();
    lab.create(&toy("a", 1)).await;
    lab.causes().await;
    *lab.mood.lock().unwrap() = Mood::Fails;
    replica.trigger.enqueue(key("a"), 7);
    let told = lab.asked().await;
    assert!(!told.is_empty());
    assert!(told.iter().all(|(_, cause)| *cause == Cause::Requeued { last: 7 }), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_list_after_a_gap_tells_what_is_new_changed_and_gone_and_nothing_else() {
    let lab = Lab::new().await;
    // Passes that do nothing leave no finalizers, so that what is deleted is gone at once.
    *lab.mood.lock().unwrap() = Mood::WantsHelp;
    let _replica = lab.replica();
    for name in ["same", "changes", "goes"] {
        lab.create(&toy(name, 1)).await;
    }
    lab.causes().await;
    lab.make_a_gap();
    lab.patch("changes", json!({"spec": {"size": 2}})).await;
    lab.delete("goes").await;
    lab.create(&toy("new", 1)).await;
    sleep(secs(60)).await;
    let told = [("changes", Cause::Changed), ("goes", Cause::Deleted), ("new", Cause::Created)];
    assert_eq!(lab.causes().await, told.map(|(name, cause)| (name.to_owned(), cause)));
}
