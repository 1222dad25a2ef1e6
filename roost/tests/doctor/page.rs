//! The page about the doctor shows what the doctor says.

use std::path::Path;

use roost_vim::CloneVm;
use serde_json::json;

use crate::examination::Scene;

const BEGIN: &str = "```text\n";

/// To write the sample anew: `ROOST_WRITE_DOCS=1 cargo test -p roost --test doctor page`.
#[tokio::test]
async fn the_sample_in_the_page_is_what_is_said() {
    let scene = Scene::new("doctor-page");
    let denial = json!({"privilege": "VirtualMachine.Interact.PowerOn", "below": "/DC0/vm"});
    scene.vcenter.control.post("permissions/deny", &denial).await;
    let client = scene.vcenter.client().await;
    let finder = client.finder("DC0").await.unwrap();
    let template = finder.template("debian12").await.unwrap().moref;
    let template = client.template_facts(&template).await.unwrap();
    let folder = finder.vm_folder("").await.unwrap().moref;
    let pool = finder.resource_pool("").await.unwrap().moref;
    let mut request = CloneVm::new(folder, "database", pool);
    request.annotation = Some(r#"{"ip_address":"10.77.0.2"}"#.to_owned());
    client.clone_vm(&template, &request).await.unwrap();
    client.shutdown().await;

    let said = String::from_utf8(scene.doctor(&["-c", "roost.toml"]).stdout).unwrap();
    let cds = scene.cds.url().trim_start_matches("http://");
    let said = said.replace(scene.vcenter.endpoint(), "127.0.0.1:8989");
    let said = said.replace(cds, "127.0.0.1:8081");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/doctor.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let start = page.find(BEGIN).unwrap() + BEGIN.len();
    let end = start + page[start..].find("```").unwrap();
    if std::env::var_os("ROOST_WRITE_DOCS").is_some() {
        std::fs::write(&path, format!("{}{said}{}", &page[..start], &page[end..])).unwrap();
        return;
    }
    assert_eq!(&page[start..end], said, "docs/doctor.md shows something else");
}
