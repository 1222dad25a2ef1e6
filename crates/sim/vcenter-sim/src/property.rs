//! Reading a property of any managed object: the server's own here, all others in the model.

use jiff::Timestamp;
use roost_vim_wire::{Array, MoRef, MoType, Value};

use crate::inventory::property::is_documented;
use crate::inventory::{Inventory, NoSuchProperty};
use crate::world::World;
use crate::{model, session};

/// What a property holds: a value, nothing, or that objects of this kind have no such property.
pub(crate) type Found = Result<Option<Value>, NoSuchProperty>;

pub(crate) fn no_such(path: &str) -> Found {
    Err(NoSuchProperty { path: path.into() })
}

/// A look at the world through the eyes of one session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub world: &'a World,
    /// `None` before a login.
    pub session: Option<&'a str>,
    pub now: Timestamp,
    /// The inventory is one of earlier, so what views remember of it does not hold.
    pub is_stale: bool,
}

impl Reading<'_> {
    /// What the API documents and nobody has modelled is unset.
    pub(crate) fn get(&self, obj: &MoRef, path: &str) -> Found {
        self.modelled(obj, path).or_else(|error| {
            let first = path.split(['.', '[']).next().unwrap_or_default();
            if is_documented(obj.kind.as_str(), first) && first == path {
                return Ok(None);
            }
            Err(error)
        })
    }

    fn modelled(&self, obj: &MoRef, path: &str) -> Found {
        let world = self.world;
        match (&obj.kind, path) {
            (MoType::ServiceInstance, _) => self.service_instance(path),
            (MoType::SessionManager, _) => session::property(world, self.session, path),
            (MoType::OptionManager, _) => crate::host_config::property(world, obj, path)
                .unwrap_or_else(|| world.settings.property(path)),
            (MoType::ViewManager, "viewList") => {
                let session = self.session.unwrap_or_default();
                Ok(Some(refs(world.views.of_session(session).cloned())))
            }
            (MoType::ContainerView | MoType::ListView, _) => {
                world.views.property(obj, path, &world.inventory, self.is_stale)
            }
            (MoType::PropertyCollector, "filter") => {
                let filters = world.collectors.filters_of(self.session.unwrap_or_default(), obj);
                Ok(Some(refs(filters.into_iter())))
            }
            (MoType::PropertyFilter, _) => world.collectors.filter_property(obj, path),
            (MoType::AuthorizationManager, _) => crate::permission::property(world, path),
            (MoType::PerformanceManager, _) => crate::performance::property(path),
            (MoType::LicenseManager, _) => crate::license::property(world, path),
            (MoType::ExtensionManager, _) => world.extensions.property(path),
            (MoType::Other(kind), _) if **kind == *"HttpNfcLease" => {
                crate::nfc::property(world, obj, path)
            }
            (MoType::Other(kind), _) if **kind == *"CustomizationSpecManager" => {
                world.customization_specs.property(path)
            }
            (MoType::ViewManager | MoType::PropertyCollector, _) => no_such(path),
            (MoType::Other(kind), _) if kind.starts_with("Host") => {
                crate::host_config::property(world, obj, path)
                    .unwrap_or_else(|| model::property(world, obj, path))
            }
            _ => model::property(world, obj, path),
        }
    }

    /// The references that a property holds; none if it is unset.
    pub(crate) fn refs(&self, obj: &MoRef, path: &str) -> Result<Vec<MoRef>, NoSuchProperty> {
        if path == "view"
            && !self.is_stale
            && matches!(obj.kind, MoType::ContainerView | MoType::ListView)
        {
            return Ok(self.world.views.members(obj).cloned().collect());
        }
        Ok(self.get(obj, path)?.map(|value| value.refs().cloned().collect()).unwrap_or_default())
    }

    fn service_instance(&self, path: &str) -> Found {
        let (first, rest) = path.split_once('.').unwrap_or((path, ""));
        let value = match first {
            "content" => Value::data(self.world.service.clone()),
            "serverClock" => Value::Time(self.now),
            "capability" => Value::Other(Box::new(
                roost_vim_wire::Element::new("capability")
                    .typed("Capability")
                    .with_field("provisioningSupported", &true)
                    .with_field("multiHostSupported", &true)
                    .with_field("userShellAccessSupported", &false),
            )),
            _ => return no_such(path),
        };
        Ok(drill(value, rest))
    }
}

/// Follows a dotted path into a value.
fn drill(value: Value, path: &str) -> Option<Value> {
    path.split('.')
        .filter(|field| !field.is_empty())
        .try_fold(value, |value, field| value.get(field))
}

fn refs(objects: impl Iterator<Item = MoRef>) -> Value {
    Value::Array(Array::new("ManagedObjectReference", objects.map(Value::Ref).collect()))
}

/// The properties that `all = true` reads.
pub(crate) fn all_of(kind: &MoType) -> &'static [&'static str] {
    match kind {
        MoType::ServiceInstance => &["capability", "content", "serverClock"],
        MoType::SessionManager => &[
            "currentSession",
            "defaultLocale",
            "message",
            "messageLocaleList",
            "sessionList",
            "supportedLocaleList",
        ],
        MoType::OptionManager => &["setting", "supportedOption"],
        MoType::ViewManager => &["viewList"],
        MoType::ContainerView => &["container", "recursive", "type", "view"],
        MoType::ListView => &["view"],
        MoType::PropertyCollector => &["filter"],
        MoType::PropertyFilter => &["partialUpdates", "spec"],
        MoType::AuthorizationManager => &["privilegeList", "roleList"],
        MoType::ExtensionManager => &["extensionList"],
        MoType::Other(kind) if **kind == *"HttpNfcLease" => {
            &["error", "info", "initializeProgress", "mode", "state", "transferProgress"]
        }
        MoType::Other(kind) if **kind == *"CustomizationSpecManager" => &["info"],
        MoType::PerformanceManager => &["historicalInterval", "perfCounter"],
        MoType::LicenseManager => {
            &["evaluation", "licenseAssignmentManager", "licensedEdition", "licenses"]
        }
        MoType::Other(kind) if kind.starts_with("Host") => crate::host_config::all_of(kind),
        _ => Inventory::all_properties(kind),
    }
}
