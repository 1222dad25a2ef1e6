use std::sync::Arc;

use jiff::Timestamp;
use roost_vim_wire::{Element, Field, MoRef, MoType};

use super::posted::{Argument, Posted};
use crate::call::{CallContext, Failure};
use crate::event::announce;
use crate::task::Run;
use crate::vm::Vm;
use crate::world::World;

/// Who made it happen, when, and as part of what.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    pub user: Arc<str>,
    pub now: Timestamp,
    /// The key of the event that started it all; 0 if this one does.
    pub chain: i32,
}

impl Scene {
    pub(crate) fn of(user: &str, now: Timestamp) -> Self {
        Self { user: user.into(), now, chain: 0 }
    }

    /// What happens by itself has no user.
    pub(crate) fn system(now: Timestamp) -> Self {
        Self::of("", now)
    }
}

impl From<&Run<'_>> for Scene {
    fn from(run: &Run<'_>) -> Self {
        Self { user: Arc::clone(&run.user), now: run.now, chain: run.chain }
    }
}

impl From<&crate::call::CallContext<'_>> for Scene {
    fn from(cx: &crate::call::CallContext<'_>) -> Self {
        Self::of(cx.user, cx.now)
    }
}

/// An event before it has a key.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    class: &'static str,
    message: String,
    arguments: Vec<Argument>,
    template: Option<bool>,
    rest: Vec<Element>,
    place: Option<MoRef>,
}

impl Draft {
    pub(crate) fn new(class: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            class,
            message,
            arguments: Vec::new(),
            template: None,
            rest: Vec::new(),
            place: None,
        }
    }

    /// A field that only this class has. They are set in schema order.
    pub(crate) fn with(mut self, field: &str, value: &impl Field) -> Self {
        self.rest.extend(Element::of_field(field, value));
        self
    }

    /// A field that names an object.
    pub(crate) fn with_object(self, world: &World, field: &str, obj: &MoRef) -> Self {
        match world.inventory.shared_name(obj) {
            Some(name) => {
                let argument = Argument { name: Arc::clone(name), obj: obj.clone() };
                self.with(field, &argument.wire())
            }
            None => self,
        }
    }

    /// An object that the event is about.
    pub(crate) fn about(mut self, world: &World, obj: &MoRef) -> Self {
        if let Some(name) = world.inventory.shared_name(obj) {
            self.arguments.push(Argument { name: Arc::clone(name), obj: obj.clone() });
        }
        self
    }

    /// A VM that is not there yet, and where it will be.
    pub(crate) fn about_new_vm(mut self, world: &World, vm: &MoRef, planned: &Vm) -> Self {
        if let Some(datacenter) = world.inventory.datacenter_of(&planned.folder) {
            self = self.about(world, &datacenter);
        }
        self.place = Some(planned.folder.clone());
        self.arguments.push(Argument { name: Arc::clone(&planned.name), obj: vm.clone() });
        if let Some(compute) = world.inventory.compute_of_host(&planned.host).cloned() {
            self = self.about(world, &compute);
        }
        self.about(world, &planned.host).about(world, &planned.home.datastore)
    }

    /// Makes it an event of a VM that is or is not a template.
    pub(crate) fn of_template(mut self, is_template: bool) -> Self {
        self.template = Some(is_template);
        self
    }

    /// The object and the datacenter it is in.
    pub(crate) fn about_entity(self, world: &World, obj: &MoRef) -> Self {
        let datacenter = world.inventory.datacenter_of(obj);
        let mut draft = match datacenter.filter(|datacenter| datacenter != obj) {
            Some(datacenter) => self.about(world, &datacenter),
            None => self,
        };
        draft.place = world.inventory.parent(obj);
        draft.about(world, obj)
    }
}

