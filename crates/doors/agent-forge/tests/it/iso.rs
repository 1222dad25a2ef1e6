//! An ISO of any size goes through: never whole in memory, never on a local disk, and never half on the datastore.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::stream;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use roost_agent_forge::iso::{Fetch, Fetched, IsoCache, IsoSource, RefreshInput};
use roost_clock::SystemClock;
use roost_vcenter_sim::{Action, Options, Rule, Timings, Vcenter};
use roost_vim::{Credentials, Datastore, Settings, TransferProgress};
use tokio::sync::watch;

use crate::lab::InProcess;

const MIB: u64 = 1 << 20;

/// So many MiB, made as they are read.
#[derive(Debug, Default)]
struct Made {
    mib: AtomicU64,
    has_no_length: bool,
    fetches: AtomicU64,
    /// Breaks off after so many MiB, once.
    breaks_at: AtomicU64,
}

impl IsoSource for Made {
    fn fetch<'a>(&'a self, _: &'a str, _: Option<&'a str>) -> Fetch<'a> {
        Box::pin(async move {
            self.fetches.fetch_add(1, Ordering::Relaxed);
            let mib = self.mib.load(Ordering::Relaxed);
            let breaks_at = self.breaks_at.swap(0, Ordering::Relaxed);
            let chunks = stream::unfold(0_u64, move |index| async move {
                if index == mib {
                    return None;
                }
                if breaks_at > 0 && index == breaks_at {
                    return Some((Err(std::io::Error::other("cut")), index + 1));
                }
                let chunk =
                    Bytes::from(vec![u8::try_from(index % 251).unwrap_or_default(); 1 << 20]);
                Some((Ok(Frame::data(chunk)), index + 1))
            });
            let length = (!self.has_no_length).then_some(mib * MIB);
            Ok(Fetched::Content {
                length,
                mark: None,
                body: BodyExt::boxed(StreamBody::new(chunks)),
            })
        })
    }
}

async fn datastore(dir: Option<std::path::PathBuf>) -> (Vcenter, Datastore) {
    let options = Options { datastore_dir: dir, timings: Timings::instant(), ..Options::default() };
    let vcenter = Vcenter::start(options, Arc::new(SystemClock));
    let settings = Settings::new("vc.test", Credentials::new("roost", "secret")).unwrap();
    let door = Arc::new(InProcess(vcenter.clone()));
    let client = roost_vim::Client::connect(settings, door, Arc::new(SystemClock)).await.unwrap();
    let finder = client.finder("DC0").await.unwrap();
    let found = finder.datastore("LocalDS_0").await.unwrap();
    let files = client.datastore(finder.datacenter(), &found).await.unwrap();
    (vcenter, files)
}

fn input(known: Option<(String, String, u64)>) -> RefreshInput {
    RefreshInput {
        url: "http://assisted.test/iso".into(),
        prefix: "forge/blue".into(),
        arriving: "arriving.iso".into(),
        known,
        forced: false,
        authorities: None,
    }
}

