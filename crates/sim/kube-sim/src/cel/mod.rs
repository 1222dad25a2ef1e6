//! The part of CEL, the Common Expression Language, that rules of custom resource definitions use.
//!
//! Literals, operators, selection, the macros `has`, `all`, `exists`, `exists_one`, `map`, `filter`, and functions on
//! strings and lists. Not there: durations, timestamps, quantities, addresses, URLs, optionals. A rule that needs one of
//! those is refused when its definition is applied, never ignored.

mod evaluate;
mod function;
mod parse;
mod rule;
mod token;
mod value;

pub(crate) use rule::Rule;

#[cfg(test)]
mod tests;
