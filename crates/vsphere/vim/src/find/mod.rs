//! Finding objects by what people call them: a name, an inventory path, a reference, or nothing at all for the only one.
//!
//! govmomi walks the inventory folder by folder, one call each. Here one property read brings names and parents of everything
//! a kind's paths are made of, and the rules run on that ([`tree`]). Only VMs are too many for it: their exact names are
//! asked for folder by folder first.

mod error;
mod kind;
mod name;
mod tree;
mod wanted;

use roost_vim_wire::methods::{FindAllByUuid, FindByInventoryPath, FindByUuid, FindChild};
use roost_vim_wire::types::PropertyFilterSpec;
use roost_vim_wire::{MoRef, MoType};

pub use error::{Candidates, FindError, Within};
pub use kind::Kind;
pub(crate) use name::{plain_name, stored_name};
pub use tree::Found;
use tree::Tree;
pub use wanted::PathProblem;
use wanted::Wanted;

use crate::{CallError, Faulted, Observer};

/// With more folders than this, one read of all VMs is cheaper than to ask each folder for a name.
const MOST_FOLDERS_ASKED: usize = 8;

/// Which of a VM's two identities is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UuidKind {
    /// Unique within a vCenter.
    Instance,
    /// Of the machine; copies made past the vCenter have the same.
    Bios,
}

impl Observer {
    /// All VMs with an identity: none, one, or several copies.
    pub async fn find_vms_by_uuid(
        &self,
        uuid: &str,
        kind: UuidKind,
    ) -> Result<Vec<MoRef>, CallError> {
        let index = self.content().search_index.clone();
        let call = FindAllByUuid {
            this: index.ok_or(CallError::NoManager { manager: "search index" })?,
            datacenter: None,
            uuid: uuid.into(),
            vm_search: true,
            instance_uuid: Some(kind == UuidKind::Instance),
        };
        self.read(&call).await
    }

    /// The VM with an identity; any one of them, should there be several.
    pub async fn find_vm_by_uuid(
        &self,
        uuid: &str,
        kind: UuidKind,
    ) -> Result<Option<MoRef>, CallError> {
        let index = self.content().search_index.clone();
        let call = FindByUuid {
            this: index.ok_or(CallError::NoManager { manager: "search index" })?,
            datacenter: None,
            uuid: uuid.into(),
            vm_search: true,
            instance_uuid: Some(kind == UuidKind::Instance),
        };
        self.read(&call).await
    }
}

impl Observer {
    /// A datacenter by name, path or reference; empty for the only one.
    pub async fn find_datacenter(&self, wanted: &str) -> Result<Found, FindError> {
        Search { observer: self, scope: None, kind: Kind::Datacenter, text: wanted }.one().await
    }

    /// A finder for what is in one datacenter, which is found as by [`Observer::find_datacenter`].
    pub async fn finder(&self, datacenter: &str) -> Result<Finder, FindError> {
        Ok(Finder { observer: self.clone(), datacenter: self.find_datacenter(datacenter).await? })
    }
}

/// Finds objects in one datacenter. Keeps nothing between calls but the datacenter.
#[derive(Debug, Clone)]
pub struct Finder {
    observer: Observer,
    datacenter: Found,
}

impl Finder {
    pub fn datacenter(&self) -> &Found {
        &self.datacenter
    }

    /// The one object that `wanted` means. An absolute path may lead into another datacenter.
    pub async fn find(&self, kind: Kind, wanted: &str) -> Result<Found, FindError> {
        self.search(kind, wanted).one().await
    }

    /// Every usable object that `wanted` matches, in the order of paths; none is no error.
    pub async fn list(&self, kind: Kind, wanted: &str) -> Result<Vec<Found>, FindError> {
        self.search(kind, wanted).all().await
    }

    /// A VM or template.
    pub async fn vm(&self, wanted: &str) -> Result<Found, FindError> {
        self.find(Kind::VirtualMachine, wanted).await
    }

    pub async fn template(&self, wanted: &str) -> Result<Found, FindError> {
        self.find(Kind::Template, wanted).await
    }

    /// Empty for the datacenter's own VM folder.
    pub async fn vm_folder(&self, wanted: &str) -> Result<Found, FindError> {
        self.find(Kind::VmFolder, wanted).await
    }