async fn names(files: &Datastore) -> Vec<String> {
    let found = files.list(&files.path("forge/blue"), None).await.unwrap().unwrap_or_default();
    let mut names: Vec<String> =
        found.iter().map(|file| file.path.file_name().to_owned()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn an_iso_has_its_name_when_it_is_whole_and_is_sent_once() {
    for has_no_length in [false, true] {
        let (_vcenter, files) = datastore(None).await;
        let source = Arc::new(Made { has_no_length, ..Made::default() });
        source.mib.store(3, Ordering::Relaxed);
        let cache = IsoCache::new(source.clone());
        let (progress, _) = watch::channel(TransferProgress::default());
        let first = cache.refresh(&input(None), &files, &progress).await.unwrap();
        assert!(first.uploaded && first.bytes == 3 * MIB);
        assert_eq!(names(&files).await, [format!("{}.iso", first.sha256)]);
        let known = Some((first.path.clone(), first.sha256.clone(), first.bytes));
        let again = cache.refresh(&input(known.clone()), &files, &progress).await.unwrap();
        assert!(!again.uploaded && again.path == first.path);
        // Somebody deleted it.
        files.delete(&files.path(&first.path)).await.unwrap();
        let back = cache.refresh(&input(known.clone()), &files, &progress).await.unwrap();
        assert!(back.uploaded && back.path == first.path);
        // Another content is another file.
        source.mib.store(4, Ordering::Relaxed);
        let other = cache.refresh(&input(known), &files, &progress).await.unwrap();
        assert!(other.uploaded && other.sha256 != first.sha256);
        assert_eq!(names(&files).await.len(), 2);
    }
}

#[tokio::test]
async fn a_download_or_upload_that_breaks_off_leaves_no_file_under_the_final_name() {
    let (vcenter, files) = datastore(None).await;
    let source = Arc::new(Made::default());
    source.mib.store(4, Ordering::Relaxed);
    source.breaks_at.store(2, Ordering::Relaxed);
    let cache = IsoCache::new(source.clone());
    let (progress, _) = watch::channel(TransferProgress::default());
    let tried = cache.refresh(&input(None), &files, &progress).await;
    // The second try may have succeeded by itself; a half file never has the name.
    for name in names(&files).await {
        let file = files.stat(&files.path(&format!("forge/blue/{name}"))).await.unwrap().unwrap();
        assert!(name.contains("arriving") || file.bytes == Some(4 * MIB), "{name} {file:?}");
    }
    if tried.is_err() {
        cache.refresh(&input(None), &files, &progress).await.unwrap();
    }
    vcenter
        .faults()
        .add(Rule::new("MoveDatastoreFile_Task", Action::fail_task("FileLocked", "no")).times(8));
    source.mib.store(5, Ordering::Relaxed);
    let failed = cache.refresh(&input(None), &files, &progress).await.unwrap_err();
    assert_eq!(failed.reason(), "DatastoreUnavailable");
    vcenter.faults().clear();
    assert!(cache.refresh(&input(None), &files, &progress).await.unwrap().uploaded);
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}

/// Files of this process that are open now, but for those below `dir`. One that was deleted and is still written to is one of them.
fn open_files(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let paths = all.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    let is_file = |path: &std::path::PathBuf| {
        path.is_absolute()
            && !["/dev", "/proc", "/sys"].iter().any(|place| path.starts_with(place))
            && !path.starts_with(dir)
    };
    paths.filter(is_file).collect()
}

/// What an ISO cost on its way from its address to the datastore.
#[derive(Debug)]
pub(crate) struct Passage {
    pub(crate) grown_kib: u64,
    pub(crate) took: std::time::Duration,
    /// Files that were open on the way and not before, but for the datastore's own.
    pub(crate) local_files: Vec<std::path::PathBuf>,
}

/// One ISO of so many MiB. The datastore of the embedded vCenter is a folder, or it would be in memory.
pub(crate) async fn pass_through(mib: u64) -> Passage {
    let dir = std::env::temp_dir().join(format!("roost-iso-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (_vcenter, files) = datastore(Some(dir.clone())).await;
    let source = Arc::new(Made::default());
    source.mib.store(mib, Ordering::Relaxed);
    let cache = IsoCache::new(source.clone());
    let (progress, moved) = watch::channel(TransferProgress::default());
    let (before, known) = (peak_kib(), open_files(&dir));
    let mut local_files = Vec::new();
    let begin = tokio::time::Instant::now();
    let asked = input(None);
    let passing = cache.refresh(&asked, &files, &progress);
    tokio::pin!(passing);
    let mut moved = moved.clone();
    let found = loop {
        tokio::select! {
            found = &mut passing => break found,
            _ = moved.changed() => {
                local_files.extend(open_files(&dir).into_iter().filter(|file| !known.contains(file)));
            }
        }
    };
    let (took, grown_kib) = (begin.elapsed(), peak_kib() - before);
    std::fs::remove_dir_all(&dir).unwrap();
    assert_eq!(found.unwrap().bytes, mib * MIB);
    Passage { grown_kib, took, local_files }
}

/// Run by the test below, in a process of its own.
#[tokio::test]
#[ignore = "a part of another test"]
async fn one_large_iso() {
    let mib = std::env::var("ROOST_ISO_MIB").ok().and_then(|text| text.parse().ok()).unwrap_or(192);
    let passage = pass_through(mib).await;
    println!("{mib} MiB: {passage:?}, {:.1} s", passage.took.as_secs_f64());
    assert!(passage.grown_kib < 32 << 10, "{passage:?}");
    assert!(passage.local_files.is_empty(), "{passage:?}");
}

#[test]
fn a_large_iso_takes_little_memory_and_no_local_disk() {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["iso::one_large_iso", "--exact", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
