//! Content libraries: what they hold, and where on a datastore it lies.
//!
//! The files of an item are files of its library's datastore, in `contentlib-<library>/<item>/`, with the bytes that clients
//! sent. An item is described here; whoever deletes its files past the library finds out at the next deployment.

mod session;

use std::collections::BTreeMap;

use jiff::Timestamp;
use roost_clock::Random;
use roost_vim_wire::MoRef;
use serde_json::Value;

pub(crate) use session::{DownloadSession, SessionFile, SessionState, UpdateSession};

use crate::options::Options;
use crate::store;
use crate::vm::FilePath;
use crate::world::World;

#[derive(Debug)]
pub(crate) struct Libraries {
    all: BTreeMap<String, Library>,
    items: BTreeMap<String, Item>,
    pub updates: BTreeMap<String, UpdateSession>,
    pub downloads: BTreeMap<String, DownloadSession>,
    /// In PEM, by id.
    pub certificates: BTreeMap<String, String>,
    random: Random,
}

#[derive(Debug, Clone)]
pub(crate) struct Library {
    pub name: String,
    pub description: String,
    pub datastore: MoRef,
    pub created: Timestamp,
    pub modified: Timestamp,
    pub version: u64,
    /// `publish_info` as it was given, if others may subscribe.
    pub publication: Option<Value>,
    /// `subscription_info` as it was given; its items come from another library.
    pub subscription: Option<Value>,
    pub synced: Option<Timestamp>,
    pub security_policy: Option<String>,
    /// The libraries that this one is pushed to.
    pub subscribers: BTreeMap<String, Subscriber>,
}

#[derive(Debug, Clone)]
pub(crate) struct Subscriber {
    pub library: String,
    pub placement: Value,
}

impl Library {
    /// The id of the library that this one is subscribed to; it stands in the address, behind `lib/`.
    pub(crate) fn source(&self) -> Option<String> {
        let url = self.subscription.as_ref()?.get("subscription_url")?.as_str()?;
        let (_, rest) = url.split_once("/lib/")?;
        Some(rest.split('/').next().unwrap_or(rest).to_owned())
    }

    pub(crate) fn is_published(&self) -> bool {
        let published = self.publication.as_ref().and_then(|info| info.get("published"));
        published.and_then(Value::as_bool).unwrap_or(false)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub library: String,
    pub name: String,
    pub description: String,
    /// `ovf`, `iso`, `vm-template` or what the client calls it.
    pub kind: String,
    pub created: Timestamp,
    pub modified: Timestamp,
    pub version: u64,
    /// Counts changes of the files alone.
    pub content_version: u64,
    pub files: BTreeMap<String, ItemFile>,
    /// The template behind an item of type `vm-template`.
    pub template: Option<MoRef>,
    /// The item of the published library that this one is a copy of.
    pub source: Option<String>,
    /// Whether the files are here, which those of a library on demand are only after a sync.
    pub is_cached: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct ItemFile {
    pub path: FilePath,
    pub size: i64,
    pub version: u64,
    pub checksum: Option<Value>,
}

impl Item {
    pub(crate) fn size(&self) -> i64 {
        self.files.values().map(|file| file.size).sum()
    }

    /// The descriptor of an OVF template.
    pub(crate) fn descriptor(&self) -> Option<(&String, &ItemFile)> {
        self.files.iter().find(|(name, _)| has_extension(name, "ovf"))
    }
}

/// Whether a file's name ends so, in whichever case.
pub(crate) fn has_extension(name: &str, extension: &str) -> bool {
    std::path::Path::new(name).extension().is_some_and(|own| own.eq_ignore_ascii_case(extension))
}

impl Libraries {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            all: BTreeMap::new(),
            items: BTreeMap::new(),
            updates: BTreeMap::new(),
            downloads: BTreeMap::new(),
            certificates: BTreeMap::new(),
            random: Random::from_seed(options.seed).fork("library"),
        }
    }

    pub(crate) fn new_id(&mut self) -> String {
        self.random.uuid()
    }

    /// Transfers end with the server process, libraries stay.
    pub(crate) fn restarted(&mut self) {
        self.updates.clear();
        self.downloads.clear();
    }

    pub(crate) fn library(&self, id: &str) -> Option<&Library> {
        self.all.get(id)
    }

    pub(crate) fn library_mut(&mut self, id: &str) -> Option<&mut Library> {
        self.all.get_mut(id)
    }

    pub(crate) fn libraries(&self) -> impl Iterator<Item = (&String, &Library)> {
        self.all.iter()
    }

    pub(crate) fn add_library(&mut self, library: Library) -> String {
        let id = self.new_id();
        self.all.insert(id.clone(), library);
        id
    }

    pub(crate) fn item(&self, id: &str) -> Option<&Item> {
        self.items.get(id)
    }

    pub(crate) fn item_mut(&mut self, id: &str) -> Option<&mut Item> {
        self.items.get_mut(id)
    }

    pub(crate) fn items(&self) -> impl Iterator<Item = (&String, &Item)> {
        self.items.iter()
    }