    /// A compute resource stands for its root pool; empty for the only root pool.
    pub async fn resource_pool(&self, wanted: &str) -> Result<Found, FindError> {
        self.find(Kind::ResourcePool, wanted).await
    }

    pub async fn network(&self, wanted: &str) -> Result<Found, FindError> {
        self.find(Kind::Network, wanted).await
    }

    pub async fn datastore(&self, wanted: &str) -> Result<Found, FindError> {
        self.find(Kind::Datastore, wanted).await
    }

    pub async fn datastore_cluster(&self, wanted: &str) -> Result<Found, FindError> {
        self.find(Kind::DatastoreCluster, wanted).await
    }

    pub async fn host(&self, wanted: &str) -> Result<Found, FindError> {
        self.find(Kind::Host, wanted).await
    }

    pub async fn compute_resource(&self, wanted: &str) -> Result<Found, FindError> {
        self.find(Kind::ComputeResource, wanted).await
    }

    fn search<'a>(&'a self, kind: Kind, text: &'a str) -> Search<'a> {
        Search { observer: &self.observer, scope: Some(&self.datacenter), kind, text }
    }
}

/// One search: what for, by which words, and where.
#[derive(Debug, Clone, Copy)]
struct Search<'a> {
    observer: &'a Observer,
    scope: Option<&'a Found>,
    kind: Kind,
    text: &'a str,
}

