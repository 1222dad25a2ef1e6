//! The running hatchery, behaviour by behaviour. Each test names the row of the reference's tables (D: differences, W: weaknesses) that it shows.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

#[path = "../lab/mod.rs"]
mod lab;

mod first;
mod observe;
mod template_build;
mod adoption;
mod spawn;
mod spawn_failures;
