//! The simulated vCenter through its two doors: in process on paused time, and on the wire for clients that we did not write.
#![allow(clippy::unwrap_used, reason = "it is a test")]

mod collector_announcements;
mod collector_cost;
mod collector_filters;
mod collector_model;
mod collector_retrieve;
mod collector_versions;
mod collector_views;
mod collector_wait;
#[path = "../govc/mod.rs"]
mod govc;
mod govc_esxi;
mod govc_files;
mod govc_guest;
mod govc_hardware;
mod govc_history;
mod govc_inventory;
mod govc_lifecycle;
mod govc_places;
mod govc_refusals;
#[path = "../lab/mod.rs"]
mod lab;
#[path = "../pyvmomi/mod.rs"]
mod pyvmomi;
mod pyvmomi_changing;
mod pyvmomi_reading;
mod server_control;
mod server_dispatch;
mod server_faults;
mod server_permission;
mod server_replay;
mod server_search;
mod server_session;
mod server_tags;
mod server_wire;
#[path = "../wire_door/mod.rs"]
mod wire_door;
