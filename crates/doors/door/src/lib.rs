#![doc = include_str!("../README.md")]

mod core;
mod feed;
pub mod fleet;
mod front_door;
mod house;
mod steer;

pub use self::core::{Core, CoreView};
pub use feed::{Feed, Subscription};
pub use front_door::{Answered, DoorWords, FrontDoor, Route, Summary};
pub use house::House;
pub use steer::{Acting, Action, Found, Order, Person, Refused, Shown, Steer};
