//! What callers may do. Everybody may do everything until a privilege is taken away.

mod needed;
mod role;

use roost_vim_wire::methods::{EntityPrivilege, HasPrivilegeOnEntities, PrivilegeAvailability};
use roost_vim_wire::{Array, Element, Fault, LocalizedMethodFault, Method, MoRef, Request, Value};

pub(crate) use needed::{Need, datastore, needs, place};
use role::Roles;

use crate::call::{CallContext, CallResult, Failure, ReplyBody, decode};
use crate::door::Vcenter;
use crate::glob;
use crate::inventory::Inventory;
use crate::model::calls;
use crate::property::{Found, no_such};
use crate::world::World;

pub(crate) const READ: &str = "System.Read";

#[derive(Debug)]
pub(crate) struct Permissions {
    denied: Vec<Denial>,
    pub roles: Roles,
}

/// A privilege that is gone, everywhere or on an object and all below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// A privilege such as `VirtualMachine.Interact.PowerOn`, or a glob: `VirtualMachine.*`.
    pub privilege: String,
    pub below: Option<MoRef>,
}

impl Permissions {
    pub(crate) fn new(root: &MoRef) -> Self {
        Self { denied: Vec::new(), roles: Roles::new(root) }
    }

    /// Whether a user may: nobody has taken it away, and the user's role has it.
    pub(crate) fn may(
        &self,
        user: &str,
        privilege: &str,
        on: &MoRef,
        inventory: &Inventory,
    ) -> bool {
        self.allows(privilege, on, inventory)
            && (self.roles.is_untouched() || self.roles.allows(user, privilege, on, inventory))
    }

    /// Refuses a user who lacks any of these; without a user, no role is asked.
    pub(crate) fn check(
        &self,
        user: Option<&str>,
        needs: &[Need],
        inventory: &Inventory,
    ) -> Result<(), Failure> {
        let has = |need: &Need| match user {
            Some(user) => self.may(user, need.privilege, &need.on, inventory),
            None => self.allows(need.privilege, &need.on, inventory),
        };
        match needs.iter().find(|need| !has(need)) {
            Some(need) => Err(no_permission(&need.on, need.privilege)),
            None => Ok(()),
        }
    }

    pub(crate) fn allows(&self, privilege: &str, obj: &MoRef, inventory: &Inventory) -> bool {
        !self.denied.iter().any(|denial| {
            glob::matches(&denial.privilege, privilege)
                && denial.below.as_ref().is_none_or(|below| is_within(obj, below, inventory))
        })
    }

    /// Why the properties of an object cannot be read, if so. Free while nothing is denied.
    pub(crate) fn read_fault(
        &self,
        obj: &MoRef,
        inventory: &Inventory,
    ) -> Option<LocalizedMethodFault> {
        let denied = !self.denied.is_empty() && !self.allows(READ, obj, inventory);
        denied.then(|| no_permission(obj, READ).localized())
    }

    /// Whether everybody may do everything.
    pub(crate) fn is_unrestricted(&self) -> bool {
        self.denied.is_empty() && self.roles.is_untouched()
    }

    pub(crate) fn deny(&mut self, denial: Denial) {
        if !self.denied.contains(&denial) {
            self.denied.push(denial);
        }
    }

    pub(crate) fn allow(&mut self, denial: &Denial) {
        self.denied.retain(|known| known != denial);
    }

    pub(crate) fn denied(&self) -> &[Denial] {
        &self.denied
    }

    pub(crate) fn clear(&mut self) {
        self.denied.clear();
    }
}

/// Whether `obj` is `top` or below it, by folder, pool or host.
fn is_within(obj: &MoRef, top: &MoRef, inventory: &Inventory) -> bool {
    let (mut seen, mut ahead) = (Vec::new(), vec![obj.clone()]);
    while let Some(place) = ahead.pop() {
        if place == *top {
            return true;
        }
        if !seen.contains(&place) {
            ahead.extend(inventory.containers(&place));
            seen.push(place);
        }
    }
    false
}

pub(crate) fn no_permission(obj: &MoRef, privilege: &str) -> Failure {
    let fault =
        Fault::of("NoPermission").with("object", obj).with("privilegeId", &privilege.to_owned());
    Failure::new(fault, "Permission to perform this operation was denied.")
}

pub(crate) fn not_authenticated(obj: &MoRef, privilege: &str) -> Failure {
    let fault = Fault::of("NotAuthenticated")
        .with("object", obj)
        .with("privilegeId", &privilege.to_owned());
    Failure::new(fault, "The session is not authenticated.")
}

