//! The generation of workflows as code: jobs with UUIDs, models in repositories.

mod client;
mod event;
mod job;
mod model;
mod runs_on;
mod sign_in;
mod worker;

pub use client::Client;
pub use event::JobQueued;
pub use job::{InfoLevel, JobInfo, RunJob, RunJobInfo, WorkflowJob};
pub use model::{AsCodePath, Model, ModelSpec, VsphereSpec};
pub use runs_on::RunsOn;
pub use sign_in::{Hatchery, SignInAnswer, SignInForm};
pub use worker::Worker;

pub(crate) use sign_in::V2SignIn;
