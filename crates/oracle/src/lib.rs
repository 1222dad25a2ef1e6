#![doc = include_str!("../README.md")]

mod availability;
mod go;
mod govc;
mod install;
mod process;
mod pyvmomi;
mod scratch;
mod server_url;
mod target;
mod vcsim;

pub use go::{Binary, GOVMOMI_VERSION, govc, govmomi_bench, vcsim};
pub use govc::Govc;
pub use process::Output;
pub use pyvmomi::{PYVMOMI_VERSION, Python, Pyvmomi, pyvmomi};
pub use vcsim::{Vcsim, VcsimOptions};
