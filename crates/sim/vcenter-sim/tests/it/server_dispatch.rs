//! Calls that make no sense, and the plain HTTP around the ones that do.

use crate::lab::{Client, Lab, folder, of_object};
use http::Request;
use http_body_util::BodyExt as _;
use roost_vcenter_sim::{Options, full_body};
use roost_vim_wire::methods::{
    self, CreateFilter, CurrentTime, PowerOnVmTask, RetrievePropertiesEx,
};
use roost_vim_wire::types::{PropertyFilterSpec, PropertySpec, RetrieveOptions};
use roost_vim_wire::{MoRef, MoType, encode_request};

#[tokio::test(start_paused = true)]
async fn what_is_no_call_is_a_fault_and_never_a_panic() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let cut =
        String::from_utf8(encode_request(&CurrentTime { this: MoRef::service_instance() }, None))
            .unwrap();
    let bodies = [
        "",
        "hello",
        "<a/>",
        "<Envelope/>",
        "<Envelope><Body/></Envelope>",
        "<Envelope><Body><CurrentTime/></Body></Envelope>",
        "<Envelope><Body><CurrentTime><_this type='X'></_this></CurrentTime></Body></Envelope>",
        "<!DOCTYPE a [<!ENTITY b 'c'>]><Envelope/>",
        &cut[..cut.len() / 2],
    ];
    for body in bodies {
        let response = client.send(body.as_bytes().to_vec()).await.unwrap();
        assert_eq!(response.status(), 500, "{body}");
        let text = response.into_body().collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&text).contains("InvalidRequestFault"), "{body}");
    }
    assert_eq!(lab.vcenter.counters().panics, 0);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_method_and_an_unknown_object_are_told_apart() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let call = "<Envelope><Body><Frobnicate xmlns='urn:vim25'><_this type='Folder'>group-d1</_this></Frobnicate></Body></Envelope>";
    let response = client.send(call.into()).await.unwrap();
    assert_eq!(response.status(), 500);
    let text = response.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8_lossy(&text);
    assert!(
        text.contains("xsi:type=\"MethodNotFound\"")
            && text.contains("<method>Frobnicate</method>"),
        "{text}"
    );
    let fault =
        client.call(PowerOnVmTask { this: MoRef::vm("vm-999"), host: None }).await.unwrap_err();
    assert_eq!(
        (fault.class.as_str(), fault.object("obj")),
        ("ManagedObjectNotFound", Some(MoRef::vm("vm-999")))
    );
    let fault =
        client.call(PowerOnVmTask { this: folder("group-d1"), host: None }).await.unwrap_err();
    assert_eq!(fault.class, "MethodNotFound", "a folder cannot be powered on");
    let fault = client.call(CurrentTime { this: folder("group-d1") }).await.unwrap_err();
    assert_eq!(fault.class, "MethodNotFound");
}

#[tokio::test(start_paused = true)]
async fn only_posts_reach_the_sdk() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    assert_eq!(client.http("GET", "/sdk", "").await.unwrap().0, 405);
    let (status, body) = client.http("GET", "/sdk/vimServiceVersions.xml", "").await.unwrap();
    assert_eq!(status, 200);
    assert!(body.contains("<name>urn:vim25</name><version>8.0.3.0</version>"), "{body}");
    assert_eq!(client.http("GET", "/", "").await.unwrap().0, 404);
    assert_eq!(
        client.http("GET", "/roost/control/counters", "").await.unwrap().0,
        404,
        "off unless asked for"
    );
    let (status, body) = client.http("GET", "/about", "").await.unwrap();
    assert!(status == 200 && body.contains("CloneVM_Task"));
}

