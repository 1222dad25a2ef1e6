//! Messages as real peers send them, read and written.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

use roost_vim_wire::types::{
    GuestNicInfo, HostDatastoreBrowserSearchResults, ObjectUpdateKind, PropertyChangeOp,
    PropertyFilterSpec, PropertySpec, ResourcePoolRuntimeInfo, RetrieveOptions, TaskInfo,
    TaskInfoState, WaitOptions,
};
use roost_vim_wire::{Method, MoRef, MoType, Reply, Value, decode_reply, encode_request, methods};

fn envelope(body: &str) -> Vec<u8> {
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<soapenv:Envelope xmlns:soapenc="http://schemas.xmlsoap.org/soap/encoding/" xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
<soapenv:Body>{body}</soapenv:Body></soapenv:Envelope>"#
    )
    .into_bytes()
}

fn output<M: Method>(body: &str) -> M::Output {
    match decode_reply::<M>(&envelope(body)).unwrap() {
        Reply::Output(output) => output,
        Reply::Fault(fault) => panic!("a fault: {fault:?}"),
    }
}

/// What stands between `<Body>` and `</Body>`.
fn request<M: Method>(call: &M) -> String {
    let body = String::from_utf8(encode_request(call, None)).unwrap();
    let (_, body) = body.split_once("<Body>").unwrap();
    body.split_once("</Body>").unwrap().0.to_owned()
}

#[test]
fn the_service_content_names_the_managers() {
    let content = output::<methods::RetrieveServiceContent>(
        r#"<RetrieveServiceContentResponse xmlns="urn:vim25"><returnval><rootFolder type="Folder">group-d1</rootFolder><propertyCollector type="PropertyCollector">propertyCollector</propertyCollector>
 <viewManager type="ViewManager">ViewManager</viewManager><about><name>VMware vCenter Server</name><fullName>VMware vCenter Server 6.5.0 build-5973321</fullName>
  <vendor>VMware, Inc.</vendor><version>6.5.0</version><build>5973321</build><osType>linux-amd64</osType><productLineId>vpx</productLineId>
  <apiType>VirtualCenter</apiType><apiVersion>6.5</apiVersion></about><healthUpdateManager type="HealthUpdateManager">x</healthUpdateManager></returnval></RetrieveServiceContentResponse>"#,
    );
    assert_eq!(content.root_folder, MoRef::new(MoType::Folder, "group-d1"));
    assert_eq!(
        (content.about.api_type.as_str(), content.about.api_version.as_str()),
        ("VirtualCenter", "6.5")
    );
    assert_eq!(content.session_manager, None);
}

#[test]
fn a_fault_is_read_by_its_schema_type_and_not_by_its_text() {
    let body = envelope(
        r#"<soapenv:Fault><faultcode>ServerFaultCode</faultcode><faultstring></faultstring><detail>
 <NotAuthenticatedFault xmlns="urn:vim25" xsi:type="NotAuthenticated"><object type="ServiceInstance">ServiceInstance</object><privilegeId>System.View</privilegeId></NotAuthenticatedFault></detail></soapenv:Fault>"#,
    );
    let Reply::Fault(found) = decode_reply::<methods::CurrentTime>(&body).unwrap() else {
        panic!("no fault")
    };
    assert!(found.fault.is("NotAuthenticated") && found.fault.is("NoPermission"));
    assert_eq!(found.fault.text("privilegeId"), Some("System.View"));
    assert_eq!(found.fault.object("object"), Some(MoRef::service_instance()));
}

#[test]
fn an_expired_session_shows_in_the_missing_set_of_a_successful_answer() {
    let result = output::<methods::RetrievePropertiesEx>(
        r#"<RetrievePropertiesExResponse xmlns="urn:vim25"><returnval><objects><obj type="VirtualMachine">vm-62</obj><missingSet><path>name</path><fault><fault xsi:type="NotAuthenticated">
  <object type="VirtualMachine">vm-62</object><privilegeId>System.Read</privilegeId></fault></fault></missingSet></objects></returnval></RetrievePropertiesExResponse>"#,
    );
    let missing = &result.unwrap().objects[0].missing_set[0];
    assert_eq!(missing.path, "name");
    assert!(missing.fault.fault.is("NotAuthenticated"));
}

