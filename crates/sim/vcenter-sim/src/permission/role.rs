//! Roles, and who has which where. The login of the administrator keeps all rights whatever is granted.

use roost_vim_wire::methods::Permission;
use roost_vim_wire::{Array, Element, MoRef, Value};

use super::needed;
use crate::call::Failure;
use crate::inventory::Inventory;

#[derive(Debug, Clone)]
pub(crate) struct Role {
    pub id: i32,
    pub name: String,
    is_system: bool,
    label: String,
    pub privileges: Vec<String>,
}

/// What every role has.
const ALWAYS: [&str; 3] = ["System.Anonymous", "System.Read", "System.View"];

pub(crate) const ADMIN: i32 = -1;

#[derive(Debug)]
pub(crate) struct Roles {
    all: Vec<Role>,
    granted: Vec<Permission>,
    next: i32,
}

impl Roles {
    pub(crate) fn new(root: &MoRef) -> Self {
        let role = |id, name: &str, label: &str, privileges: Vec<String>| Role {
            id,
            name: name.into(),
            is_system: id < 0,
            label: label.into(),
            privileges,
        };
        let some = |all: &[&str]| all.iter().map(|privilege| (*privilege).to_owned()).collect();
        let vm_user = needed::PRIVILEGES
            .iter()
            .filter(|id| id.starts_with("VirtualMachine.Interact.") || ALWAYS.contains(*id));
        let power_user = needed::PRIVILEGES.iter().filter(|id| {
            [
                "VirtualMachine.Interact.",
                "VirtualMachine.Config.",
                "VirtualMachine.State.",
                "Datastore.",
            ]
            .iter()
            .any(|group| id.starts_with(group))
                || ALWAYS.contains(*id)
        });
        let admin = Permission {
            entity: Some(root.clone()),
            principal: "VSPHERE.LOCAL\\Administrator".into(),
            group: false,
            role_id: ADMIN,
            propagate: true,
        };
        Self {
            all: vec![
                role(-5, "NoAccess", "No access", Vec::new()),
                role(-4, "Anonymous", "Anonymous", some(&["System.Anonymous"])),
                role(-3, "View", "View", some(&["System.Anonymous", "System.View"])),
                role(-2, "ReadOnly", "Read-only", some(&ALWAYS)),
                role(ADMIN, "Admin", "Administrator", some(needed::PRIVILEGES)),
                role(
                    4,
                    "VirtualMachinePowerUser",
                    "Virtual machine power user",
                    power_user.map(|id| (*id).to_owned()).collect(),
                ),
                role(
                    5,
                    "VirtualMachineUser",
                    "Virtual machine user",
                    vm_user.map(|id| (*id).to_owned()).collect(),
                ),
            ],
            granted: vec![admin],
            next: 100,
        }
    }

    pub(crate) fn get(&self, id: i32) -> Option<&Role> {
        self.all.iter().find(|role| role.id == id)
    }

    pub(crate) fn add(&mut self, name: &str, privileges: Vec<String>) -> Result<i32, Failure> {
        check_privileges(&privileges)?;
        if name.is_empty() {
            return Err(
                Failure::of("InvalidName", "The name is empty.").with("name", &name.to_owned())
            );
        }
        if self.all.iter().any(|role| role.name == name) {
            return Err(Failure::of("AlreadyExists", format!("The role '{name}' already exists."))
                .with("name", &name.to_owned()));
        }
        let id = self.next;
        self.next += 1;
        let privileges = with_always(privileges);
        self.all.push(Role {
            id,
            name: name.into(),
            is_system: false,
            label: name.into(),
            privileges,
        });
        Ok(id)
    }

    pub(crate) fn update(
        &mut self,
        id: i32,
        name: String,
        privileges: Vec<String>,
    ) -> Result<(), Failure> {
        check_privileges(&privileges)?;
        let role = self.own(id)?;
        role.label.clone_from(&name);
        role.name = name;
        role.privileges = with_always(privileges);
        Ok(())
    }

    pub(crate) fn remove(&mut self, id: i32, fail_if_used: bool) -> Result<(), Failure> {
        self.own(id)?;
        if fail_if_used && self.granted.iter().any(|granted| granted.role_id == id) {
            return Err(Failure::of("RemoveFailed", "The role is in use."));
        }
        self.granted.retain(|granted| granted.role_id != id);
        self.all.retain(|role| role.id != id);
        Ok(())
    }

    /// A role that is not the system's.
    fn own(&mut self, id: i32) -> Result<&mut Role, Failure> {
        match self.all.iter_mut().find(|role| role.id == id) {
            Some(role) if !role.is_system => Ok(role),
            Some(_) => Err(Failure::invalid_argument("roleId")),
            None => Err(Failure::of("NotFound", "The role could not be found.")),
        }
    }

