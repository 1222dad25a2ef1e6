//! The content library, as a client of the newer spelling sees it.

use http::Method;
use roost_vcenter_sim::{Action, Options, Rule};
use roost_vim_wire::MoRef;
use roost_vim_wire::methods::{Permission, SetEntityPermissions};
use serde_json::{Value, json};

use crate::rest::{DESCRIPTOR, DISK, Rest};

/// A library with the package in it.
async fn with_package(rest: &Rest) -> (String, String) {
    let datastore = rest.lab.vcenter.find("/DC0/datastore/LocalDS_0").unwrap();
    let spec = json!({ "name": "images", "type": "LOCAL",
        "storage_backings": [{ "type": "DATASTORE", "datastore_id": &*datastore.id }] });
    let library = rest.post("/api/content/local-library", spec).await;
    let library = library.as_str().unwrap().to_owned();
    let spec = json!({ "name": "tiny", "library_id": library, "type": "ovf" });
    let item = rest.post("/api/content/library/item", spec).await;
    let item = item.as_str().unwrap().to_owned();
    let session = rest
        .post("/api/content/library/item/update-session", json!({ "library_item_id": item }))
        .await;
    let session = session.as_str().unwrap();
    for (name, content) in [("tiny.ovf", DESCRIPTOR.as_bytes()), ("tiny-disk1.vmdk", DISK)] {
        let at = format!("/api/content/library/item/update-session/{session}/file");
        let file = rest
            .post(&at, json!({ "name": name, "source_type": "PUSH", "size": content.len() }))
            .await;
        assert_eq!(file["status"], "WAITING_FOR_TRANSFER");
        let uri = file["upload_endpoint"]["uri"].as_str().unwrap();
        let path = uri.strip_prefix("http://vc.test").unwrap();
        let (status, _) = rest.send(Method::PUT, path, content.to_vec()).await;
        assert_eq!(status, 200);
    }
    let done = format!("/api/content/library/item/update-session/{session}?action=complete");
    rest.post(&done, Value::Null).await;
    let state = rest.get(&format!("/api/content/library/item/update-session/{session}")).await;
    assert_eq!(state["state"], "DONE");
    (library, item)
}

fn deployment(rest: &Rest, name: &str) -> Value {
    let pool = rest.lab.vcenter.find("/DC0/host/DC0_C0/Resources").unwrap();
    let network = rest.lab.vcenter.find("/DC0/network/DC0_DVPG0").unwrap();
    json!({
        "target": { "resource_pool_id": &*pool.id },
        "deployment_spec": {
            "name": name,
            "accept_all_EULA": true,
            "storage_provisioning": "thin",
            "network_mappings": { "nat": &*network.id },
            "additional_parameters": [{
                "@class": "com.vmware.vcenter.ovf.property_params",
                "type": "PropertyParams",
                "properties": [{ "class_id": "app", "instance_id": "", "id": "hostname", "value": "web-0" }],
            }],
        },
    })
}

