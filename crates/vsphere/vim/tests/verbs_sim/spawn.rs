//! A worker's life as the hatchery leads it.

use std::net::Ipv4Addr;

use roost_vim::wire::types::Hidden;
use roost_vim::{
    Annotated, CloneVm, Customization, Destroyed, DiskCopy, Environment, Exit, GuestCredentials,
    NicAddress, Program, TemplateUse,
};

use crate::lab::{Lab, within};

#[tokio::test(start_paused = true)]
async fn a_template_becomes_a_worker_that_runs_a_script_and_is_destroyed() {
    let lab = Lab::start().await;
    let (client, template) = (&lab.client, lab.template().await);
    let warnings = template.warnings(&TemplateUse { linked: true, nics: Some(1), guest: true });
    assert_eq!(warnings, [], "{warnings:?}");
    let address = Ipv4Addr::new(10, 0, 0, 10);
    let network = lab.finder.network("DC0_DVPG0").await.unwrap();
    let request = CloneVm {
        disks: DiskCopy::ShareParents,
        cpus: Some(2),
        memory_mb: Some(2048),
        network: Some(client.network_backing(&network.moref).await.unwrap()),
        extra_config: vec![("guestinfo.owner".into(), Hidden("roost".into()))],
        customization: Some(Customization {
            nics: vec![NicAddress::Fixed {
                address,
                subnet_mask: Ipv4Addr::new(255, 255, 255, 0),
                gateways: vec![Ipv4Addr::new(10, 0, 0, 1)],
            }],
            ..Customization::linux("local")
        }),
        power_on: true,
        ..lab.clone_request("worker-1").await
    };
    let vm = client.clone_vm(&template, &request).await.unwrap();
    assert_eq!(
        client.ensure_annotation(&vm, "request of worker-1").await.unwrap(),
        Annotated::Already
    );
    client.wait_for_guest_operations(&vm, within(180)).await.unwrap();
    assert_eq!(
        client.wait_for_address(&vm, Some(address.into()), within(180)).await.unwrap(),
        address
    );

    let managers = client.guest_operations().await.unwrap();
    let guest =
        client.guest(&managers, &vm, GuestCredentials::new("root", "pw")).ready_by(within(60));
    let program =
        Program::bash("exit 0").with_environment(Environment::default().with("CDS_CONFIG", "e30="));
    let Exit { code, .. } = guest.run(&program, within(600)).await.unwrap();
    assert_eq!(code, 0);
    assert_eq!(client.destroy(&vm).await.unwrap(), Destroyed::Now);
    assert!(client.child_named(&request.folder, "worker-1").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_clone_is_what_was_asked_for() {
    let lab = Lab::start().await;
    let (client, template) = (&lab.client, lab.template().await);
    let network = lab.finder.network("VM Network").await.unwrap();
    let request = CloneVm {
        cpus: Some(4),
        memory_mb: Some(8192),
        disk_bytes: Some(40 << 30),
        network: Some(client.network_backing(&network.moref).await.unwrap()),
        extra_config: vec![("guestinfo.a".into(), Hidden("b".into()))],
        ..lab.clone_request("worker-1").await
    };
    let vm = client.clone_vm(&template, &request).await.unwrap();
    let clone = client.template_facts(&vm).await.unwrap();
    assert_eq!((clone.cpus, clone.memory_mb, clone.is_template), (4, 8192, false));
    assert_eq!(clone.disks[0].capacity_in_kb, Some(40 << 20));
    assert_eq!(clone.nics[0].class, template.nics[0].class, "the card keeps its class");
    assert_ne!(
        clone.nics[0].mac_address, template.nics[0].mac_address,
        "and has a MAC address of its own"
    );
    let path = r#"config.extraConfig["guestinfo.a"]"#;
    let read = client.properties(&vm, &["network", path]).await.unwrap();
    assert_eq!(read.refs("network"), [network.moref]);
    assert!(read.get(path).is_some());
}

#[tokio::test(start_paused = true)]
async fn linked_clones_share_the_parents_disk_and_full_ones_do_not() {
    let lab = Lab::start().await;
    let (client, template) = (&lab.client, lab.template().await);
    for (disks, is_linked) in
        [(DiskCopy::Full, false), (DiskCopy::ShareParents, true), (DiskCopy::NewChild, true)]
    {
        let request = CloneVm { disks, ..lab.clone_request(&format!("{disks:?}")).await };
        let vm = client.clone_vm(&template, &request).await.unwrap();
        assert_eq!(
            client.template_facts(&vm).await.unwrap().has_parent_disk(),
            is_linked,
            "{disks:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn customization_without_addresses_is_dhcp_for_every_card() {
    let lab = Lab::start().await;
    let request = CloneVm {
        customization: Some(Customization::linux("local")),
        power_on: true,
        ..lab.clone_request("worker-1").await
    };
    let vm = lab.client.clone_vm(&lab.template().await, &request).await.unwrap();
    lab.client.wait_for_address(&vm, None, within(300)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_never_comes_up_is_told_with_what_was_seen() {
    let lab = Lab::start().await;
    let vm = lab.vm("DC0_H0_VM0").await;
    let error = lab.client.wait_for_guest_operations(&vm, within(180)).await.unwrap_err();
    let told = std::error::Error::source(&error).unwrap().to_string();
    assert!(told.contains("guest.guestOperationsReady"), "{told}");
    lab.client.destroy(&vm).await.unwrap();
    let error = lab.client.wait_for_guest_operations(&vm, within(180)).await.unwrap_err();
    assert_eq!(error.remedy(), roost_vim::Remedy::Gone, "{error}");
}
