#![doc = include_str!("../README.md")]
#![expect(dead_code, reason = "parts that later ones use")]

mod answer;
mod apply;
mod builtin;
mod cel;
mod client;
mod convert;
mod custom;
mod discovery;
mod kind;
mod object;
mod options;
mod patch;
mod path;
mod present;
mod request;
mod schema;
mod selector;
mod sim;
mod status;
mod store;
mod table;
mod user;
mod verb;
mod watch;
mod world;

pub use answer::AnswerBody;
pub use options::Options;
pub use sim::KubeSim;
pub use user::User;