    pub(crate) fn items_of<'a>(
        &'a self,
        library: &'a str,
    ) -> impl Iterator<Item = (&'a String, &'a Item)> {
        self.items.iter().filter(move |(_, item)| item.library == library)
    }

    pub(crate) fn item_named(&self, library: &str, name: &str) -> Option<&String> {
        let is_meant = |item: &Item| item.library == library && item.name == name;
        self.items.iter().find(|(_, item)| is_meant(item)).map(|(id, _)| id)
    }

    pub(crate) fn add_item(&mut self, item: Item) -> String {
        let id = self.new_id();
        self.touch_library(&item.library, item.modified);
        self.items.insert(id.clone(), item);
        id
    }

    /// Notes that a library holds something else than before.
    pub(crate) fn touch_library(&mut self, id: &str, now: Timestamp) {
        if let Some(library) = self.all.get_mut(id) {
            library.version += 1;
            library.modified = now;
        }
    }

    /// The item whose template this VM is.
    pub(crate) fn item_of_template(&self, vm: &MoRef) -> Option<&String> {
        self.items.iter().find(|(_, item)| item.template.as_ref() == Some(vm)).map(|(id, _)| id)
    }

    /// A destroyed template takes its item along.
    pub(crate) fn template_gone(&mut self, vm: &MoRef, now: Timestamp) {
        if let Some(id) = self.item_of_template(vm).cloned()
            && let Some(item) = self.items.remove(&id)
        {
            self.touch_library(&item.library, now);
        }
    }
}

/// Where a file of an item lies.
pub(crate) fn file_path(world: &World, library: &str, item: &str, name: &str) -> Option<FilePath> {
    let datastore = &world.libraries.library(library)?.datastore;
    Some(FilePath::new(datastore, format!("contentlib-{library}/{item}/{name}")))
}

/// Makes the directory of an item's files.
pub(crate) fn make_directory(world: &mut World, library: &str, item: &str, now: Timestamp) {
    let Some(datastore) = world.libraries.library(library).map(|row| row.datastore.clone()) else {
        return;
    };
    if let Some(shelf) = world.store.shelf_mut(&datastore) {
        // It is there already after the first file.
        let _ = shelf.make_folder(&format!("contentlib-{library}/{item}"), true, now);
    }
}

pub(crate) fn delete_item(world: &mut World, id: &str, now: Timestamp) -> bool {
    let Some(item) = world.libraries.items.remove(id) else { return false };
    let Some(library) = world.libraries.library(&item.library) else { return true };
    let directory =
        FilePath::new(&library.datastore.clone(), format!("contentlib-{}/{id}", item.library));
    // Somebody may have been quicker.
    let _ = store::delete(world, &directory, now);
    world.libraries.touch_library(&item.library, now);
    true
}

pub(crate) fn delete_library(world: &mut World, id: &str, now: Timestamp) -> bool {
    let items: Vec<String> = world.libraries.items_of(id).map(|(id, _)| id.clone()).collect();
    for item in items {
        delete_item(world, &item, now);
    }
    let Some(library) = world.libraries.all.remove(id) else { return false };
    let _ =
        store::delete(world, &FilePath::new(&library.datastore, format!("contentlib-{id}")), now);
    true
}

/// Copies an item into another library, with its files.
pub(crate) fn copy_item(
    world: &mut World,
    id: &str,
    into: &str,
    name: &str,
    now: Timestamp,
) -> Option<String> {
    let original = world.libraries.item(id)?.clone();
    let datastore = world.libraries.library(into)?.datastore.clone();
    let copy = Item {
        library: into.into(),
        name: name.into(),
        created: now,
        modified: now,
        files: BTreeMap::new(),
        ..original.clone()
    };
    let new = world.libraries.add_item(copy);
    make_directory(world, into, &new, now);
    let mut files = BTreeMap::new();
    for (name, file) in &original.files {
        let path = FilePath::new(&datastore, format!("contentlib-{into}/{new}/{name}"));
        if store::copy(world, &file.path, &path, true, now).is_ok() {
            files.insert(name.clone(), ItemFile { path, ..file.clone() });
        }
    }
    if let Some(item) = world.libraries.item_mut(&new) {
        item.files = files;
    }
    Some(new)
}

/// Notes whether the files of an item that came from another library are here.
pub(crate) fn set_cached(world: &mut World, id: &str, is_cached: bool) {
    if let Some(item) = world.libraries.item_mut(id) {
        item.is_cached = is_cached;
    }
}

/// The files of a whole subscribed library make room.
pub(crate) fn evict_library(world: &mut World, id: &str) {
    for item in world.libraries.items.values_mut().filter(|item| item.library == id) {
        item.is_cached = false;
    }
}

/// Makes a subscribed library hold what its source holds: new items, new files, and nothing that is gone there.
pub(crate) fn sync(world: &mut World, id: &str, now: Timestamp) {
    let Some(library) = world.libraries.library(id) else { return };
    let Some(source) = library.source().filter(|source| world.libraries.library(source).is_some())
    else {
        return;
    };
    let there: Vec<(String, Item)> =
        world.libraries.items_of(&source).map(|(id, item)| (id.clone(), item.clone())).collect();
    let here: Vec<(String, Option<String>, u64)> = world
        .libraries
        .items_of(id)
        .map(|(id, item)| (id.clone(), item.source.clone(), item.content_version))
        .collect();
    for (own, of, version) in &here {
        let known = there.iter().find(|(id, _)| of.as_ref() == Some(id));
        if known.is_none_or(|(_, item)| item.content_version != *version) {
            delete_item(world, own, now);
        }
    }
    for (original, item) in there {
        let is_here = world
            .libraries
            .items_of(id)
            .any(|(_, own)| own.source.as_deref() == Some(original.as_str()));
        if !is_here
            && item.kind != "vm-template"
            && let Some(new) = copy_item(world, &original, id, &item.name, now)
            && let Some(row) = world.libraries.item_mut(&new)
        {
            row.source = Some(original);
        }
    }
    if let Some(row) = world.libraries.library_mut(id) {
        row.synced = Some(now);
    }
}