#[test]
fn property_updates_keep_unset_apart_from_unchanged() {
    let set = output::<methods::WaitForUpdatesEx>(
        r#"<WaitForUpdatesExResponse xmlns="urn:vim25"><returnval><version>-</version><filterSet><filter type="PropertyFilter">session[1]e39226cd</filter><objectSet><kind>enter</kind><obj type="VirtualMachine">vm-62</obj>
   <changeSet><name>name</name><op>assign</op><val xmlns:_XMLSchema-instance="http://www.w3.org/2001/XMLSchema-instance" _XMLSchema-instance:type="xsd:string">DC0_H0_VM0</val></changeSet><changeSet><name>config.annotation</name><op>assign</op></changeSet></objectSet>
 </filterSet><truncated>true</truncated></returnval></WaitForUpdatesExResponse>"#,
    )
    .unwrap();
    assert_eq!((set.version.as_str(), set.truncated), ("-", Some(true)));
    let update = &set.filter_set[0].object_set[0];
    assert_eq!(update.kind, ObjectUpdateKind::Enter);
    assert_eq!(update.change_set[0].val, Some(Value::string("DC0_H0_VM0")));
    assert_eq!(
        (&update.change_set[1].op, &update.change_set[1].val),
        (&PropertyChangeOp::Assign, &None)
    );
    assert_eq!(
        output::<methods::WaitForUpdatesEx>(
            r#"<WaitForUpdatesExResponse xmlns="urn:vim25"></WaitForUpdatesExResponse>"#
        ),
        None
    );
}

fn property(val: &str) -> Value {
    let result = output::<methods::RetrievePropertiesEx>(&format!(
        r#"<RetrievePropertiesExResponse xmlns="urn:vim25"><returnval><objects><obj type="Task">task-79</obj><propSet><name>p</name>{val}</propSet></objects></returnval></RetrievePropertiesExResponse>"#
    ));
    result.unwrap().objects.remove(0).prop_set.remove(0).val
}

#[test]
fn a_task_comes_with_its_result_or_its_error() {
    let done = property(
        r#"<val xsi:type="TaskInfo"><key>task-79</key><task type="Task">task-79</task><name>CloneVm</name><descriptionId>VirtualMachine.cloneVm</descriptionId><entity type="VirtualMachine">vm-62</entity><entityName>vm-62</entityName>
 <state>success</state><cancelled>false</cancelled><cancelable>false</cancelable><result type="VirtualMachine" xsi:type="ManagedObjectReference">vm-81</result><reason xsi:type="TaskReasonUser"><userName>vcsim</userName></reason>
 <queueTime>2026-11-15T19:37:17Z</queueTime><startTime>2026-11-15T19:37:17Z</startTime><eventChainId>0</eventChainId></val>"#,
    );
    let info: &TaskInfo = done.as_data().unwrap();
    assert_eq!(info.state, TaskInfoState::Success);
    assert_eq!(info.result.as_ref().and_then(Value::as_ref), Some(&MoRef::vm("vm-81")));
    assert_eq!(info.reason.user_name.as_deref(), Some("vcsim"));

    let failed = property(
        r#"<val xsi:type="TaskInfo"><state>error</state><error><fault xsi:type="InvalidPowerState"><requestedState>poweredOff</requestedState><existingState>poweredOff</existingState></fault><localizedMessage>*types.InvalidPowerState</localizedMessage></error></val>"#,
    );
    let error = failed.as_data::<TaskInfo>().unwrap().error.as_ref().unwrap();
    assert!(error.fault.is("InvalidState"));
    assert_eq!(error.fault.text("existingState"), Some("poweredOff"));
}

