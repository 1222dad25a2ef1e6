use roost_vim::wire::types::{Hidden, VirtualMachineRelocateSpec};
use roost_vim::wire::{MoType, types};
use roost_vim::{
    Customization, DeviceError, Faulted, Reconfigure, Remedy, VmError, grow_disk, move_nic,
    unlimited_pool,
};

use crate::lab::Lab;

#[tokio::test(start_paused = true)]
async fn a_warm_spare_is_claimed_in_one_request() {
    let lab = Lab::start().await;
    let vm = lab
        .client
        .clone_vm(&lab.template().await, &lab.clone_request("spare-1").await)
        .await
        .unwrap();
    lab.vcenter.reset_counters();
    let claim = Reconfigure {
        name: Some("worker-7".into()),
        annotation: Some("job 7".into()),
        cpus: Some(8),
        memory_mb: Some(16384),
        extra_config: vec![("guestinfo.job".into(), Hidden("7".into()))],
        ..Reconfigure::default()
    };
    lab.client.reconfigure(&vm, &claim).await.unwrap();
    assert_eq!(lab.calls("ReconfigVM_Task"), 1);
    let facts = lab.client.template_facts(&vm).await.unwrap();
    assert_eq!((facts.name.as_str(), facts.cpus, facts.memory_mb), ("worker-7", 8, 16384));
    assert_eq!(lab.annotation(&vm).await, "job 7");
}