/// An event about a VM: with its datacenter, compute resource, host and datastore.
pub(crate) fn vm_draft(world: &World, class: &'static str, vm: &MoRef, message: String) -> Draft {
    let mut draft = Draft::new(class, message);
    let Some(row) = world.inventory.vms.get(vm) else { return draft };
    draft.template = Some(row.template);
    draft = draft.about_entity(world, vm).about(world, &row.host).about(world, &row.home.datastore);
    match world.inventory.compute_of_host(&row.host) {
        Some(compute) => draft.about(world, &compute.clone()),
        None => draft,
    }
}

/// Posts an event. Returns its key.
pub(crate) fn post(world: &mut World, scene: &Scene, draft: Draft) -> i32 {
    let key = world.events.next_key;
    world.events.next_key += 1;
    let posted = world.events.push(Posted {
        class: draft.class,
        key,
        chain: if scene.chain == 0 { key } else { scene.chain },
        time: scene.now,
        user: Arc::clone(&scene.user),
        arguments: draft.arguments,
        message: draft.message,
        template: draft.template,
        rest: draft.rest,
        place: draft.place,
    });
    announce(world, &posted);
    key
}

/// Posts an event about a VM that has no fields of its own. `{vm}`, `{host}` and `{dc}` in the message are filled in.
pub(crate) fn post_vm(
    world: &mut World,
    scene: &Scene,
    class: &'static str,
    vm: &MoRef,
    message: &str,
) -> i32 {
    let message = fill(world, vm, message);
    let draft = vm_draft(world, class, vm, message);
    post(world, scene, draft)
}

/// Puts the names of a VM, its host and its datacenter into a message.
pub(crate) fn fill(world: &World, vm: &MoRef, message: &str) -> String {
    let inventory = &world.inventory;
    let name = |obj: Option<MoRef>| {
        obj.and_then(|obj| inventory.name(&obj).map(str::to_owned)).unwrap_or_default()
    };
    let host = inventory.vms.get(vm).map(|row| row.host.clone());
    message
        .replace("{vm}", &name(Some(vm.clone())))
        .replace("{host}", &name(host))
        .replace("{dc}", &name(inventory.datacenter_of(vm)))
}

/// The event that a task begins with; the events of its work refer to it.
pub(crate) fn post_task(world: &mut World, task: &MoRef, scene: &Scene) -> i32 {
    let Some(info) = world.tasks.info(task) else { return 0 };
    let entity = info.entity.clone().unwrap_or_default();
    let message = format!("Task: {}", info.name.as_deref().unwrap_or_default());
    let mut draft = match entity.kind {
        MoType::VirtualMachine => vm_draft(world, "TaskEvent", &entity, message),
        _ => Draft::new("TaskEvent", message).about_entity(world, &entity),
    };
    // Not an event of a VM, though it is about one.
    draft.template = None;
    post(world, scene, draft.with("info", &info))
}

/// An event that a client has made itself: its message, and the object that it is about.
pub(super) fn post_foreign(
    world: &mut World,
    cx: &CallContext<'_>,
    event: &Element,
) -> Result<(), Failure> {
    let text = |name: &str| event.text_of(name).filter(|text| !text.is_empty());
    let fields = ["vm", "host", "computeResource", "datacenter", "ds", "net", "dvs"];
    let argument = |field: &str| {
        let inner = event.child(field)?.children.iter().find(|child| child.name != "name")?;
        inner.moref()
    };
    let entity = text("objectId").zip(text("objectType"));
    let entity = entity.map(|(id, kind)| MoRef::new(MoType::from(kind), id));
    let about = entity.or_else(|| fields.iter().find_map(|field| argument(field)));
    if let Some(missing) = about.as_ref().filter(|obj| !world.inventory.contains(obj)) {
        return Err(Failure::not_found(missing));
    }
    let message = text("message").or_else(|| text("fullFormattedMessage"));
    let mut draft = Draft::new("EventEx", message.unwrap_or_default());
    if let Some(obj) = &about {
        draft = draft.about_entity(world, obj);
    }
    for field in ["eventTypeId", "severity", "message", "objectId", "objectType", "objectName"] {
        if let Some(given) = text(field) {
            draft = draft.with(field, &given.to_owned());
        }
    }
    post(world, &Scene::from(cx), draft);
    Ok(())
}
