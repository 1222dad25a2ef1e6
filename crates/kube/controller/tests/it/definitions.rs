//! A definition that is made from a Rust type: what it says, and what API servers make of it.

use kube::api::{DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client, CustomResourceExt};
use serde_json::{Value, json};

use crate::lab::Lab;
use crate::toy::Toy;

#[test]
fn a_type_says_its_schema_defaults_enums_patterns_rules_and_columns() {
    let definition = serde_json::to_value(Toy::crd()).unwrap();
    let version = &definition["spec"]["versions"][0];
    let spec = &version["schema"]["openAPIV3Schema"]["properties"]["spec"];
    assert_eq!(spec["required"], json!(["size"]));
    let fields = &spec["properties"];
    assert_eq!(fields["size"]["type"], "integer");
    assert_eq!(fields["colour"]["default"], "red");
    assert_eq!(fields["colour"]["enum"], json!(["red", "green"]));
    assert_eq!(fields["owner"]["pattern"], "^[a-z]+$");
    assert_eq!(fields["size"]["x-kubernetes-validations"][0]["rule"], "self >= 0");
    let rule = &spec["x-kubernetes-validations"][0];
    assert_eq!(rule["message"], "green toys are small");
    let column = &version["additionalPrinterColumns"][0];
    assert_eq!([&column["name"], &column["jsonPath"]], ["Size", ".spec.size"]);
    assert_eq!(version["subresources"]["status"], json!({}));
}

/// A default is filled in, and what the schema forbids is refused with its reason.
pub(crate) async fn is_kept_by(client: Client) {
    let gvk = GroupVersionKind::gvk("toys.example.com", "v1", "Toy");
    let toys: Api<DynamicObject> =
        Api::namespaced_with(client, "default", &ApiResource::from_gvk(&gvk));
    let create = async |spec: Value| {
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let object = json!({"apiVersion": "toys.example.com/v1", "kind": "Toy",
            "metadata": {"name": "tried"}, "spec": spec});
        match toys.create(&dry, &serde_json::from_value(object).unwrap()).await {
            Ok(made) => Ok(made.data["spec"].clone()),
            Err(kube::Error::Api(status)) => Err(status.message.clone()),
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(create(json!({"size": 1})).await, Ok(json!({"size": 1, "colour": "red"})));
    for (spec, reason) in [
        (json!({"size": -1}), "a size is not negative"),
        (json!({"size": 9000, "colour": "green"}), "green toys are small"),
        (json!({"size": 1, "colour": "blue"}), "supported values"),
        (json!({"size": 1, "owner": "Jane"}), "should match"),
        (json!({}), "Required value"),
    ] {
        let refused = create(spec.clone()).await.unwrap_err();
        assert!(refused.contains(reason), "{spec}: {refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_embedded_server_fills_in_defaults_and_keeps_the_rules() {
    let lab = Lab::new().await;
    is_kept_by(lab.client.clone()).await;
}