#[tokio::test(start_paused = true)]
async fn an_item_is_uploaded_listed_downloaded_and_deleted_with_its_files() {
    let rest = Rest::start(Options::default()).await;
    let (library, item) = with_package(&rest).await;
    let shown = rest.get(&format!("/api/content/library/item/{item}")).await;
    assert_eq!(
        (&shown["type"], &shown["size"]),
        (&json!("ovf"), &json!(DESCRIPTOR.len() + DISK.len()))
    );
    let files = rest.get(&format!("/api/content/library/item/{item}/file")).await;
    let names: Vec<&str> =
        files.as_array().unwrap().iter().filter_map(|file| file["name"].as_str()).collect();
    assert_eq!(names, ["tiny-disk1.vmdk", "tiny.ovf"]);
    let storage = rest.get(&format!("/api/content/library/item/{item}/storage")).await;
    let uri = storage[0]["storage_uris"][0].as_str().unwrap();
    assert!(uri.ends_with(&format!("contentlib-{library}/{item}/tiny-disk1.vmdk")), "{uri}");

    let session = rest
        .post("/api/content/library/item/download-session", json!({ "library_item_id": item }))
        .await;
    let session = session.as_str().unwrap();
    let at = format!("/api/content/library/item/download-session/{session}/file?action=prepare");
    let file = rest.post(&at, json!({ "file_name": "tiny-disk1.vmdk" })).await;
    let uri = file["download_endpoint"]["uri"].as_str().unwrap();
    let (status, bytes) =
        rest.send(Method::GET, uri.strip_prefix("http://vc.test").unwrap(), Vec::new()).await;
    assert_eq!((status, bytes.as_slice()), (200, DISK));

    let before = rest.lab.vcenter.datastore_free("LocalDS_0").unwrap();
    let (status, _) = rest
        .ask(Method::DELETE, &format!("/api/content/local-library/{library}"), Value::Null)
        .await;
    assert_eq!(status, 204);
    let freed = rest.lab.vcenter.datastore_free("LocalDS_0").unwrap() - before;
    assert_eq!(usize::try_from(freed).unwrap(), DESCRIPTOR.len() + DISK.len());
    let (status, _) =
        rest.ask(Method::GET, &format!("/api/content/library/item/{item}"), Value::Null).await;
    assert_eq!(status, 404);
}

