//! What stands around the blocks.

use askama::Template;
use roost_views::words;

use super::Rendered;
use super::block::{Content, Html};
use super::foreign::Name;

/// A whole page. `may_act` names whoever needs no token to act.
pub(crate) fn document(page: &Rendered, may_act: Option<&str>) -> Result<String, askama::Error> {
    let now = page.now.as_millisecond();
    let clock = words::clock(page.now);
    Document { page, may_act, now, clock }.render()
}

/// For somebody who may not look yet, or at what is not there: why, and a field for the token if there is one that would help.
pub(crate) fn stranger(
    title: &'static str,
    why: &str,
    takes_token: bool,
) -> Result<String, askama::Error> {
    Stranger { title, why, takes_token }.render()
}

#[derive(Template)]
#[template(path = "document.html")]
struct Document<'a> {
    page: &'a Rendered,
    may_act: Option<&'a str>,
    now: i64,
    clock: String,
}

#[derive(Template)]
#[template(path = "stranger.html")]
struct Stranger<'a> {
    title: &'static str,
    why: &'a str,
    takes_token: bool,
}
