//! Content libraries, packages, tags, storage policies and disks, over the wire's own protocols.
#![allow(clippy::unwrap_used, reason = "it is a test")]

#[path = "../govc/mod.rs"]
mod govc;
#[path = "../lab/mod.rs"]
mod lab;
#[path = "../wire_door/mod.rs"]
mod wire_door;

mod library;
mod package;
mod policy;
mod rest;
mod storage;
mod tools;
