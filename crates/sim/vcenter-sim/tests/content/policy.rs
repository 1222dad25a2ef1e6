//! Storage policies.

use http::Method;
use roost_vcenter_sim::Options;
use roost_vim_wire::methods::{
    PbmCheckCompatibility, PbmCreate, PbmQueryAssociatedProfile, PbmQueryProfile,
    PbmRetrieveContent, PbmRetrieveServiceContent,
};
use roost_vim_wire::types::{PbmProfileId, PbmServerObjectRef};
use roost_vim_wire::{Element, MoRef, MoType};
use serde_json::{Value, json};

use crate::lab::Client;
use crate::rest::Rest;

fn object(kind: &str, id: &str) -> MoRef {
    MoRef::new(MoType::from(kind), id)
}

fn profile_manager() -> MoRef {
    object("PbmProfileProfileManager", "ProfileManager")
}

async fn create(client: &Client, name: &str, category: &str, tag: &str) -> PbmProfileId {
    let id = Element::new("id")
        .with_field("namespace", &"http://www.vmware.com/storage/tag".to_owned())
        .with_field("id", &category.to_owned());
    let values = Element::leaf("values", tag).typed("string");
    let value = Element::new("value").typed("PbmCapabilityDiscreteSet").with(values);
    let property = Element::new("propertyInstance")
        .with_field("id", &format!("com.vmware.storage.tag.{category}.property"))
        .with(value);
    let capability =
        Element::new("capability").with(id).with(Element::new("constraint").with(property));
    let rules = Element::new("subProfiles").with_field("name", &"tags".to_owned()).with(capability);
    let constraints =
        Element::new("constraints").typed("PbmCapabilitySubProfileConstraints").with(rules);
    let create_spec = Element::new("createSpec")
        .with_field("name", &name.to_owned())
        .with_field("category", &"REQUIREMENT".to_owned())
        .with(constraints);
    client.call(PbmCreate { this: profile_manager(), create_spec }).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_policy_allows_the_datastores_that_carry_its_tag_and_deployments_follow_it() {
    let rest = Rest::start(Options { datastores: 3, ..Options::default() }).await;
    let client = rest.lab.login().await;
    let content = client
        .call(PbmRetrieveServiceContent { this: object("PbmServiceInstance", "ServiceInstance") })
        .await
        .unwrap();
    assert_eq!(content.child("profileManager").and_then(Element::moref), Some(profile_manager()));

    let category = rest
        .post(
            "/api/cis/tagging/category",
            json!({ "name": "tier", "cardinality": "SINGLE", "associable_types": ["Datastore"] }),
        )
        .await;
    let tag =
        rest.post("/api/cis/tagging/tag", json!({ "name": "gold", "category_id": category })).await;
    let gold = client.find("/DC0/datastore/LocalDS_1").await;
    let at = format!("/api/cis/tagging/tag-association/{}?action=attach", tag.as_str().unwrap());
    rest.post(&at, json!({ "object_id": { "id": &*gold.id, "type": "Datastore" } })).await;

    let id = create(&client, "Gold", "tier", "gold").await;
    let known = client
        .call(PbmQueryProfile {
            this: profile_manager(),
            resource_type: Element::new("resourceType")
                .with_field("resourceType", &"STORAGE".to_owned()),
            profile_category: None,
        })
        .await
        .unwrap();
    assert!(known.contains(&id) && known.len() == 4, "{known:?}");
    let read = client
        .call(PbmRetrieveContent { this: profile_manager(), profile_ids: vec![id.clone()] })
        .await
        .unwrap();
    assert_eq!(read[0].text_of("name"), Some("Gold"));
    let checked = client
        .call(PbmCheckCompatibility {
            this: object("PbmPlacementSolver", "placementSolver"),
            hubs_to_search: Vec::new(),
            profile: id.clone(),
        })
        .await
        .unwrap();
    let allowed: Vec<&str> = checked
        .iter()
        .filter(|result| result.error.is_empty())
        .map(|result| result.hub.hub_id.as_str())
        .collect();
    assert_eq!((checked.len(), allowed), (3, vec![&*gold.id]));

    // A VM that is made of a library item with this policy goes there, and is known to have it.
    let item = crate::tools::small_item(&rest).await;
    let pool = client.find("/DC0/host/DC0_C0/Resources").await;
    let at = format!("/api/vcenter/ovf/library-item/{item}?action=deploy");
    let body = json!({
        "target": { "resource_pool_id": &*pool.id },
        "deployment_spec": { "name": "web-0", "accept_all_EULA": true, "storage_profile_id": id.unique_id },
    });
    let answer = rest.post(&at, body.clone()).await;
    assert_eq!(answer["succeeded"], true, "{answer}");
    let vm = rest.lab.vcenter.vm("web-0").unwrap();
    assert_eq!(vm.datastore, "LocalDS_1");
    let entity = PbmServerObjectRef::vm(&vm.moref);
    let own =
        client.call(PbmQueryAssociatedProfile { this: profile_manager(), entity }).await.unwrap();
    assert_eq!(own, [id]);

    // Without a datastore that carries the tag nothing can be deployed.
    let at_tag = format!("/api/cis/tagging/tag/{}", tag.as_str().unwrap());
    rest.ask(Method::DELETE, &at_tag, Value::Null).await;
    let mut second = body;
    second["deployment_spec"]["name"] = json!("web-1");
    let answer = rest.post(&at, second).await;
    assert_eq!(answer["succeeded"], false, "{answer}");
}
