#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod ageing;
mod metrics;
mod model;
mod script;
mod tables;
mod workers;
