use std::path::PathBuf;

use roost_vcenter_sim::Options;
use roost_vim_wire::methods::{
    CopyVirtualDiskTask, DeleteDatastoreFileTask, MakeDirectory, MoveDatastoreFileTask,
    SearchDatastoreSubFoldersTask, SearchDatastoreTask,
};
use roost_vim_wire::types::{
    FileInfo, FileQueryFlags, HostDatastoreBrowserSearchResults, HostDatastoreBrowserSearchSpec,
};
use roost_vim_wire::{Fault, MoRef};

use crate::story::{Story, instant};

async fn make(story: &Story, path: &str, parents: bool) -> Result<(), Fault> {
    let call = MakeDirectory {
        this: story.client.content.file_manager.clone().unwrap(),
        name: path.into(),
        datacenter: Some(story.find("/DC0").await),
        create_parent_directories: Some(parents),
    };
    story.client.call(call).await
}

async fn search(story: &Story, path: &str, pattern: &str) -> Result<Vec<FileInfo>, Fault> {
    let datastore = story.find("/DC0/datastore/LocalDS_0").await;
    let browser = story.property(&datastore, "browser").await.unwrap().as_ref().cloned().unwrap();
    let call = SearchDatastoreTask {
        this: browser,
        datastore_path: path.into(),
        search_spec: Some(details(pattern)),
    };
    let task = story.client.call(call).await?;
    let result = story.client.finish(&task).await?.unwrap();
    Ok(result.as_data::<HostDatastoreBrowserSearchResults>().unwrap().file.clone())
}

fn details(pattern: &str) -> HostDatastoreBrowserSearchSpec {
    HostDatastoreBrowserSearchSpec {
        details: Some(FileQueryFlags {
            file_type: true,
            file_size: true,
            modification: true,
            file_owner: true,
        }),
        match_pattern: vec![pattern.into()],
        ..Default::default()
    }
}

async fn put(story: &Story, path: &str, content: &str) -> u16 {
    let place = format!("/folder/{path}?dcPath=%2FDC0&dsName=LocalDS_0");
    story.client.http("PUT", &place, content).await.unwrap().0.as_u16()
}

async fn get(story: &Story, path: &str) -> (u16, String) {
    let place = format!("/folder/{path}?dcPath=%2FDC0&dsName=LocalDS_0");
    let (status, body) = story.client.http("GET", &place, "").await.unwrap();
    (status.as_u16(), body)
}

async fn story_of_files(story: &Story) {
    assert_eq!(put(story, "iso/boot.iso", "image").await, 404, "the directory must be there");
    make(story, "[LocalDS_0] iso/a", false).await.unwrap_err();
    make(story, "[LocalDS_0] iso/a", true).await.unwrap();
    make(story, "[LocalDS_0] iso/a", true).await.unwrap();
    assert_eq!(
        make(story, "[LocalDS_0] iso/a", false).await.unwrap_err().class,
        "FileAlreadyExists"
    );
    assert_eq!(make(story, "[Nowhere] x", true).await.unwrap_err().class, "InvalidDatastore");
    let free = story.lab.vcenter.datastore_free("LocalDS_0").unwrap();
    assert_eq!(put(story, "iso/a/boot%20disk.iso.part", "image").await, 201);
    assert_eq!(put(story, "iso/a/boot%20disk.iso.part", "image2").await, 200);
    assert_eq!(story.lab.vcenter.datastore_free("LocalDS_0"), Some(free - 6));
    assert_eq!(get(story, "iso/a/boot%20disk.iso.part").await, (200, "image2".into()));
    assert_eq!(get(story, "iso/a/none").await.0, 404);
    let (this, datacenter) =
        (story.client.content.file_manager.clone().unwrap(), Some(story.find("/DC0").await));
    let rename = MoveDatastoreFileTask {
        this: this.clone(),
        source_name: "[LocalDS_0] iso/a/boot disk.iso.part".into(),
        source_datacenter: datacenter.clone(),
        destination_name: "[LocalDS_0] iso/a/boot.iso".into(),
        destination_datacenter: None,
        force: Some(true),
    };
    let task = story.client.call(rename).await.unwrap();
    story.client.finish(&task).await.unwrap();
    let found = search(story, "[LocalDS_0] iso/a", "*.iso").await.unwrap();
    assert_eq!(
        (found.len(), found[0].class.as_str(), found[0].path.as_str()),
        (1, "IsoImageFileInfo", "boot.iso")
    );
    assert_eq!(found[0].file_size, Some(6));
    assert!(search(story, "[LocalDS_0] iso/a", "*.img").await.unwrap().is_empty());
    assert_eq!(search(story, "[LocalDS_0] iso/none", "*").await.unwrap_err().class, "FileNotFound");
    let delete = DeleteDatastoreFileTask { this, name: "[LocalDS_0] iso".into(), datacenter };
    let task = story.client.call(delete.clone()).await.unwrap();
    story.client.finish(&task).await.unwrap();
    assert_eq!(story.lab.vcenter.datastore_free("LocalDS_0"), Some(free));
    let task = story.client.call(delete).await.unwrap();
    assert_eq!(story.client.finish(&task).await.unwrap_err().class, "FileNotFound");
}

