//! Every wait has a name and a deadline.

mod deadlines;
mod timeline;

#[cfg(test)]
mod tests;

use serde::Serialize;

pub use self::deadlines::PhaseDeadlines;
pub use self::timeline::{Ended, PhaseError, PhaseHook, PhaseTimer, Step, Timeline, Timelines};

macro_rules! phases {
    ($($(#[$meta:meta])* $name:ident = $text:literal, $label:literal;)+) => {
        /// A named wait in the life of a machine. A closed set, because it becomes a metric label.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Phase {
            $($(#[$meta])* $name,)+
        }

        impl Phase {
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// For metrics and JSON.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $label,)+ }
            }

            /// For people: what is being done.
            pub fn words(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
        }
    };
}

phases! {
    /// A spare gets its name, annotation and size.
    Claiming = "claiming a spare", "claiming";
    Cloning = "cloning", "cloning";
    /// A machine is made without a template.
    Creating = "creating", "creating";
    /// An image or ISO is put where the machine can boot it.
    Uploading = "uploading", "uploading";
    PoweringOn = "powering on", "powering-on";
    /// Until programs can be started in the guest.
    Booting = "booting", "booting";
    WaitingForAddress = "waiting for address", "waiting-for-address";
    /// Until a first program has run in the guest.
    Probing = "probing the guest", "probing";
    /// The operator's own script runs before the worker.
    Preparing = "preparing", "preparing";
    /// The worker's script is started.
    Launching = "launching", "launching";
    /// Until whoever wanted the machine knows it.
    Registering = "registering", "registering";
    Working = "working", "working";
    /// The guest was asked to shut down.
    ShuttingDown = "shutting down", "shutting-down";
    PoweringOff = "powering off", "powering-off";
    /// A template is made of it.
    Templating = "becoming a template", "templating";
    Destroying = "destroying", "destroying";
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.words())
    }
}
