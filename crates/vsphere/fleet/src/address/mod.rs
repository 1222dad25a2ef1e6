//! Which addresses there are, which are taken, and when the next one comes free.

mod book;
mod plan;
mod runs;

pub(crate) use book::AddressBook;
pub use book::{AddressCell, AddressCounts, AddressState, ComesFreeBy, Forecast};
pub use plan::{AddressPlan, AddressRanges, Network, Problem};
