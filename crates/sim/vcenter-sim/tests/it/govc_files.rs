//! `govc` and the files of a datastore.

use crate::govc::Lab;
use crate::wire_door::instant;
use roost_vcenter_sim::Options;

// Uploads take `-json` here because govc then draws no progress: drawing it, govc panics now and then when the answer
// comes before it has looked at the end of the file.

/// More than fits into any one buffer on the way.
fn image() -> Vec<u8> {
    (0_u32..700_000).flat_map(u32::to_be_bytes).collect()
}

#[test]
fn a_file_comes_back_as_it_went() {
    let Some(lab) = Lab::open_tls(instant()) else { return };
    let (there, back) = (lab.file("there.iso", &image()), lab.path("back.iso"));
    lab.does(&["datastore.mkdir", "-p", "iso/a b/c"]);
    lab.does(&["datastore.upload", "-json", &there, "iso/a b/c/boot image.iso"]);
    let listed = lab.lines(&["datastore.ls", "-l", "iso/a b/c"]);
    assert!(
        listed[0].starts_with("2.7MB ") && listed[0].ends_with(" boot image.iso"),
        "{listed:?}"
    );
    let said = lab.says(&["datastore.download", "iso/a b/c/boot image.iso", &back]);
    assert!(said.contains("Downloading... OK"), "{said}");
    assert!(std::fs::read(&back).unwrap() == image(), "the content differs");

    let shorter = lab.file("shorter.iso", b"replaced");
    lab.does(&["datastore.upload", "-json", &shorter, "iso/a b/c/boot image.iso"]);
    assert_eq!(lab.says(&["datastore.download", "iso/a b/c/boot image.iso", "-"]), "replaced");
}

#[test]
fn files_and_folders_are_listed_moved_and_removed() {
    let Some(lab) = Lab::open(instant()) else { return };
    let file = lab.file("f", b"0123456789");
    lab.does(&["datastore.mkdir", "iso"]);
    for name in ["iso/a.iso", "iso/b.iso", "iso/c.txt"] {
        lab.does(&["datastore.upload", "-json", &file, name]);
    }
    assert_eq!(lab.sorted(&["datastore.ls", "iso"]), ["a.iso", "b.iso", "c.txt"]);
    assert_eq!(lab.sorted(&["datastore.ls", "iso/*.iso"]), ["a.iso", "b.iso"]);
    let json = lab.json(&["datastore.ls", "-l", "iso"]);
    assert_eq!(json[0]["folderPath"], "[LocalDS_0] iso");
    assert!(json[0]["file"].as_array().unwrap().iter().all(|file| file["fileSize"] == 10));

    lab.does(&["datastore.mkdir", "old"]);
    lab.does(&["datastore.mv", "iso/a.iso", "old/z.iso"]);
    assert_eq!(lab.lines(&["datastore.ls", "old"]), ["z.iso"]);
    let taken = lab.refused(&["datastore.mv", "iso/b.iso", "old/z.iso"]);
    assert!(taken.contains("already exists"), "{taken}");
    lab.does(&["datastore.mv", "-f", "iso/b.iso", "old/z.iso"]);
    assert_eq!(lab.lines(&["datastore.ls", "iso"]), ["c.txt"]);

    let all = lab.says(&["datastore.ls", "-R"]);
    assert!(all.contains("[LocalDS_0] old:\nz.iso\n"), "{all}");
    assert!(all.contains("[LocalDS_0] DC0_H0_VM0:\nDC0_H0_VM0.vmdk\nDC0_H0_VM0.vmx\n"), "{all}");
    lab.does(&["datastore.rm", "old/z.iso"]);
    lab.does(&["datastore.rm", "iso"]);
    assert!(!lab.lines(&["datastore.ls"]).contains(&"iso".into()));
    lab.does(&["datastore.rm", "-f", "old/z.iso"]);
}

#[test]
fn what_is_missing_or_in_the_way_is_named() {
    let Some(lab) = Lab::open(instant()) else { return };
    lab.does(&["datastore.mkdir", "iso"]);
    for (args, complaint) in [
        (&["datastore.mkdir", "iso"][..], "already exists"),
        (&["datastore.mkdir", "x/y"], "not found: [LocalDS_0] x/y"),
        (&["datastore.rm", "iso/none.iso"], "not found: [LocalDS_0] iso/none.iso"),
        (&["datastore.ls", "nowhere"], "[LocalDS_0]/nowhere was not found"),
        (&["datastore.mv", "iso/none.iso", "iso/other.iso"], "not found: [LocalDS_0] iso/none.iso"),
        (&["datastore.download", "iso/none.iso", "-"], "404 Not Found"),
        (&["datastore.ls", "-ds", "elsewhere"], "datastore 'elsewhere' not found"),
    ] {
        let said = lab.refused(args);
        assert!(said.contains(complaint), "{args:?}: {said}");
    }
}

#[test]
fn a_datastore_that_is_full_takes_no_more() {
    let Some(lab) = Lab::open(Options { vms: 0, datastore_gb: Some(12), ..instant() }) else {
        return;
    };
    let file = lab.file("f", &vec![7; 1 << 20]);
    lab.does(&["datastore.upload", "-json", &file, "one"]);
    let place = ["-pool", "DC0_C0/Resources", "-net", "VM Network", "-on=false"];
    let said = lab
        .refused(&[&["vm.create", "-disk.thick", "-disk", "20GB"], &place[..], &["big"]].concat());
    assert!(said.contains("Insufficient disk space on datastore 'LocalDS_0'"), "{said}");
    assert_eq!(lab.says(&["ls", "vm/big"]), "");
}
