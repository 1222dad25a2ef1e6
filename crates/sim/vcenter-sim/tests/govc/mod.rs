//! `govc` in front of a simulated vCenter, and what its tests ask of its output.
#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used, reason = "it is part of tests")]

use std::path::{Path, PathBuf};
use std::thread;

use roost_oracle::Govc;
use roost_vcenter_sim::{Options, Vcenter};
use serde_json::Value;

use crate::wire_door::WireDoor;

#[derive(Debug)]
pub(crate) struct Lab {
    pub(crate) vcenter: Vcenter,
    pub(crate) govc: Govc,
    pub(crate) door: WireDoor,
    folder: PathBuf,
}

impl Drop for Lab {
    fn drop(&mut self) {
        // A folder that stays behind in Cargo's harms nobody.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Lab {
    /// `None` where `govc` cannot be had.
    pub(crate) fn open(options: Options) -> Option<Self> {
        Self::at(WireDoor::open(options))
    }

    pub(crate) fn open_tls(options: Options) -> Option<Self> {
        Self::at(WireDoor::open_tls(options))
    }

    fn at(door: WireDoor) -> Option<Self> {
        let govc = Govc::new(&door.url())?;
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(door.authority().replace(':', "-"));
        std::fs::create_dir_all(&folder).unwrap();
        Some(Self { vcenter: door.vcenter.clone(), govc, door, folder })
    }

    /// What a command that succeeds prints.
    pub(crate) fn says(&self, args: &[&str]) -> String {
        self.govc.stdout(args)
    }

    /// The same in lines, without the space that fills columns.
    pub(crate) fn lines(&self, args: &[&str]) -> Vec<String> {
        lines(&self.says(args))
    }

    pub(crate) fn sorted(&self, args: &[&str]) -> Vec<String> {
        let mut lines = self.lines(args);
        lines.sort();
        lines
    }

    /// A command that prints nothing, or only the progress of a task, and must succeed.
    pub(crate) fn does(&self, args: &[&str]) {
        self.govc.stdout(args);
    }

    /// What a command that prints JSON prints. Commands that take no `-json` in first place are not for it.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.govc.json(args)).unwrap()
    }

    /// The complaint of a command that must fail.
    pub(crate) fn refused(&self, args: &[&str]) -> String {
        let output = self.govc.run(args);
        assert!(!output.is_success(), "govc {} succeeded: {}", args.join(" "), output.stdout);
        output.stderr
    }

    /// What a command prints that waits for updates, while another one is carried out.
    pub(crate) fn watched(&self, watch: &[&str], meanwhile: &[&str]) -> Vec<String> {
        let watcher = Govc::new(&self.door.url()).unwrap();
        let before = self.door.calls("WaitForUpdatesEx");
        thread::scope(|scope| {
            let watching = scope.spawn(|| watcher.stdout(watch));
            // One call has brought what there is; the next one waits.
            self.door
                .until("the watcher waits", || self.door.calls("WaitForUpdatesEx") >= before + 2);
            assert!(!watching.is_finished(), "{watch:?} did not wait");
            self.does(meanwhile);
            lines(&watching.join().unwrap())
        })
    }

    /// A file on this machine, for commands that send one. Its path is its own; it ends with the lab.
    pub(crate) fn file(&self, name: &str, content: &[u8]) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Where a command may put a file.
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.join(name).to_str().unwrap().to_owned()
    }

    /// One property, as `object.collect` prints it.
    pub(crate) fn property(&self, object: &str, path: &str) -> String {
        self.says(&["object.collect", "-s", object, path]).trim_end().to_owned()
    }
}

pub(crate) fn lines(text: &str) -> Vec<String> {
    let squeezed = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    squeezed.filter(|line| !line.is_empty()).collect()
}

/// The value behind a label such as `Power state:`.
pub(crate) fn field(text: &str, label: &str) -> String {
    let found =
        text.lines().find_map(|line| line.trim_start().strip_prefix(label)?.strip_prefix(':'));
    found.unwrap_or_else(|| panic!("no {label:?} in:\n{text}")).trim().to_owned()
}

/// The row of a table whose first column is `key`, as columns.
pub(crate) fn row(text: &str, key: &str) -> Vec<String> {
    let mut rows =
        text.lines().map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    let found = rows.find(|columns| columns.first().is_some_and(|first| first == key));
    found.unwrap_or_else(|| panic!("no row {key:?} in:\n{text}"))
}
