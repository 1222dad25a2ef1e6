//! The verbs on the embedded vCenter, in process and on paused time: hours pass at once, and no socket is opened.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod campaign;
mod content;
mod create;
mod destroy;
mod events;
mod files;
mod find;
mod guest;
mod guest_host;
mod host_agent;
mod lab;
mod make_once;
mod privileges;
mod reconfigure;
mod snapshot;
mod spawn;
mod spawnable;