#[tokio::test(start_paused = true)]
async fn files_come_move_and_go_in_memory() {
    story_of_files(&Story::start(instant()).await).await;
}

struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn scratch(name: &str) -> Scratch {
    let dir =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    Scratch(dir)
}

#[tokio::test(start_paused = true)]
async fn files_come_move_and_go_in_a_directory() {
    let dir = scratch("model-files");
    let story = Story::start(Options { datastore_dir: Some(dir.0.clone()), ..instant() }).await;
    story_of_files(&story).await;
    make(&story, "[LocalDS_0] iso", true).await.unwrap();
    std::fs::write(dir.0.join("LocalDS_0/iso/dropped.iso"), b"by hand").unwrap();
    assert_eq!(get(&story, "iso/dropped.iso").await, (200, "by hand".into()));
    assert_eq!(put(&story, "iso/kept.iso", "content").await, 201);
    assert_eq!(std::fs::read(dir.0.join("LocalDS_0/iso/kept.iso")).unwrap(), b"content");
    assert!(
        search(&story, "[LocalDS_0] debian12", "*.vmdk").await.unwrap().len() > 1,
        "VM files are listed, too"
    );
    drop(story);
    let later = Story::start(Options { datastore_dir: Some(dir.0.clone()), ..instant() }).await;
    assert_eq!(
        get(&later, "iso/kept.iso").await,
        (200, "content".into()),
        "uploads outlive the simulator"
    );
}

#[tokio::test(start_paused = true)]
async fn the_files_of_vms_are_listed_and_go_with_them() {
    let story = Story::start(instant()).await;
    let vm = story.clone_vm("debian12", "worker-1", story.linked().await).await.unwrap();
    let files = search(&story, "[LocalDS_0] worker-1", "*").await.unwrap();
    let seen: Vec<_> = files.iter().map(|file| (file.path.as_str(), file.class.as_str())).collect();
    assert_eq!(seen, [("worker-1.vmdk", "VmDiskFileInfo"), ("worker-1.vmx", "VmConfigFileInfo")]);
    let datastore = story.find("/DC0/datastore/LocalDS_0").await;
    let browser = story.property(&datastore, "browser").await.unwrap().as_ref().cloned().unwrap();
    let call = SearchDatastoreSubFoldersTask {
        this: browser,
        datastore_path: "[LocalDS_0]".into(),
        search_spec: Some(details("*.vmx")),
    };
    let task = story.client.call(call).await.unwrap();
    let results = story.client.finish(&task).await.unwrap().unwrap();
    let folders = results.data_items::<HostDatastoreBrowserSearchResults>().count();
    assert_eq!(folders, 4, "the root, two templates and the clone");
    story.destroy(&vm).await.unwrap();
    assert_eq!(
        search(&story, "[LocalDS_0] worker-1", "*").await.unwrap_err().class,
        "FileNotFound"
    );
}

#[tokio::test(start_paused = true)]
async fn an_unregistered_vm_leaves_its_files_and_a_new_one_takes_another_directory() {
    let story = Story::start(instant()).await;
    let vm = story.clone_vm("debian12", "worker-1", story.linked().await).await.unwrap();
    story.client.call(roost_vim_wire::methods::UnregisterVm { this: vm }).await.unwrap();
    assert!(!story.has_vm("worker-1"));
    assert_eq!(search(&story, "[LocalDS_0] worker-1", "*.vmx").await.unwrap().len(), 1);
    let again = story.clone_vm("debian12", "worker-1", story.linked().await).await.unwrap();
    let path = story.property(&again, "config.files.vmPathName").await.unwrap();
    assert_eq!(path.as_str(), Some("[LocalDS_0] worker-1_1/worker-1.vmx"));
}

#[tokio::test(start_paused = true)]
async fn a_disk_file_is_copied() {
    let story = Story::start(instant()).await;
    make(&story, "[LocalDS_0] copies", false).await.unwrap();
    let this: MoRef = story.client.content.virtual_disk_manager.clone().unwrap();
    let copy = CopyVirtualDiskTask {
        this,
        source_name: "[LocalDS_0] flat/flat.vmdk".into(),
        dest_name: "[LocalDS_0] copies/new.vmdk".into(),
        ..Default::default()
    };
    let task = story.client.call(copy.clone()).await.unwrap();
    story.client.finish(&task).await.unwrap();
    assert_eq!(search(&story, "[LocalDS_0] copies", "*").await.unwrap()[0].path, "new.vmdk");
    let task = story.client.call(copy).await.unwrap();
    assert_eq!(story.client.finish(&task).await.unwrap_err().class, "FileAlreadyExists");
}

#[tokio::test(start_paused = true)]
async fn an_upload_that_does_not_fit_is_refused() {
    let story = Story::start(instant()).await;
    story.lab.vcenter.fill_datastore("LocalDS_0", 3).unwrap();
    assert_eq!(put(&story, "a", "four").await, 507);
    assert_eq!(put(&story, "a", "abc").await, 201);
}
