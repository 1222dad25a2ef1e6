use clap::Args;

use crate::ask::Reach;

#[derive(Debug, Args)]
pub struct Top {
    /// Print one frame as text and end; COLUMNS and LINES say how large
    #[arg(long)]
    pub(super) once: bool,

    #[command(flatten)]
    reach: Reach,
}

impl Top {
    pub(super) fn reach(&self) -> &Reach {
        &self.reach
    }
}
