//! The whole picture in a terminal: what `roost top` and `roost demo` show.
//!
//! ```text
//!   Origin  -- look -->  Look  -- draw -->  screen
//!     ^                                       | keys
//!     +------- orders ------  View  <---------+
//! ```
//!
//! An [`Origin`] is a running service or a demo in this process; a [`Look`] is what it shows at one moment, made of the views that the web page shows
//! too. A [`View`] is what the person who looks has chosen: it changes with keys alone. [`draw`](draw::draw) puts both on a screen of any size, and
//! [`watch`] is the terminal itself, which is given back as it was.

mod bar;
mod decisions;
mod detail;
mod draw;
mod entry;
mod keys;
mod lanes;
mod list;
mod origin;
mod overlay;
mod paint;
mod picture;
mod question;
mod screen;
mod sides;
#[cfg(test)]
mod tests;
mod view;
mod words;

pub use self::decisions::subject_words;
pub use self::origin::{Detail, Look, Opened, Origin, Said};
pub use self::picture::{Count, Lost, Picture};
pub use self::screen::{Audience, print_once, watch};
pub use self::words::{clock_time, duration_words, shortened};
pub use roost_views::Mood;
