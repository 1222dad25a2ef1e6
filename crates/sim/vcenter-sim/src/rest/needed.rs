//! Which privilege a change needs, and on what, as far as path and body say so. Where something is deployed to is decided
//! later, and asked about then.

use http::Method;
use roost_vim_wire::MoRef;

use super::{Ask, tags, text};
use crate::permission::Need;
use crate::world::World;

/// Reading needs nothing. What has no place in the tree, such as tags and libraries, is the root folder's.
pub(super) fn needs(world: &World, ask: &Ask<'_>) -> Vec<Need> {
    if !is_change(ask) {
        return Vec::new();
    }
    let root = &world.inventory.root;
    let vm = |id: &str| MoRef::vm(id);
    let one = |privilege, on: &MoRef| vec![Need { privilege, on: on.clone() }];
    match ask.path.as_slice() {
        ["tagging", "tag-association", ..] => {
            let entity =
                |obj: MoRef| if world.inventory.contains(&obj) { obj } else { root.clone() };
            let all = tags::object(ask).into_iter().chain(tags::objects(ask));
            let need = |obj| Need { privilege: "InventoryService.Tagging.AttachTag", on: obj };
            all.map(entity).map(need).collect()
        }
        ["tagging", "category", ..] => one(
            match *ask.method {
                Method::POST => "InventoryService.Tagging.CreateCategory",
                Method::DELETE => "InventoryService.Tagging.DeleteCategory",
                _ => "InventoryService.Tagging.EditCategory",
            },
            root,
        ),
        ["tagging", ..] => one(
            match *ask.method {
                Method::POST => "InventoryService.Tagging.CreateTag",
                Method::DELETE => "InventoryService.Tagging.DeleteTag",
                _ => "InventoryService.Tagging.EditTag",
            },
            root,
        ),
        ["content", rest @ ..] => one(of_library(ask, rest), root),
        ["appliance", ..] => one("Global.Settings", root),
        ["vcenter", "cluster", "modules", ..] => one("Host.Inventory.EditCluster", root),
        ["vcenter", "vm", id, "data-sets", ..] => one("VirtualMachine.Config.Settings", &vm(id)),
        ["vcenter", "vm", id] => one("VirtualMachine.Inventory.Delete", &vm(id)),
        ["vcenter", "namespaces" | "namespace-management", ..] => one("Namespaces.Configure", root),
        ["vcenter", "ovf", "library-item"] => {
            let source = ask.body.get("source").map(|source| text(source, "id"));
            let mut needs = one("VApp.Export", &vm(&source.unwrap_or_default()));
            needs.extend(one("ContentLibrary.AddLibraryItem", root));
            needs
        }
        ["vcenter", "vm-template", "library-items"] => one("ContentLibrary.AddLibraryItem", root),
        ["vcenter", "vm-template", "library-items", _, "check-outs", _] => {
            one("ContentLibrary.CheckInTemplate", root)
        }
        _ => Vec::new(),
    }
}

/// What only looks is sent by `POST` too.
fn is_change(ask: &Ask<'_>) -> bool {
    let reads = |action: &str| {
        matches!(action, "find" | "get" | "list" | "probe" | "filter" | "validate")
            || action.starts_with("list-")
    };
    !matches!(*ask.method, Method::GET | Method::HEAD) && !ask.action.as_deref().is_some_and(reads)
}

fn of_library(ask: &Ask<'_>, path: &[&str]) -> &'static str {
    let is_delete = *ask.method == Method::DELETE;
    match path {
        ["local-library"] => "ContentLibrary.CreateLocalLibrary",
        ["subscribed-library"] => "ContentLibrary.CreateSubscribedLibrary",
        [_, "item", "update-session" | "updatesession", ..]
        | ["item", "update-session" | "updatesession", ..] => "ContentLibrary.UpdateSession",
        [_, "item", "download-session" | "downloadsession", ..]
        | ["item", "download-session" | "downloadsession", ..] => "ContentLibrary.DownloadSession",
        [_, "item"] => "ContentLibrary.AddLibraryItem",
        [_, "item", ..] if is_delete => "ContentLibrary.DeleteLibraryItem",
        [_, "item", ..] => "ContentLibrary.UpdateLibraryItem",
        ["library", "subscribed-item", _] => "ContentLibrary.SyncLibraryItem",
        ["subscribed-library", _] if is_delete => "ContentLibrary.DeleteSubscribedLibrary",
        ["local-library" | "library", _] if is_delete => "ContentLibrary.DeleteLocalLibrary",
        ["subscribed-library", _] if ask.is("sync") => "ContentLibrary.SyncLibrary",
        ["trusted-certificates", ..] if is_delete => "ContentLibrary.DeleteCertFromTrustStore",
        ["trusted-certificates", ..] => "ContentLibrary.AddCertToTrustStore",
        _ => "ContentLibrary.UpdateLibrary",
    }
}