#[tokio::test(start_paused = true)]
async fn of_two_claims_on_one_version_one_wins() {
    let lab = Lab::start().await;
    let vm = lab.vm("DC0_H0_VM0").await;
    let read = lab.client.properties(&vm, &["config.changeVersion"]).await.unwrap();
    let claim = |job: &str| Reconfigure {
        change_version: read.str("config.changeVersion").map(Into::into),
        ..Reconfigure::annotation(job)
    };
    lab.client.reconfigure(&vm, &claim("job 1")).await.unwrap();
    let error = lab.client.reconfigure(&vm, &claim("job 2")).await.unwrap_err();
    assert!(error.is_fault("ConcurrentAccess"), "{error:?}");
    assert_eq!(lab.annotation(&vm).await, "job 1");
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_to_a_change_is_no_matter() {
    let lab = Lab::start().await;
    let vm = lab.vm("DC0_H0_VM0").await;
    let rule = lab.lose_answer_of("ReconfigVM_Task");
    lab.client.reconfigure(&vm, &Reconfigure::annotation("kept")).await.unwrap();
    assert_eq!(lab.fired(rule), 1);
    assert_eq!(lab.annotation(&vm).await, "kept");
    lab.client.reconfigure(&vm, &Reconfigure::annotation("")).await.unwrap();
    assert_eq!(lab.annotation(&vm).await, "", "an empty annotation clears it");
}

#[tokio::test(start_paused = true)]
async fn disks_grow_and_cards_move() {
    let lab = Lab::start().await;
    let vm = lab
        .client
        .clone_vm(&lab.template().await, &lab.clone_request("worker-1").await)
        .await
        .unwrap();
    let devices = lab.client.devices(&vm).await.unwrap();
    let disk = devices.iter().find(|device| device.is_disk()).unwrap();
    let card = devices.iter().find(|device| device.is_nic()).unwrap();
    assert!(matches!(grow_disk(disk, 1 << 20), Err(DeviceError::Shrink { .. })));
    let network = lab.finder.network("DC0_DVPG0").await.unwrap().moref;
    let backing = lab.client.network_backing(&network).await.unwrap();
    let change = Reconfigure {
        devices: vec![grow_disk(disk, 50 << 30).unwrap().unwrap(), move_nic(card, &backing)],
        ..Reconfigure::default()
    };
    lab.client.reconfigure(&vm, &change).await.unwrap();
    let facts = lab.client.template_facts(&vm).await.unwrap();
    assert_eq!(facts.disks[0].capacity_in_kb, Some(50 << 20));
    let read = lab.client.properties(&vm, &["network"]).await.unwrap();
    assert_eq!(read.refs("network"), [network]);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_is_told_with_who_has_it() {
    let lab = Lab::start().await;
    let (vm, other) = (lab.vm("DC0_H0_VM0").await, lab.vm("DC0_H0_VM1").await);
    for error in [
        lab.client.rename(&vm, "DC0_H0_VM1").await.unwrap_err(),
        lab.client
            .reconfigure(
                &vm,
                &Reconfigure { name: Some("DC0_H0_VM1".into()), ..Reconfigure::default() },
            )
            .await
            .unwrap_err(),
    ] {
        let VmError::NameTaken { existing, .. } = &error else { panic!("{error:?}") };
        assert_eq!(*existing, other);
        assert_eq!(error.remedy(), Remedy::GiveUp);
    }
    lab.client.rename(&vm, "a/b").await.unwrap();
    assert_eq!(lab.finder.vm("a%2fb").await.unwrap().moref, vm);
    let rule = lab.lose_answer_of("Rename_Task");
    lab.client.rename(&vm, "worker-1").await.unwrap();
    assert_eq!(lab.fired(rule), 1);
    assert_eq!(lab.vm("worker-1").await, vm);
}

#[tokio::test(start_paused = true)]
async fn templates_and_vms_change_into_each_other() {
    let lab = Lab::start().await;
    let vm = lab.vm("DC0_C0_RP0_VM0").await;
    let pool = lab.finder.resource_pool("DC0_C0").await.unwrap().moref;
    for _ in 0..2 {
        lab.client.mark_as_template(&vm).await.unwrap();
    }
    assert_eq!(lab.finder.template("DC0_C0_RP0_VM0").await.unwrap().moref, vm);
    for _ in 0..2 {
        lab.client.mark_as_virtual_machine(&vm, &pool, None).await.unwrap();
    }
    lab.client.power_on(&vm, None).await.unwrap();
    let error = lab.client.mark_as_template(&vm).await.unwrap_err();
    assert!(error.is_fault("InvalidPowerState"), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn folders_pools_and_fields_are_there_after_they_were_asked_for() {
    let lab = Lab::start().await;
    let client = &lab.client;
    let root = lab.finder.vm_folder("").await.unwrap().moref;
    let rule = lab.lose_answer_of("CreateFolder");
    let folder = client.ensure_folder(&root, "ci").await.unwrap();
    assert_eq!(lab.fired(rule), 1);
    assert_eq!(client.ensure_folder(&root, "ci").await.unwrap(), folder);
    let taken = client.ensure_folder(&root, "DC0_H0_VM0").await.unwrap_err();
    assert!(matches!(taken, VmError::NameTaken { .. }), "{taken}");
    let parent = lab.finder.resource_pool("DC0_C0").await.unwrap().moref;
    let pool = client.ensure_resource_pool(&parent, "ci", unlimited_pool()).await.unwrap();
    assert_eq!(client.ensure_resource_pool(&parent, "ci", unlimited_pool()).await.unwrap(), pool);
    let field = client.ensure_custom_field("owner", Some(&MoType::VirtualMachine)).await.unwrap();
    assert_eq!(client.ensure_custom_field("owner", None).await.unwrap().key, field.key);
    let vm = lab.vm("DC0_H0_VM0").await;
    client.set_custom_field(&vm, field.key, "roost").await.unwrap();
    let read = client.properties(&vm, &["customValue"]).await.unwrap();
    let values: Vec<&types::CustomFieldValue> =
        read.get("customValue").unwrap().data_items().collect();
    assert_eq!(values[0].value.as_deref(), Some("roost"));
}

#[tokio::test(start_paused = true)]
async fn a_vm_is_moved_customized_and_upgraded() {
    let lab = Lab::start().await;
    let vm = lab
        .client
        .clone_vm(&lab.template().await, &lab.clone_request("worker-1").await)
        .await
        .unwrap();
    let host = lab.finder.host("DC0_C0_H1").await.unwrap().moref;
    let to = VirtualMachineRelocateSpec { host: Some(host.clone()), ..Default::default() };
    lab.client.relocate(&vm, to).await.unwrap();
    let read = lab.client.properties(&vm, &["runtime.host"]).await.unwrap();
    assert_eq!(read.moref("runtime.host"), Some(&host));
    lab.client.customize(&vm, &Customization::linux("local")).await.unwrap();
    for _ in 0..2 {
        lab.client.upgrade(&vm, Some("vmx-21")).await.unwrap();
    }
}
