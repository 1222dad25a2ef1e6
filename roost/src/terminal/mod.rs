//! The whole picture in a terminal: what `roost demo` shows while it runs.
//!
//! [`Picture`] is what is shown, made of the views that the web page shows too; [`draw`](draw::draw) puts it on a screen of any size; [`Screen`] is the
//! terminal itself, which is given back as it was.

mod bar;
mod decisions;
mod draw;
mod lanes;
mod paint;
mod picture;
mod screen;
mod sides;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use self::decisions::subject_words;
pub(crate) use self::picture::{Count, Mood, Picture};
pub(crate) use self::screen::{Screen, Seen};
pub(crate) use self::words::{clock_time, duration_words, shortened};