#[test]
fn capacity_files_and_addresses_come_out_typed() {
    let runtime = property(
        r#"<val xsi:type="ResourcePoolRuntimeInfo"><memory><reservationUsed>0</reservationUsed><unreservedForVm>1007681536</unreservedForVm></memory><cpu><unreservedForVm>4121</unreservedForVm></cpu><overallStatus>green</overallStatus></val>"#,
    );
    let runtime: &ResourcePoolRuntimeInfo = runtime.as_data().unwrap();
    assert_eq!(
        (runtime.memory.unreserved_for_vm, runtime.cpu.unreserved_for_vm),
        (1_007_681_536, 4121)
    );

    let search = property(
        r#"<val xsi:type="HostDatastoreBrowserSearchResults"><datastore type="Datastore">datastore-59</datastore><folderPath>[LocalDS_0] iso/a/b</folderPath>
 <file xsi:type="IsoImageFileInfo"><path>boot.iso</path><fileSize>9</fileSize><modification>2026-11-15T19:37:18Z</modification></file></val>"#,
    );
    let file = &search.as_data::<HostDatastoreBrowserSearchResults>().unwrap().file[0];
    assert_eq!(
        (file.class.as_str(), file.path.as_str(), file.file_size),
        ("IsoImageFileInfo", "boot.iso", Some(9))
    );

    // The same data has two shapes: below `guest` it is a field, at `guest.net` an array.
    let nics = property(
        r#"<val xsi:type="ArrayOfGuestNicInfo"><GuestNicInfo><ipAddress>10.0.0.1</ipAddress><connected>true</connected><deviceConfigId>4000</deviceConfigId></GuestNicInfo></val>"#,
    );
    let guest = property(
        r#"<val xsi:type="GuestInfo"><net><ipAddress>10.0.0.1</ipAddress><connected>true</connected><deviceConfigId>4000</deviceConfigId></net><guestState>running</guestState></val>"#,
    );
    assert_eq!(guest.get("net"), Some(nics.clone()));
    assert_eq!(nics.data_items::<GuestNicInfo>().count(), 1);
}

#[test]
fn events_keep_what_only_their_class_has() {
    let events = output::<methods::QueryEvents>(
        r#"<QueryEventsResponse xmlns="urn:vim25"><returnval xsi:type="VmBeingClonedEvent"><key>58</key><chainId>58</chainId><createdTime>2026-11-15T19:37:17.248039451Z</createdTime><userName>user</userName>
 <datacenter><name>DC0</name><datacenter type="Datacenter">datacenter-1</datacenter></datacenter><vm><name>tmpl-debian12</name><vm type="VirtualMachine">vm-62</vm></vm>
 <fullFormattedMessage>Cloning</fullFormattedMessage><template>false</template><destFolder><name>vm</name><folder type="Folder">group-2</folder></destFolder>
 <destName>worker-3</destName></returnval></QueryEventsResponse>"#,
    );
    let event = &events[0];
    assert_eq!((event.class.as_str(), event.key), ("VmBeingClonedEvent", 58));
    assert_eq!(event.vm.as_ref().unwrap().vm, Some(MoRef::vm("vm-62")));
    assert_eq!(event.text("destName"), Some("worker-3"));
}

#[test]
fn requests_stand_in_schema_order() {
    let view = MoRef::new(MoType::ContainerView, "session[1]741da674");
    let spec = PropertyFilterSpec::of_view(
        &view,
        vec![PropertySpec::new("VirtualMachine", &["name", "runtime.powerState"])],
    );
    let collector = MoRef::new(MoType::PropertyCollector, "propertyCollector");
    let read = methods::RetrievePropertiesEx {
        this: collector.clone(),
        spec_set: vec![spec],
        options: RetrieveOptions { max_objects: Some(2) },
    };
    assert_eq!(
        request(&read),
        r#"<RetrievePropertiesEx xmlns="urn:vim25"><_this type="PropertyCollector">propertyCollector</_this><specSet><propSet><type>VirtualMachine</type><pathSet>name</pathSet><pathSet>runtime.powerState</pathSet></propSet><objectSet><obj type="ContainerView">session[1]741da674</obj><skip>true</skip><selectSet xsi:type="TraversalSpec"><type>ContainerView</type><path>view</path></selectSet></objectSet></specSet><options><maxObjects>2</maxObjects></options></RetrievePropertiesEx>"#
    );
    let wait = methods::WaitForUpdatesEx {
        this: collector,
        version: Some("P".into()),
        options: Some(WaitOptions { max_wait_seconds: Some(5), max_object_updates: Some(2) }),
    };
    assert_eq!(
        request(&wait),
        r#"<WaitForUpdatesEx xmlns="urn:vim25"><_this type="PropertyCollector">propertyCollector</_this><version>P</version><options><maxWaitSeconds>5</maxWaitSeconds><maxObjectUpdates>2</maxObjectUpdates></options></WaitForUpdatesEx>"#
    );
    // `options` of a retrieve is required even when it says nothing.
    assert!(
        request(&methods::RetrievePropertiesEx::default())
            .ends_with("<options></options></RetrievePropertiesEx>")
    );
}