#[tokio::test(start_paused = true)]
async fn large_answers_are_compressed_for_clients_that_take_it() {
    let lab = Lab::start(Options { vms: 200, ..Options::default() }).await;
    let client = lab.login().await;
    let view = client.view("VirtualMachine").await;
    let spec = PropertyFilterSpec::of_view(
        &view,
        vec![PropertySpec::new("VirtualMachine", &["name", "parent"])],
    );
    let options = RetrieveOptions::default();
    let call = RetrievePropertiesEx { this: client.collector(), spec_set: vec![spec], options };
    let answer = |encoding: &'static str, body: Vec<u8>| {
        let request = Request::post("/sdk/vimService")
            .header("cookie", client.cookie.clone().unwrap())
            .header("accept-encoding", encoding);
        let request = request.body(full_body(body)).unwrap();
        let vcenter = lab.vcenter.clone();
        async move {
            let response = vcenter.handle(request).await.unwrap();
            let encoding = response.headers().get("content-encoding").cloned();
            (encoding, response.into_body().collect().await.unwrap().to_bytes())
        }
    };
    let large = encode_request(&call, None);
    let (plain, text) = answer("identity", large.clone()).await;
    assert_eq!(plain, None);
    for accepts in ["gzip", "deflate, gzip;q=0.5", "*"] {
        let (encoding, bytes) = answer(accepts, large.clone()).await;
        assert_eq!(encoding.unwrap(), "gzip");
        assert!(bytes.len() < text.len() / 4 && bytes.starts_with(&[0x1f, 0x8b]), "{accepts}");
    }
    assert_eq!(answer("gzip;q=0, identity", large).await.0, None);
    let small = encode_request(&CurrentTime { this: MoRef::service_instance() }, None);
    assert_eq!(answer("gzip", small).await.0, None, "not worth it");
}

#[tokio::test(start_paused = true)]
async fn calls_and_bytes_are_counted() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    lab.vcenter.reset_counters();
    for _ in 0..3 {
        client.call(CurrentTime { this: MoRef::service_instance() }).await.unwrap();
    }
    client.call(PowerOnVmTask { this: MoRef::vm("vm-999"), host: None }).await.unwrap_err();
    let counters = lab.vcenter.counters();
    assert_eq!((counters.calls_of("CurrentTime"), counters.total_calls()), (3, 4));
    assert_eq!(counters.faults.get("ManagedObjectNotFound"), Some(&1));
    assert!(counters.bytes_in > 800 && counters.bytes_out > 800, "{counters:?}");
    assert_eq!(counters.open_sessions, 1, "what is open is not forgotten");
}

