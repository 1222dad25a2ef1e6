//! One function for each route.

pub(crate) mod access;
pub(crate) mod models;
pub(crate) mod queue_v1;
pub(crate) mod queue_v2;
pub(crate) mod service;
pub(crate) mod workers;