pub(crate) fn call(
    request: &Request<'_>,
    _: &MoRef,
    world: &mut World,
    _: &CallContext<'_>,
) -> Option<CallResult> {
    if request.method == HasPrivilegeOnEntities::NAME {
        return Some(has_privilege(request, world));
    }
    let known = |world: &World, entity: &MoRef| {
        if world.inventory.contains(entity) { Ok(()) } else { Err(Failure::not_found(entity)) }
    };
    calls! { request;
        AddAuthorizationRole => |call| world.permissions.roles.add(&call.name, call.priv_ids),
        UpdateAuthorizationRole => |call| world.permissions.roles.update(call.role_id, call.new_name, call.priv_ids),
        RemoveAuthorizationRole => |call| world.permissions.roles.remove(call.role_id, call.fail_if_used),
        SetEntityPermissions => |call| {
            known(world, &call.entity)?;
            world.permissions.roles.set(&call.entity, call.permission)
        },
        RemoveEntityPermission => |call| {
            known(world, &call.entity)?;
            world.permissions.roles.unset(&call.entity, &call.user, call.is_group)
        },
        RetrieveAllPermissions => |_| Ok(world.permissions.roles.granted().to_vec()),
        RetrieveEntityPermissions => |call| {
            known(world, &call.entity)?;
            Ok(world.permissions.roles.on(&call.entity, call.inherited, &world.inventory))
        },
        RetrieveRolePermissions => |call| match world.permissions.roles.get(call.role_id) {
            Some(role) => {
                let granted = world.permissions.roles.granted().iter();
                Ok(granted.filter(|one| one.role_id == role.id).cloned().collect())
            }
            None => Err(Failure::of("NotFound", "The role could not be found.")),
        },
    }
}

fn has_privilege(request: &Request<'_>, world: &World) -> CallResult {
    let asked: HasPrivilegeOnEntities = decode(request)?;
    if !world.sessions.is_live(&asked.session_id) {
        return Err(Failure::invalid_argument("sessionId"));
    }
    if let Some(missing) = asked.entity.iter().find(|entity| !world.has(entity, &asked.session_id))
    {
        return Err(Failure::not_found(missing));
    }
    let user = world.sessions.get(&asked.session_id).map_or("", |session| session.user());
    let on = |entity: &MoRef| EntityPrivilege {
        entity: entity.clone(),
        priv_availability: asked
            .priv_id
            .iter()
            .map(|privilege| PrivilegeAvailability {
                priv_id: privilege.clone(),
                is_granted: {
                    let on = place(world, entity);
                    world.permissions.may(user, privilege, &on, &world.inventory)
                },
            })
            .collect(),
    };
    Ok(ReplyBody::of::<HasPrivilegeOnEntities>(&asked.entity.iter().map(on).collect()))
}

/// The properties of the authorization manager.
pub(crate) fn property(world: &World, path: &str) -> Found {
    match path {
        "privilegeList" => {
            let all = needed::PRIVILEGES.iter().map(|id| {
                let (group, name) = id.rsplit_once('.').unwrap_or(("", id));
                Value::Other(Box::new(
                    Element::new("AuthorizationPrivilege")
                        .typed("AuthorizationPrivilege")
                        .with(Element::leaf("privId", *id))
                        .with(Element::leaf("onParent", "false"))
                        .with(Element::leaf("name", name))
                        .with(Element::leaf("privGroupName", group)),
                ))
            });
            Ok(Some(Value::Array(Array::new("AuthorizationPrivilege", all.collect()))))
        }
        "roleList" => Ok(Some(world.permissions.roles.list())),
        "description" => Ok(None),
        _ => no_such(path),
    }
}

impl Vcenter {
    /// Takes a privilege away, everywhere or on an object and all below it. `System.Read` hides properties.
    pub fn deny(&self, privilege: &str, below: Option<MoRef>) {
        self.handle
            .with(|world| world.permissions.deny(Denial { privilege: privilege.into(), below }));
    }

    /// Takes back a [`deny`](Self::deny) with the same arguments.
    pub fn allow(&self, privilege: &str, below: Option<MoRef>) {
        self.handle
            .with(|world| world.permissions.allow(&Denial { privilege: privilege.into(), below }));
    }

    pub fn denials(&self) -> Vec<Denial> {
        self.handle.with(|world| world.permissions.denied().to_vec())
    }
}
