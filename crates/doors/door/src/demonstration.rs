use std::fmt::Debug;

use crate::Refused;

/// What a demo offers beside what every service does: somebody can break its world and watch what comes of it.
pub trait Demonstration: Debug + Send + Sync + 'static {
    /// How its time runs, such as `simulated, 25 times as fast`.
    fn pace(&self) -> String;

    /// Opens actions. It is no secret: what it opens is a simulation.
    fn token(&self) -> String;

    /// What can be done to its world, in the order in which it is offered.
    fn tricks(&self) -> Vec<Trick>;

    /// Does it, and says in words what was done.
    fn play(&self, name: &str) -> Result<String, Refused>;
}

/// One thing that can be done to the world of a demo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trick {
    /// As it stands in an address.
    pub name: &'static str,
    /// What stands on its button: a verb.
    pub words: String,
    /// What to watch then.
    pub about: &'static str,
}