    pub(crate) fn set(&mut self, entity: &MoRef, asked: Vec<Permission>) -> Result<(), Failure> {
        if asked.iter().any(|one| self.get(one.role_id).is_none()) {
            return Err(Failure::of("NotFound", "The role could not be found."));
        }
        if asked.iter().any(|one| one.principal.is_empty()) {
            return Err(Failure::invalid_argument("permission.principal"));
        }
        for one in asked {
            self.granted.retain(|known| !is_same(known, entity, &one.principal, one.group));
            self.granted.push(Permission { entity: Some(entity.clone()), ..one });
        }
        Ok(())
    }

    pub(crate) fn unset(
        &mut self,
        entity: &MoRef,
        principal: &str,
        is_group: bool,
    ) -> Result<(), Failure> {
        let before = self.granted.len();
        self.granted.retain(|known| !is_same(known, entity, principal, is_group));
        if self.granted.len() == before {
            return Err(Failure::of("NotFound", "The permission could not be found."));
        }
        Ok(())
    }

    pub(crate) fn granted(&self) -> &[Permission] {
        &self.granted
    }

    /// What is granted on an entity, with what comes from above it if asked for.
    pub(crate) fn on(
        &self,
        entity: &MoRef,
        inherited: bool,
        inventory: &Inventory,
    ) -> Vec<Permission> {
        let above: Vec<MoRef> = inventory.lineage(entity).collect();
        let counts = |granted: &&Permission| match &granted.entity {
            Some(at) if at == entity => true,
            Some(at) => inherited && granted.propagate && above.contains(at),
            None => false,
        };
        self.granted.iter().filter(counts).cloned().collect()
    }

    /// Whether nobody but the administrator was given anything: then everybody may do everything, as on a server without roles.
    pub(crate) fn is_untouched(&self) -> bool {
        self.granted.len() <= 1
    }

    /// Whether a user's role allows it on an entity. The nearest permission above it decides; who has none at all is not restricted.
    pub(crate) fn allows(
        &self,
        user: &str,
        privilege: &str,
        obj: &MoRef,
        inventory: &Inventory,
    ) -> bool {
        let is_own = |granted: &&Permission| !granted.group && same_user(&granted.principal, user);
        if !self.granted.iter().any(|granted| is_own(&granted)) {
            return true;
        }
        let mut ahead = vec![obj.clone()];
        let mut seen = Vec::new();
        while let Some(at) = ahead.pop() {
            let here = self.granted.iter().filter(is_own).find(|granted| {
                granted.entity.as_ref() == Some(&at) && (granted.propagate || at == *obj)
            });
            if let Some(granted) = here {
                let role = self.get(granted.role_id);
                return role.is_some_and(|role| role.privileges.iter().any(|own| own == privilege));
            }
            if !seen.contains(&at) {
                ahead.extend(inventory.containers(&at));
                seen.push(at);
            }
        }
        // The call itself says that it is not there.
        !inventory.contains(obj)
    }

    pub(crate) fn list(&self) -> Value {
        let all = self.all.iter().map(|role| {
            let info = Element::new("info")
                .typed("Description")
                .with(Element::leaf("label", role.label.as_str()))
                .with(Element::leaf("summary", role.label.as_str()));
            let mut element = Element::new("AuthorizationRole")
                .typed("AuthorizationRole")
                .with_field("roleId", &role.id)
                .with_field("system", &role.is_system)
                .with(Element::leaf("name", role.name.as_str()))
                .with(info);
            for privilege in &role.privileges {
                element = element.with(Element::leaf("privilege", privilege.as_str()));
            }
            Value::Other(Box::new(element))
        });
        Value::Array(Array::new("AuthorizationRole", all.collect()))
    }
}

fn with_always(mut privileges: Vec<String>) -> Vec<String> {
    for privilege in ALWAYS {
        if !privileges.iter().any(|known| known == privilege) {
            privileges.push(privilege.into());
        }
    }
    privileges.sort();
    privileges
}

fn check_privileges(privileges: &[String]) -> Result<(), Failure> {
    match privileges.iter().find(|id| !needed::PRIVILEGES.contains(&id.as_str())) {
        Some(_) => Err(Failure::invalid_argument("privIds")),
        None => Ok(()),
    }
}

fn is_same(known: &Permission, entity: &MoRef, principal: &str, is_group: bool) -> bool {
    known.entity.as_ref() == Some(entity)
        && known.group == is_group
        && same_user(&known.principal, principal)
}

/// `VSPHERE.LOCAL\ci` and `ci@vsphere.local` are the same user.
fn same_user(one: &str, other: &str) -> bool {
    fn parts(name: &str) -> (&str, &str) {
        match (name.split_once('\\'), name.split_once('@')) {
            (Some((domain, user)), _) | (None, Some((user, domain))) => (user, domain),
            (None, None) => (name, ""),
        }
    }
    let ((user, domain), (other_user, other_domain)) = (parts(one), parts(other));
    user.eq_ignore_ascii_case(other_user)
        && (domain.is_empty()
            || other_domain.is_empty()
            || domain.eq_ignore_ascii_case(other_domain))
}
