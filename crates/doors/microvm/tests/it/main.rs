//! Runtimes with real guests.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

mod qemu;
