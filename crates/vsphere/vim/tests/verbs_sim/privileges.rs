use roost_vim::Lacking;

use crate::lab::Lab;

#[tokio::test(start_paused = true)]
async fn what_the_session_lacks_is_told_for_each_object_without_trying() {
    let lab = Lab::start().await;
    let folder = lab.finder.vm_folder("").await.unwrap().moref;
    let pool = lab.finder.resource_pool("DC0_C0").await.unwrap().moref;
    let asked = ["VirtualMachine.Interact.PowerOn", "Resource.AssignVMToPool"];
    let objects = [folder.clone(), pool.clone()];
    let lacking = async || lab.client.lacking_privileges(&objects, &asked).await.unwrap();
    let told = |on_folder: &[&str], on_pool: &[&str]| {
        let lacking = |object: &roost_vim::wire::MoRef, ids: &[&str]| Lacking {
            object: object.clone(),
            privileges: ids.iter().map(ToString::to_string).collect(),
        };
        vec![lacking(&folder, on_folder), lacking(&pool, on_pool)]
    };
    assert_eq!(lacking().await, told(&[], &[]));
    lab.vcenter.deny("VirtualMachine.*", Some(folder.clone()));
    lab.vcenter.deny("Resource.AssignVMToPool", Some(pool.clone()));
    assert_eq!(lacking().await, told(&asked[..1], &asked[1..]));
    lab.vcenter.expire_sessions();
    assert_eq!(lacking().await, told(&asked[..1], &asked[1..]), "asked of the new session");
}