#[tokio::test(start_paused = true)]
async fn a_deployed_package_is_a_vm_with_its_disks_card_and_properties() {
    let rest = Rest::start(Options::default()).await;
    let (_, item) = with_package(&rest).await;
    let at = format!("/api/vcenter/ovf/library-item/{item}?action=filter");
    let filtered = rest.post(&at, json!({ "target": {} })).await;
    assert_eq!(filtered["networks"], json!(["nat"]));

    let started = tokio::time::Instant::now();
    let at = format!("/api/vcenter/ovf/library-item/{item}?action=deploy");
    let answer = rest.post(&at, deployment(&rest, "web-0")).await;
    assert_eq!(answer["succeeded"], true, "{answer}");
    assert!(!started.elapsed().is_zero(), "a deployment takes time");
    let vm = rest.lab.vcenter.vm("web-0").unwrap();
    assert_eq!(answer["resource_id"]["id"], json!(&*vm.moref.id));
    assert_eq!((vm.cpus, vm.memory_mb), (2, 512));
    let disks: Vec<i64> = vm
        .devices
        .iter()
        .filter(|device| device.is_disk())
        .filter_map(|disk| disk.capacity_in_kb)
        .collect();
    assert_eq!(disks, [1 << 20, 2 << 20]);
    let card = vm.devices.iter().find(|device| device.is_nic()).unwrap();
    assert_eq!(card.class, "VirtualVmxnet3");
    assert!(vm.extra_config.contains(&("disk.enableUUID".into(), "TRUE".into())));
    let client = rest.lab.login().await;
    let config = client.property(&vm.moref, "config.vAppConfig").await.unwrap();
    let roost_vim_wire::Value::Other(config) = config else { panic!("{config:?}") };
    let property = config.child("property").unwrap();
    assert_eq!(
        (property.text_of("id"), property.text_of("value")),
        (Some("hostname"), Some("web-0"))
    );
    assert_eq!(config.text_of("ovfEnvironmentTransport"), Some("com.vmware.guestInfo"));
    let task = rest
        .lab
        .vcenter
        .tasks()
        .into_iter()
        .find(|task| task.description_id == "ResourcePool.ImportVAppLRO");
    assert!(task.is_some(), "it shows among the tasks");

    let (_, again) = rest.ask(Method::POST, &at, deployment(&rest, "web-0")).await;
    assert_eq!(again["succeeded"], false, "the name is taken: {again}");
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_a_rule_fails_leaves_no_vm_and_says_why() {
    let rest = Rest::start(Options::default()).await;
    let (_, item) = with_package(&rest).await;
    rest.lab
        .vcenter
        .faults()
        .add(Rule::new("ImportVAppLRO", Action::fail_task("NoDiskSpace", "full")));
    let at = format!("/api/vcenter/ovf/library-item/{item}?action=deploy");
    let answer = rest.post(&at, deployment(&rest, "web-0")).await;
    assert_eq!(answer["succeeded"], false);
    assert_eq!(answer["error"]["errors"][0]["error"]["messages"][0]["default_message"], "full");
    assert_eq!(rest.lab.vcenter.vm("web-0"), None);
    rest.lab.vcenter.faults().clear();
    let answer = rest.post(&at, deployment(&rest, "web-0")).await;
    assert_eq!(answer["succeeded"], true, "{answer}");
}

#[tokio::test(start_paused = true)]
async fn the_callers_own_configuration_goes_before_the_descriptor() {
    use base64::Engine as _;
    let rest = Rest::start(Options::default()).await;
    let (_, item) = with_package(&rest).await;
    let xml = "<obj xmlns:vim25=\"urn:vim25\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:type=\"vim25:VirtualMachineConfigSpec\">\
        <uuid>4210a4a8-0000-4000-8000-000000000001</uuid><numCPUs>4</numCPUs><memoryMB>1024</memoryMB>\
        <extraConfig><key>vmservice.namespacedName</key><value xsi:type=\"xsd:string\">ns/web-0</value></extraConfig></obj>";
    let mut body = deployment(&rest, "web-0");
    body["deployment_spec"]["vm_config_spec"] =
        json!({ "provider": "XML", "xml": base64::engine::general_purpose::STANDARD.encode(xml) });
    let at = format!("/api/vcenter/ovf/library-item/{item}?action=deploy");
    let answer = rest.post(&at, body).await;
    assert_eq!(answer["succeeded"], true, "{answer}");
    let vm = rest.lab.vcenter.vm("web-0").unwrap();
    assert_eq!((vm.cpus, vm.memory_mb), (4, 1024));
    assert_eq!(vm.uuid, "4210a4a8-0000-4000-8000-000000000001");
    assert!(vm.extra_config.contains(&("vmservice.namespacedName".into(), "ns/web-0".into())));
}

#[tokio::test(start_paused = true)]
async fn a_subscribed_library_follows_its_source() {
    let rest = Rest::start(Options::default()).await;
    let (library, item) = with_package(&rest).await;
    let publish = json!({ "publish_info": { "authentication_method": "NONE", "published": true } });
    let (status, _) =
        rest.ask(Method::PATCH, &format!("/api/content/local-library/{library}"), publish).await;
    assert_eq!(status, 204);
    let source = rest.get(&format!("/api/content/library/{library}")).await;
    let url = source["publish_info"]["publish_url"].as_str().unwrap();
    let spec = json!({ "name": "mirror", "type": "SUBSCRIBED", "subscription_info": { "authentication_method": "NONE", "subscription_url": url } });
    let mirror = rest.post("/api/content/subscribed-library", spec).await;
    let mirror = mirror.as_str().unwrap();
    let items = rest.get(&format!("/api/content/library/item?library_id={mirror}")).await;
    assert_eq!(items.as_array().unwrap().len(), 1);
    let copy = rest.get(&format!("/api/content/library/item/{}", items[0].as_str().unwrap())).await;
    assert_eq!((&copy["source_id"], &copy["name"]), (&json!(item), &json!("tiny")));
    let spec = json!({ "name": "own", "library_id": mirror, "type": "iso" });
    let (status, _) = rest.ask(Method::POST, "/api/content/library/item", spec).await;
    assert_eq!(status, 400, "items come from the source alone");
    rest.ask(Method::DELETE, &format!("/api/content/library/item/{item}"), Value::Null).await;
    rest.post(&format!("/api/content/subscribed-library/{mirror}?action=sync"), Value::Null).await;
    let items = rest.get(&format!("/api/content/library/item?library_id={mirror}")).await;
    assert_eq!(items, json!([]));
}

/// Gives the user of the REST client a role of the server.
async fn grant(rest: &Rest, entity: &MoRef, role_id: i32) {
    let mut admin = rest.lab.anonymous();
    admin.log_in("admin", "pass").await.unwrap();
    let permission =
        Permission { principal: "user".into(), role_id, propagate: true, ..Permission::default() };
    let set = SetEntityPermissions {
        this: admin.content.authorization_manager.clone().unwrap(),
        entity: entity.clone(),
        permission: vec![permission],
    };
    admin.call(set).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_role_holds_at_every_door() {
    const ADMIN: i32 = -1;
    const READ_ONLY: i32 = -2;
    let rest = Rest::start(Options::default()).await;
    let (library, item) = with_package(&rest).await;
    let vm = rest.lab.vcenter.vm("DC0_H0_VM0").unwrap().moref;
    let folder = rest.lab.vcenter.find("/DC0/vm").unwrap();
    let spec = json!({ "name": "golden", "library": library, "source_vm": &*vm.id,
        "placement": { "folder": &*folder.id } });
    let template = rest.post("/api/vcenter/vm-template/library-items", spec).await;
    let template = template.as_str().unwrap();
    let deploy = format!("/api/vcenter/ovf/library-item/{item}?action=deploy");
    let copy = format!("/api/vcenter/vm-template/library-items/{template}?action=deploy");
    let spec = json!({ "name": "web-1", "placement": { "folder": &*folder.id } });
    let file = "/folder/a.txt?dcPath=DC0&dsName=LocalDS_0";
    let mut user = rest.lab.anonymous();
    user.log_in("user", "pass").await.unwrap();

    let root = user.content.root_folder.clone();
    grant(&rest, &root, READ_ONLY).await;
    let category = json!({ "name": "c", "cardinality": "SINGLE", "associable_types": [] });
    for (method, path, body) in [
        (Method::DELETE, format!("/api/vcenter/vm/{}", vm.id), Value::Null),
        (Method::POST, deploy.clone(), deployment(&rest, "web-0")),
        (Method::POST, copy.clone(), spec.clone()),
        (Method::POST, "/api/content/local-library".into(), json!({ "name": "mine" })),
        (Method::DELETE, format!("/api/content/library/item/{item}"), Value::Null),
        (Method::POST, "/api/cis/tagging/category".into(), category),
    ] {
        let (status, answer) = rest.ask(method, &path, body).await;
        assert_eq!(
            (status, &answer["error_type"]),
            (403, &json!("UNAUTHORIZED")),
            "{path}: {answer}"
        );
    }
    assert_eq!(user.http("PUT", file, "x").await.unwrap().0, 403);
    assert!(rest.lab.vcenter.vm("DC0_H0_VM0").is_some());
    assert!(rest.lab.vcenter.vm("web-0").is_none() && rest.lab.vcenter.vm("web-1").is_none());
    assert_eq!(rest.get("/api/content/library").await, json!([library]), "it can be read");

    // Wherever a deployment goes, its place is asked about.
    grant(&rest, &root, ADMIN).await;
    for place in ["/DC0/host/DC0_C0/Resources", "/DC0/vm", "/DC0/datastore"] {
        let place = rest.lab.vcenter.find(place).unwrap();
        grant(&rest, &place, READ_ONLY).await;
        let (status, _) = rest.ask(Method::POST, &deploy, deployment(&rest, "web-0")).await;
        assert_eq!(status, 403, "{place}");
        grant(&rest, &place, ADMIN).await;
    }
    assert!(rest.lab.vcenter.vm("web-0").is_none());
    assert_eq!(rest.post(&deploy, deployment(&rest, "web-0")).await["succeeded"], true);
    rest.post(&copy, spec).await;
    assert_eq!(user.http("PUT", file, "x").await.unwrap().0, 201);

    // What is taken away from all is refused here too.
    rest.lab.vcenter.deny("VirtualMachine.Inventory.Delete", None);
    let at = format!("/api/vcenter/vm/{}", vm.id);
    assert_eq!(rest.ask(Method::DELETE, &at, Value::Null).await.0, 403);
}
