//! Tags over REST.

use crate::lab::Lab;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use roost_vcenter_sim::full_body;
use serde_json::{Value, json};

struct Rest {
    lab: Lab,
    session: Option<String>,
}

impl Rest {
    async fn ask(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        let mut request = Request::builder().method(method).uri(path);
        match &self.session {
            Some(session) => request = request.header("vmware-api-session-id", session),
            // user:pass
            None => request = request.header("authorization", "Basic dXNlcjpwYXNz"),
        }
        let request = request.body(full_body(body.to_string())).unwrap();
        let response = self.lab.vcenter.handle(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn value(&self, method: Method, path: &str, body: Value) -> Value {
        let (status, answer) =
            self.ask(method, &format!("/rest/com/vmware/cis/{path}"), body).await;
        assert_eq!(status, 200, "{answer}");
        answer["value"].clone()
    }
}

#[tokio::test(start_paused = true)]
async fn a_tag_is_made_attached_found_and_detached() {
    let mut rest = Rest { lab: Lab::default().await, session: None };
    let vm = rest.lab.vcenter.find("/DC0/vm/DC0_H0_VM0").unwrap();
    let session = rest.value(Method::POST, "session", Value::Null).await;
    rest.session = Some(session.as_str().unwrap().to_owned());
    let category = json!({ "create_spec": { "name": "owner", "description": "", "cardinality": "MULTIPLE", "associable_types": [] } });
    let category = rest.value(Method::POST, "tagging/category", category).await;
    let tag = json!({ "create_spec": { "name": "roost", "description": "ours", "category_id": category } });
    let tag = rest.value(Method::POST, "tagging/tag", tag.clone()).await;
    let id = tag.as_str().unwrap();
    assert!(id.starts_with("urn:vmomi:InventoryServiceTag:"));
    assert_eq!(rest.value(Method::GET, "tagging/tag", Value::Null).await, json!([tag]));
    let one = rest.value(Method::GET, &format!("tagging/tag/id:{id}"), Value::Null).await;
    assert_eq!((&one["name"], &one["category_id"]), (&json!("roost"), &category));
    let object = json!({ "object_id": { "id": &*vm.id, "type": "VirtualMachine" } });
    let act = |action: &str| format!("tagging/tag-association/id:{id}?~action={action}");
    for _ in 0..2 {
        rest.value(Method::POST, &act("attach"), object.clone()).await;
    }
    let attached = rest.value(Method::POST, &act("list-attached-objects"), json!({})).await;
    assert_eq!(
        attached,
        json!([{ "id": &*vm.id, "type": "VirtualMachine" }]),
        "attaching twice is success"
    );
    let list = "tagging/tag-association?~action=list-attached-tags";
    assert_eq!(rest.value(Method::POST, list, object.clone()).await, json!([tag]));
    let (_, same) = rest.ask(Method::GET, "/api/cis/tagging/tag", Value::Null).await;
    assert_eq!(same, json!([tag]), "the newer spelling has no wrapper");
    rest.value(Method::POST, &act("detach"), object.clone()).await;
    assert_eq!(rest.value(Method::POST, list, object).await, json!([]));
}

#[tokio::test(start_paused = true)]
async fn tags_need_a_session_of_their_own() {
    let rest = Rest { lab: Lab::default().await, session: Some("unknown".into()) };
    assert_eq!(rest.ask(Method::GET, "/rest/com/vmware/cis/tagging/tag", Value::Null).await.0, 401);
    // vcsim and the messages of real servers agree: the place is looked for before the session.
    assert_eq!(rest.ask(Method::GET, "/rest/nowhere", Value::Null).await.0, 404);
    assert_eq!(rest.ask(Method::GET, "/api/vcenter/nowhere", Value::Null).await.0, 404);
    let client = rest.lab.anonymous();
    assert_eq!(client.http("POST", "/rest/com/vmware/cis/session", "").await.unwrap().0, 401);
}

/// Tags cost calls as everything else does; a client that makes many of them is seen.
#[tokio::test(start_paused = true)]
async fn rest_calls_are_counted_by_client_with_their_bytes() {
    let mut rest = Rest { lab: Lab::default().await, session: None };
    let session = rest.value(Method::POST, "session", Value::Null).await;
    rest.session = Some(session.as_str().unwrap().to_owned());
    for _ in 0..3 {
        rest.value(Method::GET, "tagging/tag", Value::Null).await;
    }
    rest.ask(Method::GET, "/rest/com/vmware/cis/tagging/tag/id:urn:1", Value::Null).await;
    let clients = rest.lab.vcenter.counters().clients;
    let methods = &clients["(no user agent)"];
    let tally = methods["GET /rest/com/vmware/cis/tagging/tag"];
    let answer = json!({ "value": [] }).to_string().len() as u64;
    assert_eq!((tally.calls, tally.bytes_in, tally.bytes_out), (3, 3 * 4, 3 * answer));
    assert_eq!(methods["GET /rest/com/vmware/cis/tagging/tag/{}"].calls, 1, "{methods:?}");
    assert_eq!(methods["POST /rest/com/vmware/cis/session"].calls, 1);
}