impl Search<'_> {
    async fn one(self) -> Result<Found, FindError> {
        let wanted = self.parse()?;
        if let Wanted::Name { reference: Some(moref), .. } = &wanted
            && let Some(tree) = self.read_reference(moref).await?
        {
            let hits = tree.found(moref).into_iter().collect();
            return self.pick(&tree, hits, &wanted);
        }
        if let Some((tree, hits)) = self.ask_for_vm(&wanted).await? {
            return self.pick(&tree, hits, &wanted);
        }
        let tree = self.read(self.start(&wanted)).await?;
        let hits = tree.search(self.kind, &wanted);
        self.pick(&tree, hits, &wanted)
    }

    async fn all(self) -> Result<Vec<Found>, FindError> {
        let wanted = self.parse()?;
        let tree = self.read(self.start(&wanted)).await?;
        let mut hits = tree.search(self.kind, &wanted);
        hits.retain(|found| tree.is_usable(self.kind, &found.moref));
        Ok(hits)
    }

    fn parse(self) -> Result<Wanted, FindError> {
        Wanted::parse(self.text).map_err(|problem| FindError::Malformed {
            kind: self.kind,
            wanted: self.text.into(),
            problem,
        })
    }

    /// Exactly one usable hit, or the reason why there is none.
    fn pick(self, tree: &Tree, hits: Vec<Found>, wanted: &Wanted) -> Result<Found, FindError> {
        let (kind, text) = (self.kind, self.text.to_owned());
        let (mut usable, unusable): (Vec<_>, Vec<_>) =
            hits.into_iter().partition(|found| tree.is_usable(kind, &found.moref));
        if let [_] = usable[..] {
            return Ok(usable.remove(0));
        }
        if !usable.is_empty() {
            let candidates = Candidates::listed(usable);
            return Err(FindError::Ambiguous {
                kind,
                wanted: text,
                within: self.within(wanted),
                candidates,
            });
        }
        if let Some(first) = unusable.into_iter().next() {
            let why = tree.unusable_because(kind, &first.moref).unwrap_or("it is of another kind");
            return Err(FindError::Unusable { kind, path: first.path, why });
        }
        let there =
            tree.all(kind).into_iter().filter(|found| tree.is_usable(kind, &found.moref)).collect();
        let candidates = Candidates::near(self.text, there);
        Err(FindError::Absent { kind, wanted: text, within: self.within(wanted), candidates })
    }

    fn within(self, wanted: &Wanted) -> Within {
        match self.start(wanted) {
            (_, path) if path.is_empty() => Within::Server,
            (_, path) => Within::Datacenter(path),
        }
    }

    /// Where reading must begin, and the path of that: the datacenter unless an absolute path leads elsewhere.
    fn start(self, wanted: &Wanted) -> (MoRef, String) {
        let root = || (self.observer.content().root_folder.clone(), String::new());
        let Some(datacenter) = self.scope else { return root() };
        if let Wanted::Path(path) = wanted
            && path.absolute
        {
            let above: Vec<&str> =
                datacenter.path.split('/').filter(|part| !part.is_empty()).collect();
            let leads_here = above.len() <= path.parts.len()
                && above.iter().zip(&path.parts).all(|(name, part)| part.is_exactly(name));
            if !leads_here {
                return root();
            }
        }
        (datacenter.moref.clone(), datacenter.path.clone())
    }

    async fn read(self, start: (MoRef, String)) -> Result<Tree, FindError> {
        self.read_kind(self.kind, start).await
    }

    async fn read_kind(
        self,
        kind: Kind,
        (start, path): (MoRef, String),
    ) -> Result<Tree, FindError> {
        let objects =
            self.retrieve(kind.below(&start)).await.map_err(|source| self.failed(source))?;
        Ok(Tree::new(&start, &path, objects))
    }

    /// The object that a reference means with all that is above it; `None` if there is no such object, and the text may yet be
    /// a name.
    async fn read_reference(self, moref: &MoRef) -> Result<Option<Tree>, FindError> {
        if !self.kind.includes(&moref.kind) {
            return Ok(None);
        }
        let more: &[&str] = match (self.kind, &moref.kind) {
            (Kind::Template, _) => &["config.template"],
            (_, MoType::DistributedVirtualPortgroup) => &["config.uplink"],
            _ => &[],
        };
        match self.retrieve(kind::above(moref, more)).await {
            Ok(objects) => {
                let tree = Tree::new(&self.observer.content().root_folder, "", objects);
                Ok(tree.found(moref).is_some().then_some(tree))
            }
            Err(error) if error.is_fault("ManagedObjectNotFound") => Ok(None),
            Err(source) => Err(self.failed(source)),
        }
    }

    /// Asks for a VM by its exact name or path, so that a search among thousands does not read them all. `None` if the words
    /// are not exact or nothing was found this way.
    async fn ask_for_vm(self, wanted: &Wanted) -> Result<Option<(Tree, Vec<Found>)>, FindError> {
        if !matches!(self.kind, Kind::VirtualMachine | Kind::Template) {
            return Ok(None);
        }
        let hits = match wanted {
            Wanted::Path(path) if path.absolute && !path.is_glob() => self.ask_by_path().await?,
            Wanted::Name { pattern, .. } if !pattern.is_glob() => self.ask_by_name(wanted).await?,
            _ => Vec::new(),
        };
        let mut hits = hits.into_iter().filter(|moref| self.kind.includes(&moref.kind));
        let Some(first) = hits.next() else { return Ok(None) };
        // With a second one, the whole read tells the paths of all of them.
        if hits.next().is_some() {
            return Ok(None);
        }
        let Some(tree) = self.read_reference(&first).await? else { return Ok(None) };
        let found = tree.found(&first).into_iter().collect();
        Ok(Some((tree, found)))
    }

    async fn ask_by_path(self) -> Result<Vec<MoRef>, FindError> {
        let Some(this) = self.observer.content().search_index.clone() else {
            return Ok(Vec::new());
        };
        let call = FindByInventoryPath { this, inventory_path: self.text.into() };
        let hit = self.observer.read(&call).await.map_err(|source| self.failed(source))?;
        Ok(hit.into_iter().collect())
    }

    async fn ask_by_name(self, wanted: &Wanted) -> Result<Vec<MoRef>, FindError> {
        let Some(index) = self.observer.content().search_index.clone() else {
            return Ok(Vec::new());
        };
        let folders = self.read_kind(Kind::VmFolder, self.start(wanted)).await?.all(Kind::VmFolder);
        if folders.len() > MOST_FOLDERS_ASKED {
            return Ok(Vec::new());
        }
        let (name, mut hits) = (stored_name(self.text), Vec::new());
        for folder in folders {
            let call = FindChild { this: index.clone(), entity: folder.moref, name: name.clone() };
            match self.observer.read(&call).await {
                Ok(hit) => hits.extend(hit),
                // Someone removed the folder a moment ago.
                Err(error) if error.is_fault("ManagedObjectNotFound") => {}
                Err(source) => return Err(self.failed(source)),
            }
        }
        Ok(hits)
    }

    async fn retrieve(
        self,
        spec: PropertyFilterSpec,
    ) -> Result<Vec<roost_vim_wire::types::ObjectContent>, CallError> {
        self.observer.retrieve(spec).await
    }

    fn failed(self, source: CallError) -> FindError {
        FindError::Read { kind: self.kind, wanted: self.text.into(), source }
    }
}
