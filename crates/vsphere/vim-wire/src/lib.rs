#![doc = include_str!("../README.md")]

#[macro_use]
mod schema;

mod element;
mod envelope;
mod error;
mod fault;
mod field;
pub mod methods;
mod moref;
mod pages;
pub mod types;
mod value;
pub mod xml;

pub use element::Element;
pub use envelope::{
    Reply, Request, decode_reply, encode_fault, encode_reply, encode_reply_with, encode_request,
    encode_request_in, session_of_request,
};
pub use error::WireError;
pub use fault::{Fault, LocalizedMethodFault, is_a};
pub use field::Field;
pub use methods::{Method, ReadMethod};
pub use moref::{MoRef, MoType};
pub use pages::{Item, PageDecoder};
pub use value::{Array, DataObject, Value};
