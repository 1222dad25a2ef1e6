#![doc = include_str!("../README.md")]

pub mod annotation;
pub mod config;
pub mod flavor;
pub mod names;
