//! Image discovery: OVF and ISO items of content libraries and templates of the inventory become image objects, and stay what they are.
//!
//! Objects that somebody else made are never touched: ours have a label. What is gone is seen twice before its object goes, and a read that failed
//! deletes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt as _};
use roost_controller::{Draft, Object, Status, Store, WriteError};
use roost_fleet::Vm;
use roost_supervise::Chain;
use roost_vim::wire::types::VirtualHardware;
use roost_vim::{CallError, Library, LibraryItem, RestError};
use tokio::time::{Instant, sleep};

use crate::api::condition::{ConditionType, mark_true};
use crate::api::{
    ClusterVirtualMachineImage, ImageDisk, ImageType, Quantity, VirtualMachineImage,
    VirtualMachineImageStatus,
};
use crate::class::hardware_version_of;
use crate::flow::Context;
use crate::images::{image_name, image_type, ovf};

/// Which images are found by themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSources {
    /// Names of content libraries; `*` is all.
    pub libraries: Vec<String>,
    /// Whether templates of the inventory are images.
    pub inventory: bool,
    /// Where their objects are made; without any, they are for the whole cluster.
    pub namespaces: Vec<String>,
}

impl Default for ImageSources {
    fn default() -> Self {
        Self { libraries: vec!["*".to_owned()], inventory: false, namespaces: Vec::new() }
    }
}

/// On objects that are made and taken away here.
const DISCOVERED: &str = "roost.dev/discovered";

/// The mirror is looked at this often, which costs no call.
const LOOK: Duration = Duration::from_secs(10);
/// Libraries cannot be followed; a look is two calls and one for each library.
const LOOK_AT_LIBRARIES: Duration = Duration::from_mins(10);
/// A descriptor is text of some pages.
const LARGEST_DESCRIPTOR: u64 = 8 << 20;

