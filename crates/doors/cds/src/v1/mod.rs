//! The pipeline generation: jobs with numbers, models in the API's database.

mod client;
mod event;
mod job;
mod model;
mod sign_in;
mod spawn_info;
mod worker;

pub use client::{Booking, Client};
pub use event::{Event, EventFilter, EventMessage, EventPayload};
pub use job::{Action, BookedBy, ExecutedJob, Group, Job, Requirement, RequirementType};
pub use model::{Model, ModelPath, ModelSecret, SpawnError, VirtualMachine, fill_in_secrets};
pub use sign_in::{Service, SignInAnswer, SignInForm};
pub use spawn_info::{JobResult, Message, SpawnInfo};
pub use worker::Worker;

pub(crate) use sign_in::V1SignIn;
