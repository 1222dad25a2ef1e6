//! Server-side apply, and who owns which field.

mod managers;
mod merge;
mod set;
mod shape;

pub(crate) use managers::{is_same_ownership, track};
pub(crate) use merge::merge;

#[cfg(test)]
mod tests;
