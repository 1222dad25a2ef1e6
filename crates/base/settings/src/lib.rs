#![doc = include_str!("../README.md")]

mod doc;
mod environment;
mod form;
mod json;
mod key;
mod log;
mod problem;
mod reader;
mod sample;
mod secret;
mod section;
mod source;
mod tree;

pub use environment::{Surroundings, SystemSurroundings};
pub use key::{Json, Key, Origin, Sample, Shape};
pub use log::{LogFormat, LogLevel, LogSettings};
pub use problem::{Invalid, Problem, Problems};
pub use reader::{Listed, Reader};
pub use secret::Secret;
pub use section::Section;
pub use source::{SecretError, SecretSource};
pub use tree::{Entry, Item, Table, Value};
