//! The methods, by the object they are called on. Arguments stand in schema order.
//!
//! What is known of a method beside its arguments stands in the same row: whose method it is, the privilege that it needs, and
//! what its task is called. [`by_name`] finds the row.

mod authorization;
mod checkers;
mod collector;
mod compute;
mod disks;
mod files;
mod guest;
mod history;
mod host;
mod inventory;
mod ovf;
mod policy;
mod search;
mod session;
mod settings;
mod storage;
mod switch;
mod upkeep;
mod vm;

use std::collections::HashMap;
use std::sync::LazyLock;

pub use authorization::*;
pub use checkers::*;
pub use collector::*;
pub use compute::*;
pub use disks::*;
pub use files::*;
pub use guest::*;
pub use history::*;
pub use host::*;
pub use inventory::*;
pub use ovf::*;
pub use policy::*;
pub use search::*;
pub use session::*;
pub use settings::*;
pub use storage::*;
pub use switch::*;
pub use upkeep::*;
pub use vm::*;

use crate::xml::{Reader, Start, Writer};
use crate::{Field, MoRef, WireError};

/// What repeating a call could do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: it only reads.
    Read,
    /// It makes, moves or ends something that lives and dies with the session.
    Session,
    /// It changes the inventory, a file or a guest.
    Change,
}

/// Which of a vCenter's services has a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// `/sdk`: vim25.
    Vim,
    /// `/pbm`: storage policies.
    Policy,
    /// `/vslm/sdk`: first-class disks.
    Disks,
}

impl Service {
    /// The service of a receiver: those of storage policies begin with `Pbm`, those of first-class disks with `Vslm`.
    pub(crate) const fn of(receiver: &str) -> Self {
        match receiver.as_bytes() {
            [b'P', b'b', b'm', ..] => Self::Policy,
            [b'V', b's', b'l', b'm', ..] => Self::Disks,
            _ => Self::Vim,
        }
    }

    /// Where it is served, if not at `/sdk`.
    pub fn path(self) -> Option<&'static str> {
        match self {
            Self::Vim => None,
            Self::Policy => Some("pbm"),
            Self::Disks => Some("vslm/sdk"),
        }
    }

    pub fn namespace(self) -> &'static str {
        match self {
            Self::Vim => "urn:vim25",
            Self::Policy => "urn:pbm",
            Self::Disks => "urn:vslm",
        }
    }
}

/// A call: its arguments, its name, and what it answers.
pub trait Method: Default + Send + Sync + 'static {
    const NAME: &'static str;
    const EFFECT: Effect;
    const SERVICE: Service;
    type Output: Field + Send + 'static;

    fn this(&self) -> &MoRef;

    fn write_arguments(&self, w: &mut Writer);

    fn read_argument(&mut self, r: &mut Reader<'_>, child: &Start<'_>) -> Result<(), WireError>;
}

/// A method with [`Effect::Read`]: all that a read-only handle may call.
pub trait ReadMethod: Method {}

/// The row of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodInfo {
    /// As on the wire.
    pub name: &'static str,
    pub effect: Effect,
    /// The kind of object that it is called on; kinds below it have it too.
    pub receiver: &'static str,
    /// What the caller must be allowed, most often on the receiver. Arguments may ask for more.
    pub privilege: Option<&'static str>,
    pub task: Option<TaskText>,
}

/// How a task is described.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskText {
    /// `VirtualMachine.clone`: what localization files know it by. The part before the last dot follows the task's entity.
    pub id: &'static str,
    pub label: &'static str,
}

const TABLES: &[&[MethodInfo]] = &[
    authorization::TABLE,
    checkers::TABLE,
    collector::TABLE,
    compute::TABLE,
    disks::TABLE,
    files::TABLE,
    guest::TABLE,
    history::TABLE,
    host::TABLE,
    inventory::TABLE,
    ovf::TABLE,
    policy::TABLE,
    search::TABLE,
    session::TABLE,
    settings::TABLE,
    switch::TABLE,
    storage::TABLE,
    upkeep::TABLE,
    vm::TABLE,
];

/// All methods that Roost speaks.
pub fn all() -> impl Iterator<Item = &'static MethodInfo> {
    TABLES.iter().copied().flatten()
}

pub fn by_name(name: &str) -> Option<&'static MethodInfo> {
    static ROWS: LazyLock<HashMap<&str, &MethodInfo>> =
        LazyLock::new(|| all().map(|row| (row.name, row)).collect());
    ROWS.get(name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_row() {
        let names: std::collections::BTreeSet<_> = all().map(|row| row.name).collect();
        assert_eq!(names.len(), all().count());
    }

    #[test]
    fn a_method_that_ends_in_task_says_what_its_task_is_called() {
        for row in all() {
            assert_eq!(row.name.ends_with("_Task"), row.task.is_some(), "{}", row.name);
        }
    }
}