#[test]
fn passwords_are_written_but_never_shown() {
    let login = methods::Login {
        this: MoRef::new(MoType::SessionManager, "SessionManager"),
        user_name: "user".into(),
        password: roost_vim_wire::types::Password("s3cret<".into()),
        locale: Some("en_US".into()),
    };
    assert!(request(&login).contains("<password>s3cret&lt;</password><locale>en_US</locale>"));
    assert!(!format!("{login:?}").contains("s3cret"));
}

#[test]
fn a_server_from_the_future_is_understood_as_far_as_it_goes() {
    let value = property(
        r#"<val xsi:type="QuantumInfo"><spin>up</spin><pair type="VirtualMachine">vm-1</pair></val>"#,
    );
    assert_eq!(value.type_name(), "QuantumInfo");
    assert_eq!(value.get("pair"), Some(Value::Ref(MoRef::vm("vm-1"))));
    let state = property(r#"<val xsi:type="VirtualMachinePowerState">hibernated</val>"#);
    assert_eq!(state.as_str(), Some("hibernated"));
    let info = property(
        r#"<val xsi:type="TaskInfo"><state></state><progress>many</progress><queueTime>soon</queueTime><flux/></val>"#,
    );
    assert_eq!(info.as_data::<TaskInfo>().unwrap().state, TaskInfoState::Other("".into()));
}

/// What the hatchery, the forge and the VM controller call between them.
#[test]
fn every_call_that_the_front_doors_need_is_there() {
    let needed = "RetrieveServiceContent Login Logout CurrentTime SessionIsActive AcquireGenericServiceTicket
        CreateContainerView CreateListView ModifyListView DestroyView RetrievePropertiesEx ContinueRetrievePropertiesEx
        CreatePropertyCollector CreateFilter DestroyPropertyFilter DestroyPropertyCollector WaitForUpdatesEx
        CancelWaitForUpdates FindByInventoryPath FindByUuid FindChild FindByIp CloneVM_Task CreateVM_Task ReconfigVM_Task
        CustomizeVM_Task PowerOnVM_Task PowerOffVM_Task ResetVM_Task SuspendVM_Task ShutdownGuest RebootGuest StandbyGuest
        Rename_Task MarkAsTemplate MarkAsVirtualMachine Destroy_Task CreateSnapshot_Task RevertToSnapshot_Task
        RemoveSnapshot_Task RelocateVM_Task UpgradeVM_Task AcquireTicket QueryConfigOption QueryConfigOptionEx
        QueryConfigTarget PlaceVm PlaceVmsXCluster CreateFolder CreateResourcePool UpdateConfig RecommendDatastores
        MakeDirectory DeleteDatastoreFile_Task MoveDatastoreFile_Task SearchDatastore_Task CopyVirtualDisk_Task
        StartProgramInGuest ListProcessesInGuest TerminateProcessInGuest ReadEnvironmentVariableInGuest
        ValidateCredentialsInGuest InitiateFileTransferToGuest InitiateFileTransferFromGuest QueryEvents
        CreateCollectorForEvents SetCollectorPageSize ReadNextEvents ReadPreviousEvents RewindCollector ResetCollector
        DestroyCollector AddCustomFieldDef SetField CancelTask CreateTask";
    for name in needed.split_whitespace() {
        assert!(methods::by_name(name).is_some(), "{name}");
    }
}
