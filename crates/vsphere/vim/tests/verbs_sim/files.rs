use std::time::Duration;

use bytes::Bytes;
use roost_vcenter_sim::{Action, Rule};
use roost_vim::{
    Datastore, FileError, FileKind, FileSource, Remedy, TransferError, TransferProgress,
    UploadSource,
};
use tokio::sync::watch;

use crate::lab::Lab;

async fn datastore(lab: &Lab) -> Datastore {
    let found = lab.finder.datastore("").await.unwrap();
    lab.client.datastore(lab.finder.datacenter(), &found).await.unwrap()
}

fn iso(byte: u8, length: usize) -> Bytes {
    vec![byte; length].into()
}

#[tokio::test(start_paused = true)]
async fn a_file_is_uploaded_found_read_and_deleted() {
    let lab = Lab::start().await;
    let files = datastore(&lab).await;
    let path = files.path("iso/a b/50%.iso");
    files.upload(&iso(1, 100_000), &path).await.unwrap();
    let found = files.stat(&path).await.unwrap().unwrap();
    assert_eq!((found.kind, found.bytes), (FileKind::Iso, Some(100_000)));
    assert_eq!(files.download(&path).await.unwrap().bytes(1 << 20).await.unwrap(), iso(1, 100_000));
    let below = files.list_below(&files.path("iso"), Some("*.iso")).await.unwrap().unwrap();
    assert_eq!(below.iter().map(|file| &file.path).collect::<Vec<_>>(), [&path]);
    files.delete(&path).await.unwrap();
    files.delete(&path).await.unwrap();
    assert!(!files.exists(&path).await.unwrap());
    assert_eq!(files.list(&files.path("nowhere"), None).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn an_upload_tells_how_far_it_is_and_leaves_only_the_file() {
    let lab = Lab::start().await;
    let files = datastore(&lab).await;
    let (progress, seen) = watch::channel(TransferProgress::default());
    let path = files.path("iso/boot.iso");
    files.upload_with_progress(&iso(1, 5000), &path, &progress).await.unwrap();
    assert_eq!(*seen.borrow(), TransferProgress { moved: 5000, total: Some(5000) });
    files.upload(&iso(2, 7000), &path).await.unwrap();
    let there = files.list(&path.parent(), None).await.unwrap().unwrap();
    assert_eq!(there.len(), 1, "{there:?}");
    assert_eq!(there[0].bytes, Some(7000), "the second took the place of the first");
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_upload_is_sent_again_from_its_start() {
    let lab = Lab::start().await;
    let files = datastore(&lab).await;
    for action in [Action::CutBefore, Action::CutAfter, Action::Status(502), Action::LoseSession] {
        let rule = lab.rule(Rule::new("PUT /folder", action.clone()).once());
        let path = files.path("iso/boot.iso");
        files
            .upload(&iso(3, 9000), &path)
            .await
            .unwrap_or_else(|error| panic!("{action:?}: {error}"));
        assert_eq!(lab.fired(rule), 1, "{action:?}");
        assert_eq!(files.stat(&path).await.unwrap().unwrap().bytes, Some(9000));
        files.delete(&path).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_upload_that_failed_for_good_can_be_made_again() {
    let lab = Lab::start().await;
    let files = datastore(&lab).await;
    let path = files.path("iso/boot.iso");
    let cut = lab.rule(Rule::new("PUT /folder", Action::CutAfter));
    let error = files.upload(&iso(4, 9000), &path).await.unwrap_err();
    assert_eq!(error.remedy(), Remedy::Retry);
    assert!(!files.exists(&path).await.unwrap(), "a half-written file is never in place");
    lab.vcenter.faults().remove(cut);
    files.upload(&iso(4, 9000), &path).await.unwrap();
    let there = files.list(&path.parent(), None).await.unwrap().unwrap();
    assert_eq!(there.len(), 1, "the temporary file of the first attempt is gone: {there:?}");
}

#[tokio::test(start_paused = true)]
async fn silence_on_a_transfer_ends_it() {
    let lab = Lab::start().await;
    let files = datastore(&lab).await;
    lab.rule(Rule::new("* /folder", Action::Hang));
    let error = files.upload(&iso(5, 10), &files.path("a.iso")).await.unwrap_err();
    let FileError::Transfer { source: TransferError::Silent { after }, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(after, Duration::from_mins(1));
    assert!(files.download(&files.path("a.iso")).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_the_move_is_settled_by_looking() {
    let lab = Lab::start().await;
    let files = datastore(&lab).await;
    let rule = lab.lose_answer_of("MoveDatastoreFile_Task");
    let path = files.path("iso/boot.iso");
    let uploaded = files.upload(&iso(6, 4000), &path).await;
    assert_eq!(lab.fired(rule), 1);
    // Either it has been moved by the time we look, or the caller is told that a repetition helps.
    if let Err(error) = uploaded {
        assert_eq!(error.remedy(), Remedy::Retry, "{error}");
        files.upload(&iso(6, 4000), &path).await.unwrap();
    }
    assert_eq!(files.stat(&path).await.unwrap().unwrap().bytes, Some(4000));
}

#[tokio::test(start_paused = true)]
async fn a_local_file_is_streamed_and_its_trouble_is_told_as_such() {
    let lab = Lab::start().await;
    let files = datastore(&lab).await;
    let local = std::env::temp_dir().join(format!("roost-verbs-{}.iso", std::process::id()));
    tokio::fs::write(&local, iso(7, 700_000)).await.unwrap();
    let source = FileSource::new(&local).await.unwrap();
    assert_eq!(source.length(), 700_000);
    let path = files.path("iso/local.iso");
    files.upload(&source, &path).await.unwrap();
    let back = local.with_extension("back");
    assert_eq!(files.download(&path).await.unwrap().save(&back).await.unwrap(), 700_000);
    assert_eq!(tokio::fs::read(&back).await.unwrap(), tokio::fs::read(&local).await.unwrap());
    tokio::fs::write(&local, b"shorter").await.unwrap();
    let error = files.upload(&source, &path).await.unwrap_err();
    assert!(
        matches!(error, FileError::Transfer { source: TransferError::Local { .. }, .. }),
        "{error}"
    );
    assert_eq!(error.remedy(), Remedy::GiveUp);
    tokio::fs::remove_file(&local).await.unwrap();
    tokio::fs::remove_file(&back).await.unwrap();
}
