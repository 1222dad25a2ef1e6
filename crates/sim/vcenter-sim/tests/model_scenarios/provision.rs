//! Ways to a VM beside a clone, questions before it, and who may ask.

use std::time::Duration;

use http_body_util::BodyExt as _;
use roost_vcenter_sim::GuestBehaviour;
use roost_vim_wire::methods::{
    AcquireCloneTicket, CancelTask, CheckVmConfigTask, CloneSession, CreateContainerView,
    CreateCustomizationSpec, CurrentTime, DeleteCustomizationSpec, DoesCustomizationSpecExist,
    DuplicateCustomizationSpec, GetCustomizationSpec, InstantCloneTask, Logout,
    OverwriteCustomizationSpec, PromoteDisksTask, RenameCustomizationSpec,
};
use roost_vim_wire::types::{
    VirtualDevice, VirtualDeviceBackingInfo, VirtualDeviceConfigSpec,
    VirtualDeviceConfigSpecOperation, VirtualDeviceConnectInfo, VirtualMachineConfigSpec,
    VirtualMachineInstantCloneSpec,
};
use roost_vim_wire::{Element, MoRef, MoType, Reply, decode_reply, encode_request};

use crate::story::{Story, instant, is_on, named, options};

fn promote(vm: &MoRef) -> PromoteDisksTask {
    PromoteDisksTask { this: vm.clone(), unlink: true, disks: Vec::new() }
}

async fn has_parent(story: &Story, vm: &MoRef) -> bool {
    let layout = story.property(vm, "layoutEx.disk").await.unwrap();
    format!("{layout:?}").matches("DiskUnit").count() > 1
}

