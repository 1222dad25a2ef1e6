//! The running hatchery, behaviour by behaviour. A test names the row of the reference's tables that it shows: D are differences between CDS's
//! documents and versions, W are weaknesses of CDS's own hatchery, numbers are sections.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

#[path = "../lab/mod.rs"]
mod lab;

mod adoption;
mod capacity;
mod cleanup;
mod front_door;
mod gates;
mod legacy;
mod observe;
mod one_name;
mod outages;
mod place;
mod pools;
mod restart;
mod secrets;
mod spawn;
mod spawn_failures;
mod steering;
mod template_build;
mod two_doors;
mod two_hatcheries;