/// An object that has the methods of a receiver.
async fn receiver(client: &Client, kind: &str) -> MoRef {
    let content = &client.content;
    let at = |id: &str| MoRef::new(MoType::from(kind), id);
    let given = |manager: &Option<MoRef>| manager.clone().unwrap();
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    let host = client.find("/DC0/host/DC0_H0/DC0_H0").await;
    let subsystem = async |field: &str| {
        let value = client.property(&host, &format!("configManager.{field}")).await;
        value.unwrap().as_ref().unwrap().clone()
    };
    let history = methods::CreateCollectorForTasks {
        this: given(&content.task_manager),
        ..Default::default()
    };
    let events = methods::CreateCollectorForEvents {
        this: given(&content.event_manager),
        ..Default::default()
    };
    match kind {
        "ServiceInstance" => MoRef::service_instance(),
        "SessionManager" => given(&content.session_manager),
        "AuthorizationManager" => given(&content.authorization_manager),
        "PropertyCollector" => client.collector(),
        "PropertyFilter" => {
            let spec = of_object(&vm, &["name"]);
            let this = client.collector();
            client.call(CreateFilter { this, spec, partial_updates: false }).await.unwrap()
        }
        "ViewManager" => given(&content.view_manager),
        "View" => client.view("VirtualMachine").await,
        "ListView" => {
            let this = given(&content.view_manager);
            client.call(methods::CreateListView { this, obj: vec![vm] }).await.unwrap()
        }
        "SearchIndex" => given(&content.search_index),
        "OptionManager" => given(&content.setting),
        "VirtualMachine" | "ManagedEntity" | "ManagedObject" => vm,
        "VirtualMachineSnapshot" | "Task" => {
            let call =
                methods::CreateSnapshotTask { this: vm, name: "s".into(), ..Default::default() };
            let task = client.call(call).await.unwrap();
            let snapshot = client.finish(&task).await.unwrap().unwrap();
            if kind == "Task" { task } else { snapshot.as_ref().unwrap().clone() }
        }
        "HttpNfcLease" => {
            let off = client.call(methods::PowerOffVmTask { this: vm.clone() }).await.unwrap();
            client.finish(&off).await.unwrap();
            client.call(methods::ExportVm { this: vm }).await.unwrap()
        }
        "VirtualMachineProvisioningChecker" => given(&content.vm_provisioning_checker),
        "VirtualMachineCompatibilityChecker" => given(&content.vm_compatibility_checker),
        "Folder" => client.find("/DC0/vm").await,
        "Datacenter" => client.find("/DC0").await,
        "ComputeResource" => client.find("/DC0/host/DC0_H0").await,
        "ClusterComputeResource" => client.find("/DC0/host/DC0_C0").await,
        "ResourcePool" => client.find("/DC0/host/DC0_C0/Resources").await,
        "VirtualApp" => client.find("/DC0/host/DC0_C0/Resources/DC0_C0_APP0").await,
        "HostSystem" => host,
        "DistributedVirtualSwitch" => client.find("/DC0/network/DVS0").await,
        "DistributedVirtualPortgroup" => client.find("/DC0/network/DC0_DVPG0").await,
        "HostDatastoreBrowser" => {
            let datastore = client.find("/DC0/datastore/LocalDS_0").await;
            client.property(&datastore, "browser").await.unwrap().as_ref().unwrap().clone()
        }
        "EnvironmentBrowser" => {
            let cluster = client.find("/DC0/host/DC0_C0").await;
            let found = client.property(&cluster, "environmentBrowser").await;
            found.unwrap().as_ref().unwrap().clone()
        }
        "CustomFieldsManager" => given(&content.custom_fields_manager),
        "StorageResourceManager" => given(&content.storage_resource_manager),
        "TaskManager" => given(&content.task_manager),
        "TaskHistoryCollector" | "HistoryCollector" => client.call(history).await.unwrap(),
        "EventManager" => given(&content.event_manager),
        "EventHistoryCollector" => client.call(events).await.unwrap(),
        "FileManager" => given(&content.file_manager),
        "VirtualDiskManager" => given(&content.virtual_disk_manager),
        "DatastoreNamespaceManager" => given(&content.datastore_namespace_manager),
        "OvfManager" => given(&content.ovf_manager),
        "VcenterVStorageObjectManager" => given(&content.vstorage_object_manager),
        "PerformanceManager" => given(&content.perf_manager),
        "LicenseManager" => given(&content.license_manager),
        "CustomizationSpecManager" => given(&content.customization_spec_manager),
        "ExtensionManager" => given(&content.extension_manager),
        "HostNetworkSystem" => subsystem("networkSystem").await,
        "HostStorageSystem" => subsystem("storageSystem").await,
        "HostDatastoreSystem" => subsystem("datastoreSystem").await,
        "HostServiceSystem" => subsystem("serviceSystem").await,
        "HostFirewallSystem" => subsystem("firewallSystem").await,
        "HostDateTimeSystem" => subsystem("dateTimeSystem").await,
        "GuestProcessManager" => at("guestOperationsProcessManager"),
        "GuestFileManager" => at("guestOperationsFileManager"),
        "GuestAuthManager" => at("guestOperationsAuthManager"),
        "LicenseAssignmentManager" => at("LicenseAssignmentManager"),
        "VslmServiceInstance" | "PbmServiceInstance" => at("ServiceInstance"),
        "VslmVStorageObjectManager" => at("VStorageObjectManager"),
        "VslmTask" => {
            let call = methods::PowerOffVmTask { this: vm };
            at(&client.call(call).await.unwrap().id)
        }
        "PbmProfileProfileManager" => at("ProfileManager"),
        "PbmComplianceManager" => at("complianceManager"),
        "PbmPlacementSolver" => at("placementSolver"),
        other => panic!("no object of kind {other} is known here"),
    }
}

#[tokio::test(start_paused = true)]
async fn every_method_of_the_table_is_known_to_its_receiver_and_no_call_without_arguments_is_a_defect()
 {
    for method in methods::all() {
        let lab = Lab::start(Options { apps: 1, ..Options::default() }).await;
        let client = lab.login().await;
        let this = receiver(&client, method.receiver).await;
        let body = format!(
            "<Envelope><Body><{0} xmlns='urn:vim25'><_this type='{1}'>{2}</_this></{0}></Body></Envelope>",
            method.name,
            this.kind.as_str(),
            this.id
        );
        // Some wait for what does not come.
        let wait = std::time::Duration::from_mins(1);
        let Ok(response) = tokio::time::timeout(wait, client.send(body.into())).await else {
            assert!(method.name.starts_with("WaitForUpdates"), "{}", method.name);
            continue;
        };
        let text = response.unwrap().into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&text).into_owned();
        for unknown in ["MethodNotFound", "ManagedObjectNotFoundFault", "NotAuthenticated"] {
            let about_this = text.contains(&*this.id) || unknown != "ManagedObjectNotFoundFault";
            assert!(!(text.contains(unknown) && about_this), "{}: {text}", method.name);
        }
        assert_eq!(lab.vcenter.counters().panics, 0, "{}: {text}", method.name);
    }
}
