#![doc = include_str!("../README.md")]

/// Its examples in Rust compile.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/embedded-vcenter.md")]
struct Page;

mod call;
mod clients;
mod collector;
mod control;
mod counters;
mod customization_specs;
mod disk_object;
mod dispatch;
mod door;
mod event;
mod extension;
mod fault_rules;
mod glob;
mod guest;
mod host_config;
mod inspect;
mod inventory;
mod library;
mod license;
mod model;
mod nfc;
mod options;
mod ordered_set;
mod outage;
mod ovf;
mod performance;
mod permission;
mod policy;
mod pool;
mod property;
mod receiver;
mod reply;
mod rest;
mod search;
mod server;
mod service;
mod session;
mod settings;
mod steer;
mod store;
mod task;
mod timer;
mod timings;
mod view;
mod vm;
mod vslm;
mod world;

pub use clients::Tally;
pub use counters::CounterReport;
pub use door::{Body, Vcenter, full_body};
pub use fault_rules::{Action, FaultRules, Outage, Rule, RuleId, RuleReport, When};
pub use guest::{
    AddressBehaviour, DhcpRange, GuestBehaviour, GuestBoot, GuestEffect, GuestMode, GuestProgram,
    GuestReply, GuestRun, GuestScript, GuestWork,
};
pub use inspect::{GuestProcessView, PoolView, VmGlance, VmView};
pub use inventory::HostConnection;
pub use options::{Credentials, Options, Product, TemplateOptions};
pub use permission::Denial;
pub use server::{ServeError, Server, TlsIdentity};
pub use steer::SteerError;
pub use timings::{Span, Timings};
pub use vm::Power;