#[derive(Debug, thiserror::Error)]
enum DiscoveryError {
    #[error("reading content libraries")]
    Library(#[from] RestError),
    #[error("reading template {name}")]
    Template { name: String, source: CallError },
    #[error("writing image {name}")]
    Write { name: String, source: Box<kube::Error> },
    #[error("writing the status of an image")]
    Status(#[from] WriteError),
}

pub(crate) struct Discovery {
    cx: Arc<Context>,
    status: Status,
    retry: Duration,
    libraries: BTreeMap<String, KnownLibrary>,
    looked: Option<Instant>,
    /// By id and version of the configuration.
    templates: BTreeMap<(String, String), VirtualMachineImageStatus>,
    /// Objects whose image was not there at the last look.
    missing: BTreeSet<String>,
}

/// A library as it was, so that it is read again only when it has changed.
struct KnownLibrary {
    version: String,
    items: Vec<String>,
    images: BTreeMap<String, VirtualMachineImageStatus>,
}

/// By name of the object.
type Images = BTreeMap<String, VirtualMachineImageStatus>;

impl Discovery {
    pub(crate) fn new(cx: Arc<Context>, status: Status) -> Self {
        let retry = cx.settings.image_retry;
        Self {
            cx,
            status,
            retry,
            libraries: BTreeMap::new(),
            looked: None,
            templates: BTreeMap::new(),
            missing: BTreeSet::new(),
        }
    }

    /// Does not end. Only the leader writes.
    pub(crate) async fn run(mut self) {
        loop {
            self.status.leads().await;
            let pause = match self.pass().await {
                Ok(()) => LOOK,
                Err(error) => {
                    tracing::warn!("images are not current: {}", Chain(&error));
                    self.retry
                }
            };
            sleep(pause).await;
        }
    }

    async fn pass(&mut self) -> Result<(), DiscoveryError> {
        if self.looked.is_none_or(|looked| looked.elapsed() >= LOOK_AT_LIBRARIES) {
            self.look_at_libraries().await?;
            self.looked = Some(Instant::now());
        }
        let mut wanted = Images::new();
        for library in self.libraries.values() {
            for (item, status) in &library.images {
                wanted.insert(image_name(item), status.clone());
            }
        }
        let mirror = self.cx.provider.fleet.mirror().clone();
        if self.sources().inventory {
            if !mirror.freshness().complete {
                return Ok(());
            }
            let rows: Vec<Arc<Vm>> =
                mirror.snapshot().vms().filter(|row| row.template).cloned().collect();
            for row in rows {
                let identity = row.instance_uuid.as_deref().unwrap_or(row.id.as_str());
                wanted.insert(image_name(identity), self.template(&row).await?);
            }
        }
        self.write(&wanted).await
    }

    fn sources(&self) -> &ImageSources {
        &self.cx.provider.settings.images
    }

    async fn look_at_libraries(&mut self) -> Result<(), DiscoveryError> {
        let names = self.sources().libraries.clone();
        if names.is_empty() {
            return Ok(());
        }
        let observer = self.cx.provider.fleet.observer();
        let is_wanted = |library: &Library| {
            names.iter().any(|name| name == "*" || *name == library.name || *name == library.id)
        };
        let found = observer.libraries().await?;
        let found: Vec<Library> = found.into_iter().filter(is_wanted).collect();
        for library in &found {
            let items = observer.library_item_ids(&library.id).await?;
            let known = self.libraries.get(&library.id);
            if known.is_some_and(|of| of.version == library.version && of.items == items) {
                continue;
            }
            let mut images = BTreeMap::new();
            for item in &items {
                let before = known.and_then(|of| of.images.get(item));
                let item = observer.library_item(item).await?;
                if let Some(status) = self.item(&item, before).await? {
                    images.insert(item.id, status);
                }
            }
            let version = library.version.clone();
            self.libraries.insert(library.id.clone(), KnownLibrary { version, items, images });
        }
        self.libraries.retain(|id, _| found.iter().any(|library| library.id == *id));
        Ok(())
    }

    /// `None` for items that are no images. A template item stands for a template of the inventory, which is one by itself.
    async fn item(
        &self,
        item: &LibraryItem,
        before: Option<&VirtualMachineImageStatus>,
    ) -> Result<Option<VirtualMachineImageStatus>, DiscoveryError> {
        let Some(type_) = image_type(&item.kind).filter(|of| *of != ImageType::Vm) else {
            return Ok(None);
        };
        let content = &item.content_version;
        let mut status = match before.filter(|of| of.provider_content_version == *content) {
            Some(before) => before.clone(),
            None if type_ == ImageType::Ovf => self.descriptor(item).await?,
            None => VirtualMachineImageStatus::default(),
        };
        status.name.clone_from(&item.name);
        type_.as_str().clone_into(&mut status.type_);
        status.provider_item_id.clone_from(&item.id);
        status.provider_content_version.clone_from(content);
        Ok(Some(status))
    }

    async fn descriptor(
        &self,
        item: &LibraryItem,
    ) -> Result<VirtualMachineImageStatus, DiscoveryError> {
        let observer = self.cx.provider.fleet.observer();
        let files = observer.item_files(&item.id).await?;
        let is_descriptor = |name: &str| name.to_ascii_lowercase().ends_with(".ovf");
        let Some(file) = files.into_iter().find(|file| is_descriptor(&file.name)) else {
            return Ok(VirtualMachineImageStatus::default());
        };
        let text = observer.item_file_content(&item.id, &file.name, LARGEST_DESCRIPTOR).await?;
        // One that nobody can read does not hide the image: vCenter may still deploy it.
        Ok(ovf::describe(&text).unwrap_or_else(|error| {
            tracing::warn!("library item {}: {error}", item.name);
            VirtualMachineImageStatus::default()
        }))
    }

    async fn template(&mut self, row: &Vm) -> Result<VirtualMachineImageStatus, DiscoveryError> {
        let version = row.change_version.as_deref().unwrap_or_default().to_owned();
        let key = (row.id.to_string(), version.clone());
        if let Some(known) = self.templates.get(&key) {
            let name = row.name.to_string();
            return Ok(VirtualMachineImageStatus { name, ..known.clone() });
        }
        let paths = ["config.guestId", "config.version", "config.firmware", "config.hardware"];
        let observer = self.cx.provider.fleet.observer();
        let read = observer.properties(&row.id.moref(), &paths).await;
        let read =
            read.map_err(|source| DiscoveryError::Template { name: row.name.to_string(), source })?;
        let text = |path: &str| read.str(path).unwrap_or_default().to_owned();
        let hardware = read.data::<VirtualHardware>("config.hardware");
        let disks = hardware.into_iter().flat_map(|of| &of.device).filter(|of| of.is_disk());
        let disks = disks.enumerate().map(|(index, disk)| ImageDisk {
            name: format!("disk-{index}"),
            limit: disk.capacity_in_bytes.map(|bytes| Quantity::new(&bytes.to_string())),
            ..ImageDisk::default()
        });
        let mut status = VirtualMachineImageStatus {
            name: row.name.to_string(),
            type_: ImageType::Vm.as_str().to_owned(),
            provider_item_id: row.id.to_string(),
            firmware: text("config.firmware"),
            hardware_version: hardware_version_of(&text("config.version")),
            disks: disks.collect(),
            ..VirtualMachineImageStatus::default()
        };
        status.os_info.type_ = text("config.guestId");
        self.templates.retain(|(id, _), _| *id != key.0);
        self.templates.insert(key, status.clone());
        Ok(status)
    }

    async fn write(&mut self, wanted: &Images) -> Result<(), DiscoveryError> {
        let (client, stores) = (self.cx.writer.client().clone(), self.cx.stores.clone());
        let mut gone = BTreeSet::new();
        let (none, namespaces) = (Images::new(), self.sources().namespaces.clone());
        // What an earlier configuration made goes, too.
        let for_all = if namespaces.is_empty() { wanted } else { &none };
        let api: Api<ClusterVirtualMachineImage> = Api::all(client.clone());
        let objects = stores.cluster_images.objects();
        self.write_kind(&api, objects, &stores.cluster_images, for_all, &mut gone).await?;
        let mut by_namespace: BTreeMap<String, Vec<Arc<VirtualMachineImage>>> =
            namespaces.iter().map(|namespace| (namespace.clone(), Vec::new())).collect();
        for image in stores.images.objects() {
            by_namespace.entry(image.namespace().unwrap_or_default()).or_default().push(image);
        }
        for (namespace, objects) in by_namespace {
            let api: Api<VirtualMachineImage> = Api::namespaced(client.clone(), &namespace);
            let wanted = if namespaces.contains(&namespace) { wanted } else { &none };
            self.write_kind(&api, objects, &stores.images, wanted, &mut gone).await?;
        }
        self.missing = gone;
        Ok(())
    }

    async fn write_kind<K: ImageKind>(
        &self,
        api: &Api<K>,
        objects: Vec<Arc<K>>,
        store: &Store<K>,
        wanted: &Images,
        gone: &mut BTreeSet<String>,
    ) -> Result<(), DiscoveryError> {
        // Before the first list everything would look new.
        store.synced().await;
        let failed = |name: &str| {
            let name = name.to_owned();
            move |source| DiscoveryError::Write { name, source: Box::new(source) }
        };
        let known: BTreeMap<String, Arc<K>> =
            objects.into_iter().map(|object| (object.name_any(), object)).collect();
        for (name, status) in wanted {
            let object = match known.get(name) {
                Some(object) if object.labels().contains_key(DISCOVERED) => Arc::clone(object),
                // Somebody else's.
                Some(_) => continue,
                None => {
                    let mut new = K::named(name);
                    new.labels_mut().insert(DISCOVERED.to_owned(), "true".to_owned());
                    match api.create(&PostParams::default(), &new).await {
                        Ok(made) => Arc::new(made),
                        // Our own, of a moment ago: the watch will bring it.
                        Err(kube::Error::Api(said)) if said.is_already_exists() => continue,
                        Err(error) => return Err(failed(name)(error)),
                    }
                }
            };
            let mut draft = Draft::of(object, ());
            let conditions = std::mem::take(&mut draft.image_status().conditions);
            *draft.image_status() = VirtualMachineImageStatus { conditions, ..status.clone() };
            let now = self.cx.now();
            mark_true(&mut draft.image_status().conditions, ConditionType::Ready, now);
            self.cx.writer.save_status(&mut draft).await?;
        }
        for (name, object) in &known {
            let is_ours = object.labels().contains_key(DISCOVERED);
            if !is_ours || wanted.contains_key(name) {
                continue;
            }
            let key = roost_controller::Key::of(&**object).to_string();
            if self.missing.contains(&key) {
                match api.delete(name, &DeleteParams::default()).await {
                    Err(kube::Error::Api(said)) if said.is_not_found() => {}
                    other => other.map(drop).map_err(failed(name))?,
                }
            } else {
                gone.insert(key);
            }
        }
        Ok(())
    }
}

/// The two kinds of image objects.
trait ImageKind: Object<DynamicType = ()> {
    fn named(name: &str) -> Self;
    fn image_status(&mut self) -> &mut VirtualMachineImageStatus;
}

impl ImageKind for ClusterVirtualMachineImage {
    fn named(name: &str) -> Self {
        Self::new(name, crate::api::VirtualMachineImageSpec::default())
    }

    fn image_status(&mut self) -> &mut VirtualMachineImageStatus {
        self.status_mut()
    }
}

impl ImageKind for VirtualMachineImage {
    fn named(name: &str) -> Self {
        Self::new(name, crate::api::VirtualMachineImageSpec::default())
    }

    fn image_status(&mut self) -> &mut VirtualMachineImageStatus {
        self.status_mut()
    }
}
