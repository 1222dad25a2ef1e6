//! What stands around the blocks.

use askama::Template;

use super::block::{Content, Html};
use super::foreign::Name;
use super::{Place, Rendered, words};

/// A whole page.
pub(crate) fn document(page: &Rendered) -> Result<String, askama::Error> {
    let now = page.now.as_millisecond();
    Document { page, places: &Place::ALL, now, clock: words::clock(page.now) }.render()
}

/// For somebody who may not look yet: why, and a field for the token if there is one that would help.
pub(crate) fn stranger(why: &str, takes_token: bool) -> Result<String, askama::Error> {
    Stranger { why, takes_token }.render()
}

#[derive(Template)]
#[template(path = "document.html")]
struct Document<'a> {
    page: &'a Rendered,
    places: &'a [Place],
    now: i64,
    clock: String,
}

#[derive(Template)]
#[template(path = "stranger.html")]
struct Stranger<'a> {
    why: &'a str,
    takes_token: bool,
}
