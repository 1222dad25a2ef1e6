use roost_vcenter_sim::{Options, TemplateOptions};
use roost_vim::{CloneVm, DiskCopy, NewSnapshot, Reconfigure, TemplateUse, TemplateWarning};

use crate::lab::Lab;

#[tokio::test(start_paused = true)]
async fn snapshots_are_taken_listed_gone_back_to_and_removed() {
    let lab = Lab::start().await;
    let (client, vm) = (&lab.client, lab.vm("DC0_H0_VM0").await);
    client.reconfigure(&vm, &Reconfigure::annotation("before")).await.unwrap();
    let first = client.create_snapshot(&vm, &NewSnapshot::new("first")).await.unwrap();
    client.reconfigure(&vm, &Reconfigure::annotation("after")).await.unwrap();
    let second = client.create_snapshot(&vm, &NewSnapshot::new("second")).await.unwrap();
    let list = client.snapshots(&vm).await.unwrap();
    assert_eq!(list.current, Some(second.clone()));
    assert_eq!(list.named("second").next().unwrap().parent, Some(first.clone()));
    client.revert_to_snapshot(&first, false).await.unwrap();
    assert_eq!(lab.annotation(&vm).await, "before");
    client.revert_to_current_snapshot(&vm, false).await.unwrap();
    for _ in 0..2 {
        client.remove_snapshot(&second, false).await.unwrap();
    }
    client.remove_all_snapshots(&vm).await.unwrap();
    assert_eq!(client.snapshots(&vm).await.unwrap().all, []);
}

#[tokio::test(start_paused = true)]
async fn a_flat_template_is_told_and_can_be_prepared_for_linked_clones() {
    let flat = TemplateOptions { snapshot: false, ..TemplateOptions::new("flat") };
    let lab = Lab::with_templates(Options::default(), vec![flat]).await;
    let template = lab.finder.template("flat").await.unwrap().moref;
    let linked = TemplateUse { linked: true, ..TemplateUse::default() };
    let facts = lab.client.template_facts(&template).await.unwrap();
    assert_eq!(facts.warnings(&linked), [TemplateWarning::NothingToShare]);
    let pool = lab.finder.resource_pool("DC0_C0").await.unwrap().moref;
    let base = lab.client.prepare_for_linked_clones(&template, &pool, "fleet-base").await.unwrap();
    assert_eq!(
        lab.client.prepare_for_linked_clones(&template, &pool, "fleet-base").await.unwrap(),
        base
    );
    let facts = lab.client.template_facts(&template).await.unwrap();
    assert!(facts.is_template);
    assert_eq!(facts.warnings(&linked), []);
    let request = CloneVm { disks: DiskCopy::NewChild, ..lab.clone_request("worker-1").await };
    let vm = lab.client.clone_vm(&facts, &request).await.unwrap();
    assert!(lab.client.template_facts(&vm).await.unwrap().has_parent_disk());
}
