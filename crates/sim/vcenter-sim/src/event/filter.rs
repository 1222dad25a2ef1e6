use roost_vim_wire::types::{
    EventFilterSpec, EventFilterSpecByEntity, EventFilterSpecRecursionOption,
};
use roost_vim_wire::{Element, MoRef};

use super::class::is_a;
use super::posted::Posted;
use crate::call::Failure;
use crate::event::collector::MAX_PAGE;
use crate::inventory::Inventory;

/// Refuses a filter that a vCenter would refuse.
pub(super) fn check(inventory: &Inventory, filter: &EventFilterSpec) -> Result<(), Failure> {
    if filter.max_count.is_some_and(|count| !(0..=MAX_PAGE).contains(&count)) {
        return Err(Failure::invalid_argument("filter.maxCount"));
    }
    match &filter.entity {
        Some(by) if !inventory.contains(&by.entity) => Err(Failure::not_found(&by.entity)),
        _ => Ok(()),
    }
}

pub(super) fn fits(inventory: &Inventory, filter: &EventFilterSpec, posted: &Posted) -> bool {
    let is_in_time = filter.time.as_ref().is_none_or(|time| {
        time.begin_time.is_none_or(|begin| posted.time >= begin)
            && time.end_time.is_none_or(|end| posted.time <= end)
    });
    let wanted = || filter.event_type_id.iter().chain(&filter.kind);
    let is_wanted = wanted().next().is_none() || wanted().any(|wanted| is_kind(posted, wanted));
    is_in_time
        && is_wanted
        && filter.event_chain_id.is_none_or(|chain| posted.chain == chain)
        && (filter.category.is_empty()
            || filter.category.iter().any(|category| category == category_of(posted)))
        && filter.user_name.as_ref().is_none_or(|by| is_by(posted, by))
        && filter.entity.as_ref().is_none_or(|by| is_about(inventory, by, posted))
}

fn category_of(posted: &Posted) -> &'static str {
    if posted.class.contains("Failed") { "error" } else { "info" }
}

/// The class, a base class of it, or the id that an `EventEx` carries.
fn is_kind(posted: &Posted, wanted: &str) -> bool {
    let own_id = || {
        posted.rest.iter().any(|element| element.name == "eventTypeId" && element.text == wanted)
    };
    // Servers also accept `vim.event.VmRenamedEvent`.
    let class = wanted.rsplit('.').next().unwrap_or(wanted);
    is_a(posted.class, class) || own_id()
}

fn is_by(posted: &Posted, by: &Element) -> bool {
    let is_system = by.text_of("systemUser") == Some("true") && posted.user.is_empty();
    let mut users = by.children_named("userList").peekable();
    is_system || users.peek().is_none() || users.any(|user| user.text == *posted.user)
}

fn is_about(inventory: &Inventory, by: &EventFilterSpecByEntity, posted: &Posted) -> bool {
    let is = |obj: &MoRef| *obj == by.entity;
    let mut objects = posted.arguments.iter().map(|argument| &argument.obj);
    match by.recursion {
        EventFilterSpecRecursionOption::Children => {
            posted.place.as_ref().is_some_and(is)
                || objects.any(|obj| inventory.parent(obj).is_some_and(|parent| is(&parent)))
        }
        EventFilterSpecRecursionOption::All => {
            // Events of no object at all are the server's, which the root stands for.
            by.entity == inventory.root
                || objects.any(|obj| inventory.lineage(obj).any(|at| is(&at)))
                || posted
                    .place
                    .as_ref()
                    .is_some_and(|place| inventory.lineage(place).any(|at| is(&at)))
        }
        EventFilterSpecRecursionOption::This | EventFilterSpecRecursionOption::Other(_) => {
            objects.any(is)
        }
    }
}
