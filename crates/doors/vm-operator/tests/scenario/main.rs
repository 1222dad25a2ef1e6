//! The door at work on an embedded Kubernetes and an embedded vCenter, on paused time.

#![expect(clippy::unwrap_used, reason = "a test may")]

mod access;
mod around;
mod backup;
mod campaign;
mod change;
mod console;
mod create;
mod delete;
mod fast_deploy;
mod front_door;
mod lab;
mod lease;
mod mark;
mod place;
mod rest;
mod v_app;
mod vcsim;
mod volumes;
