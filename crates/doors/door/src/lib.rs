#![doc = include_str!("../README.md")]

mod agreement;
mod core;
mod course;
mod demonstration;
mod exposition;
mod feed;
pub mod fleet;
mod fleet_core;
mod front_door;
mod history;
mod house;
mod joined_core;
mod links;
mod meant;
mod needs;
mod outlook;
mod past;
mod steer;
mod summary;

pub use self::core::{Core, CoreView};
pub use agreement::{disagreement, standing};
pub use course::{Course, Stage, Waits};
pub use demonstration::{Demonstration, Trick};
pub use feed::{Feed, Subscription};
pub use fleet_core::FleetCore;
pub use front_door::{Answered, DoorWords, FrontDoor, Route, Summary};
pub use history::History;
pub use house::House;
pub use joined_core::JoinedCore;
pub use links::Links;
pub use meant::{Meant, NotMeant};
pub use needs::{api_server_outage, needs_of};
pub use steer::{Acting, Action, Found, Order, Person, Refused, Shown, Steer};