#[tokio::test(start_paused = true)]
async fn promoting_disks_takes_time_and_can_be_cancelled() {
    let story = Story::start(options()).await;
    let vm = story.worker("worker-1").await;
    assert!(has_parent(&story, &vm).await, "a linked clone shares a disk");
    let task = story.client.call(promote(&vm)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    story.client.call(CancelTask { this: task.clone() }).await.unwrap();
    assert_eq!(story.client.finish(&task).await.unwrap_err().class, "RequestCanceled");
    assert!(has_parent(&story, &vm).await, "nothing has changed");
    let before = tokio::time::Instant::now();
    let task = story.client.call(promote(&vm)).await.unwrap();
    story.client.finish(&task).await.unwrap();
    assert!(tokio::time::Instant::now() > before);
    assert!(!has_parent(&story, &vm).await, "the disk is its own");
}

#[tokio::test(start_paused = true)]
async fn an_instant_clone_runs_beside_its_source() {
    let story = Story::start(instant()).await;
    let source = story.worker("worker-1").await;
    let spec = VirtualMachineInstantCloneSpec { name: "fork".into(), ..Default::default() };
    let call = InstantCloneTask { this: source.clone(), spec };
    let task = story.client.call(call.clone()).await.unwrap();
    story.client.finish(&task).await.unwrap();
    assert!(is_on(&story.vm("fork")) && is_on(&story.vm("worker-1")));
    story.power_off(&source).await.unwrap();
    let refused = story.client.call(call).await.unwrap_err();
    assert_eq!(refused.class, "InvalidPowerState", "only a running VM can be forked");
}

#[tokio::test(start_paused = true)]
async fn a_configuration_is_judged_without_being_tried() {
    let story = Story::start(instant()).await;
    let vm = story.worker("worker-1").await;
    let this = MoRef::new("VirtualMachineCompatibilityChecker".into(), "CompatChecker");
    let ask = |cpus: i32, guest: &str| CheckVmConfigTask {
        this: this.clone(),
        vm: Some(vm.clone()),
        spec: VirtualMachineConfigSpec {
            num_cpus: Some(cpus),
            guest_id: Some(guest.into()),
            ..Default::default()
        },
        ..Default::default()
    };
    for (cpus, guest, wanted) in [
        (2, "debian12_64Guest", None),
        (4000, "debian12_64Guest", Some("NotEnoughCpus")),
        (2, "abacus", Some("UnsupportedGuest")),
    ] {
        let task = story.client.call(ask(cpus, guest)).await.unwrap();
        let found = format!("{:?}", story.client.finish(&task).await.unwrap());
        match wanted {
            Some(class) => assert!(found.contains(class), "{cpus} {guest}: {found}"),
            None => assert!(!found.contains("localizedMessage"), "{cpus} {guest}: {found}"),
        }
    }
    assert_eq!(story.vm("worker-1").cpus, 1);
}

/// A VM without a disk that has an image in its drive.
async fn with_image(story: &Story, name: &str, image: &str) -> MoRef {
    let drive = VirtualDevice {
        key: -1,
        controller_key: Some(200),
        backing: Some(VirtualDeviceBackingInfo {
            file_name: Some(image.into()),
            ..VirtualDeviceBackingInfo::of("VirtualCdromIsoBackingInfo")
        }),
        connectable: Some(VirtualDeviceConnectInfo {
            start_connected: true,
            ..VirtualDeviceConnectInfo::default()
        }),
        ..VirtualDevice::of("VirtualCdrom")
    };
    let change = VirtualDeviceConfigSpec {
        operation: Some(VirtualDeviceConfigSpecOperation::Add),
        device: drive,
        ..Default::default()
    };
    let spec = VirtualMachineConfigSpec {
        device_change: if image.is_empty() { Vec::new() } else { vec![change] },
        ..named(name)
    };
    story.create(spec).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_boots_is_an_image_that_is_there_or_the_network_and_nothing_else() {
    let story = Story::start(instant()).await;
    let (there, missing) = ("[LocalDS_0] boot.iso", "[LocalDS_0] missing.iso");
    story.lab.vcenter.put_file(there, "image").unwrap();
    let all = [
        (with_image(&story, "image", there).await, "image", Some(Some(there))),
        (with_image(&story, "missing", missing).await, "missing", None),
        (with_image(&story, "network", "").await, "network", Some(None)),
        (with_image(&story, "nothing", "").await, "nothing", None),
    ];
    let network = GuestBehaviour { boots_from_network: true, ..GuestBehaviour::default() };
    story.lab.vcenter.set_guest_behaviour("network", network).unwrap();
    for (vm, ..) in &all {
        story.power_on(vm).await.unwrap();
    }
    tokio::time::sleep(Duration::from_mins(5)).await;
    let boots = story.lab.vcenter.guest_boots();
    for (vm, name, booted) in &all {
        let seen = boots.iter().find(|boot| boot.vm == *name).map(|boot| boot.iso.as_deref());
        assert_eq!(seen, *booted, "{name}");
        let status = story.property(vm, "guest.toolsStatus").await.unwrap();
        let has_tools = if booted.is_some() { "toolsOk" } else { "toolsNotInstalled" };
        assert_eq!(status.as_str(), Some(has_tools), "{name}");
    }

    // The file comes, and the next boot finds it.
    story.lab.vcenter.put_file(missing, "image").unwrap();
    story.power_off(&all[1].0).await.unwrap();
    story.power_on(&all[1].0).await.unwrap();
    tokio::time::sleep(Duration::from_mins(5)).await;
    let last = story.lab.vcenter.guest_boots().pop().unwrap();
    assert_eq!((last.vm.as_str(), last.iso.as_deref()), ("missing", Some(missing)));
}

fn specification(name: &str, words: &str) -> Element {
    let info = Element::new("info")
        .with_field("name", &name.to_owned())
        .with_field("description", &words.to_owned())
        .with_field("type", &"Linux".to_owned());
    Element::new("item").typed("CustomizationSpecItem").with(info).with(Element::new("spec"))
}

#[tokio::test(start_paused = true)]
async fn a_specification_is_kept_overwritten_renamed_copied_and_deleted() {
    let story = Story::start(instant()).await;
    let (this, client) =
        (story.client.content.customization_spec_manager.clone().unwrap(), &story.client);
    let create =
        |words| CreateCustomizationSpec { this: this.clone(), item: specification("linux", words) };
    let get = async |name: &str| {
        let call = GetCustomizationSpec { this: this.clone(), name: name.into() };
        client.call(call).await.map(|item| item.child("info").unwrap().clone())
    };
    let words = |info: Result<Element, roost_vim_wire::Fault>| {
        info.map(|info| info.text_of("description").unwrap().to_owned())
            .map_err(|fault| fault.class)
    };
    client.call(create("first")).await.unwrap();
    assert_eq!(client.call(create("again")).await.unwrap_err().class, "AlreadyExists");
    let first = get("linux").await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let overwrite =
        OverwriteCustomizationSpec { this: this.clone(), item: specification("linux", "second") };
    client.call(overwrite).await.unwrap();
    let second = get("linux").await.unwrap();
    assert_eq!(second.text_of("description"), Some("second"));
    assert_ne!(first.text_of("changeVersion"), second.text_of("changeVersion"));
    let unknown =
        OverwriteCustomizationSpec { this: this.clone(), item: specification("bsd", "none") };
    assert_eq!(client.call(unknown).await.unwrap_err().class, "NotFound");

    let copy = |name: &str, new: &str| DuplicateCustomizationSpec {
        this: this.clone(),
        name: name.into(),
        new_name: new.into(),
    };
    client.call(copy("linux", "copy")).await.unwrap();
    assert_eq!(client.call(copy("linux", "copy")).await.unwrap_err().class, "AlreadyExists");
    assert_eq!(client.call(copy("bsd", "other")).await.unwrap_err().class, "NotFound");
    let rename = |name: &str, new: &str| RenameCustomizationSpec {
        this: this.clone(),
        name: name.into(),
        new_name: new.into(),
    };
    assert_eq!(client.call(rename("linux", "copy")).await.unwrap_err().class, "AlreadyExists");
    client.call(rename("linux", "debian")).await.unwrap();
    assert_eq!(words(get("debian").await), Ok("second".into()));
    assert_eq!(get("debian").await.unwrap().text_of("name"), Some("debian"));
    assert_eq!(words(get("copy").await), Ok("second".into()));
    assert_eq!(words(get("linux").await), Err("NotFound".into()));
    let delete = || DeleteCustomizationSpec { this: this.clone(), name: "copy".into() };
    client.call(delete()).await.unwrap();
    assert_eq!(client.call(delete()).await.unwrap_err().class, "NotFound");
    let exists = DoesCustomizationSpecExist { this: this.clone(), name: "copy".into() };
    assert!(!client.call(exists).await.unwrap());
    let infos = story.property(&this, "info").await.unwrap();
    assert_eq!(format!("{infos:?}").matches("debian").count(), 1, "{infos:?}");
}

#[tokio::test(start_paused = true)]
async fn a_clone_ticket_opens_one_session_of_the_same_user() {
    let story = Story::start(instant()).await;
    let manager = MoRef::new(MoType::SessionManager, "SessionManager");
    let ticket =
        async || story.client.call(AcquireCloneTicket { this: manager.clone() }).await.unwrap();
    let (first, late) = (ticket().await, ticket().await);
    assert_ne!(first, late);
    let mut stranger = story.lab.anonymous();
    let redeem = |ticket: &str| CloneSession { this: manager.clone(), clone_ticket: ticket.into() };
    let response = stranger.send(encode_request(&redeem(&first), None)).await.unwrap();
    let cookie = response.headers()["set-cookie"].to_str().unwrap().to_owned();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let Ok(Reply::Output(session)) = decode_reply::<CloneSession>(&body) else { panic!() };
    assert_eq!(session.user_name, story.client.session.user_name);
    assert_ne!(session.key, story.client.session.key);
    stranger.cookie = cookie.split(';').next().map(ToOwned::to_owned);
    assert!(stranger.call(CurrentTime { this: MoRef::service_instance() }).await.is_ok());

    let other = story.lab.anonymous();
    assert_eq!(
        other.call(redeem(&first)).await.unwrap_err().class,
        "InvalidLogin",
        "it counts once"
    );
    assert_eq!(other.call(redeem("guess")).await.unwrap_err().class, "InvalidLogin");
    story.client.call(Logout { this: manager.clone() }).await.unwrap();
    assert_eq!(
        other.call(redeem(&late)).await.unwrap_err().class,
        "InvalidLogin",
        "its session has ended"
    );
    assert!(stranger.call(CurrentTime { this: MoRef::service_instance() }).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_view_of_nothing_known_is_refused() {
    let story = Story::start(instant()).await;
    let view = CreateContainerView {
        this: MoRef::new(MoType::ViewManager, "ViewManager"),
        container: MoRef::new(MoType::Folder, "group-d1"),
        kind: vec!["Spaceship".into()],
        recursive: true,
    };
    assert_eq!(story.client.call(view).await.unwrap_err().class, "InvalidArgument");
}
