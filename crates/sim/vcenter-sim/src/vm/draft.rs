//! A configuration that is being worked on: nothing outside changes until all of a request has been accepted.

use std::fmt::Write as _;
use std::sync::Arc;

use jiff::Timestamp;
use roost_vim_wire::MoRef;

use crate::call::Failure;
use crate::inventory::Changed;
use crate::store;
use crate::vm::{Config, DiskFile, FilePath, Power, Vm};
use crate::world::World;

#[derive(Debug)]
pub(crate) struct Draft {
    pub config: Config,
    /// Where new files go.
    pub datastore: MoRef,
    pub directory: String,
    pub power: Power,
    pub has_snapshots: bool,
    /// A clone's cards get new addresses whatever the request repeats of the source's.
    pub is_clone: bool,
    pub effects: Effects,
}

/// What follows when the draft becomes the configuration.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub paths: Vec<Changed>,
    pub made: Vec<(Arc<DiskFile>, i64)>,
    pub resized: Vec<(Arc<DiskFile>, i64)>,
    pub removed: Vec<FilePath>,
    /// In words, for the event.
    pub modified: String,
    pub added: String,
    pub deleted: String,
}

impl Draft {
    pub(crate) fn of(vm: &Vm) -> Self {
        Self {
            config: vm.config.clone(),
            datastore: vm.home.datastore.clone(),
            directory: vm.directory().into(),
            power: vm.power,
            has_snapshots: vm.snapshots.as_ref().is_some_and(|all| !all.list.is_empty()),
            is_clone: false,
            effects: Effects::default(),
        }
    }

    /// Notes a changed path.
    pub(crate) fn changed(&mut self, path: impl Into<Changed>) {
        self.effects.paths.push(path.into());
    }

    /// Notes a changed value: its path, and the words for the event.
    pub(crate) fn modified(&mut self, path: &'static str, old: &str, new: &str) {
        self.changed(path);
        let _ = writeln!(self.effects.modified, "{path}: {old} -> {new}; ");
    }

    /// What new and larger disks take of each datastore.
    pub(crate) fn needed_bytes(&self) -> Vec<(FilePath, i64)> {
        let made = self
            .effects
            .made
            .iter()
            .map(|(file, kb)| (file.path.clone(), store::disk_bytes(file, *kb)));
        made.collect()
    }

    pub(crate) fn check_space(&self, world: &World) -> Result<(), Failure> {
        let mut sums: Vec<(FilePath, i64)> = Vec::new();
        let grown =
            self.effects.resized.iter().filter(|(file, _)| !file.thin && file.parent.is_none());
        let grown = grown.map(|(file, kb)| {
            let shelf = world.store.shelf(&file.path.datastore);
            let now = shelf
                .and_then(|shelf| shelf.get(&file.path.path))
                .map_or(0, |entry| entry.content.size());
            (file.path.clone(), kb.saturating_mul(1024).saturating_sub(now))
        });
        for (path, bytes) in self.needed_bytes().into_iter().chain(grown) {
            match sums.iter_mut().find(|(other, _)| other.datastore == path.datastore) {
                Some((_, sum)) => *sum = sum.saturating_add(bytes),
                None => sums.push((path, bytes)),
            }
        }
        sums.iter().try_for_each(|(path, bytes)| store::need_space(world, path, *bytes))
    }
}

impl Effects {
    /// Carries file changes out.
    pub(crate) fn apply_files(&self, world: &mut World, now: Timestamp) {
        for (file, capacity_kb) in &self.made {
            store::add_disk_file(world, file, *capacity_kb, now);
            store::announce_space(world, &file.path.datastore);
        }
        for (file, capacity_kb) in &self.resized {
            store::resize_disk_file(world, file, *capacity_kb, now);
        }
        for path in &self.removed {
            store::remove_disk_file(world, path);
        }
    }
}
