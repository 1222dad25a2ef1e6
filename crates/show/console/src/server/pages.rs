//! The web page, its two files, and the stream that keeps it up to date.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::PathRejection;
use axum::extract::{Extension, Path, Query, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Redirect, Response};
use futures_util::stream;
use http::header::CACHE_CONTROL;
use http::{HeaderValue, StatusCode};
use roost_door::{House, Meant, NotMeant, Person, Shown, Subscription};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep_until};

use super::access::Denied;
use super::answer::{Fault, named, named_in, text};
use super::app::App;
use crate::page::{Asked, Page, Patch, Rendered, document, stranger};

pub(super) const HTML: &str = "text/html; charset=utf-8";

/// As for the events: four a second is as much as an eye can follow.
const BETWEEN: Duration = Duration::from_millis(250);

/// How long something that changed without a word may go unseen, and how often "12 s ago" moves.
const LOOK_ANYWAY: Duration = Duration::from_secs(1);

/// Proxies cut connections on which nothing is said for half a minute or so.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

type Name = Result<Path<String>, PathRejection>;
type Names = Result<Path<(String, String)>, PathRejection>;
type By = Option<Extension<Person>>;

macro_rules! pages {
    ($($page:ident, $live:ident => $which:ident;)+) => {$(
        pub(super) async fn $page(
            State(app): State<Arc<App>>,
            by: By,
            Query(asked): Query<Asked>,
        ) -> Response {
            show(&app, &Page::$which, &asked, by)
        }

        pub(super) async fn $live(State(app): State<Arc<App>>, Query(asked): Query<Asked>) -> Response {
            follow(&app, Page::$which, asked)
        }
    )+};
}

pages! {
    overview, live_overview => Overview;
    vms, live_vms => Vms;
    decisions, live_decisions => Decisions;
    deletions, live_deletions => Deletions;
    link, live_link => Link;
}

/// The only hit is opened at once.
pub(super) async fn search(
    State(app): State<Arc<App>>,
    by: By,
    Query(asked): Query<Asked>,
) -> Response {
    let hits = crate::page::search(&app.house, &asked.q);
    let exact: Vec<_> = hits.iter().filter(|hit| hit.is_exact).collect();
    let only = match (hits.as_slice(), exact.as_slice()) {
        ([only], _) => Some(only),
        (_, [only]) => Some(*only),
        _ => None,
    };
    match only {
        Some(only) => Redirect::to(&only.href).into_response(),
        None => show(&app, &Page::Search, &asked, by),
    }
}

pub(super) async fn live_search(
    State(app): State<Arc<App>>,
    Query(asked): Query<Asked>,
) -> Response {
    follow(&app, Page::Search, asked)
}

pub(super) async fn requests(
    State(app): State<Arc<App>>,
    nouns: Name,
    by: By,
    Query(asked): Query<Asked>,
) -> Response {
    let page = named(nouns).and_then(|nouns| requests_of(&app, nouns));
    page.map_or_else(Fault::into_response, |page| show(&app, &page, &asked, by))
}

pub(super) async fn live_requests(
    State(app): State<Arc<App>>,
    nouns: Name,
    Query(asked): Query<Asked>,
) -> Response {
    let page = named(nouns).and_then(|nouns| requests_of(&app, nouns));
    page.map_or_else(Fault::into_response, |page| follow(&app, page, asked))
}

pub(super) async fn request(
    State(app): State<Arc<App>>,
    parts: Names,
    by: By,
    Query(asked): Query<Asked>,
) -> Response {
    let page = named_in(parts).and_then(|(nouns, id)| request_of(&app, nouns, id));
    page.map_or_else(Fault::into_response, |page| show(&app, &page, &asked, by))
}

pub(super) async fn live_request(
    State(app): State<Arc<App>>,
    parts: Names,
    Query(asked): Query<Asked>,
) -> Response {
    let page = named_in(parts).and_then(|(nouns, id)| request_of(&app, nouns, id));
    page.map_or_else(Fault::into_response, |page| follow(&app, page, asked))
}

/// Any other single word is nothing that there is.
fn requests_of(app: &App, nouns: String) -> Result<Page, Fault> {
    match app.house.door_of(&nouns) {
        Some(_) => Ok(Page::Requests(nouns)),
        None => Err(Fault::not_found(format!("there is nothing at /{nouns}"))),
    }
}

fn request_of(app: &App, nouns: String, id: String) -> Result<Page, Fault> {
    match app.house.door_of(&nouns) {
        Some(_) => Ok(Page::Request { nouns, id }),
        None => Err(Fault::not_found(format!("there is nothing at /{nouns}/{id}"))),
    }
}

pub(super) async fn vm(
    State(app): State<Arc<App>>,
    id: Name,
    by: By,
    Query(asked): Query<Asked>,
) -> Response {
    named(id).map_or_else(Fault::into_response, |id| show(&app, &Page::Vm(id), &asked, by))
}

pub(super) async fn live_vm(
    State(app): State<Arc<App>>,
    id: Name,
    Query(asked): Query<Asked>,
) -> Response {
    named(id).map_or_else(Fault::into_response, |id| follow(&app, Page::Vm(id), asked))
}

pub(super) async fn style() -> Response {
    asset("text/css; charset=utf-8", include_str!("../../assets/roost.css"))
}

pub(super) async fn script() -> Response {
    asset("text/javascript; charset=utf-8", include_str!("../../assets/roost.js"))
}

/// They change with the program only, and are asked for with every page.
fn asset(content_type: &'static str, body: &str) -> Response {
    let mut answer = text(StatusCode::OK, content_type, body.to_owned());
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("max-age=60"));
    answer
}

/// For a person who may not look, with a way to show the token.
/// For whoever looks while the service starts.
pub(super) fn not_yet(why: &str) -> Response {
    let page = stranger("Not yet", why, false);
    page.map_or_else(
        |error| broken(&error),
        |html| text(StatusCode::SERVICE_UNAVAILABLE, HTML, html),
    )
}

pub(super) fn turned_away(denied: Denied) -> Response {
    let takes_token = denied.status() == StatusCode::UNAUTHORIZED;
    let page = stranger("Not for everybody", denied.words(), takes_token);
    page.map_or_else(|error| broken(&error), |html| text(denied.status(), HTML, html))
}

fn show(app: &App, page: &Page, asked: &Asked, by: By) -> Response {
    // Whoever comes with a certificate may act without signing in, if anything can be told to act.
    let may_act = match by.map(|Extension(by)| by.shown) {
        Some(Shown::Certificate { name }) if app.house.can_be_steered() => Some(name),
        _ => None,
    };
    let found = page.render(&app.house, asked);
    let html = found.and_then(|found| {
        found.as_ref().map(|found| document(found, may_act.as_deref())).transpose()
    });
    match html {
        Ok(Some(html)) => text(StatusCode::OK, HTML, html),
        Ok(None) => missing(app, page),
        Err(error) => broken(&error),
    }
}

fn missing(app: &App, page: &Page) -> Response {
    let words = match page {
        Page::Request { nouns, id } => {
            let door = app.house.door_of(nouns).map(|door| door.words());
            let noun = door.map_or("request", |door| door.noun);
            let meant = app.house.request_meant(door.map(|door| door.name), id);
            not_meant(meant, noun, id)
                .unwrap_or_else(|| format!("{noun} {} is not known", crate::page::plain(id)))
        }
        Page::Vm(id) => not_meant(app.house.vm_meant(id), "VM", id).unwrap_or_else(|| {
            format!("VM {} is not one of ours, or is gone", crate::page::plain(id))
        }),
        _ => "there is no such page".to_owned(),
    };
    let html = stranger("Not here", &words, false);
    html.map_or_else(|error| broken(&error), |html| text(StatusCode::NOT_FOUND, HTML, html))
}

/// Those that begin so, or the one that looks most like it. `None` if there is neither.
fn not_meant<T>(meant: Meant<T>, what: &str, id: &str) -> Option<String> {
    if let Meant::Nothing { nearest: None } = meant {
        return None;
    }
    let why = meant.or_words(what, id).err()?;
    let (NotMeant::Several(words) | NotMeant::Unknown(words)) = why;
    Some(crate::page::plain(&words).into_owned())
}

fn broken(error: &askama::Error) -> Response {
    tracing::error!(%error, "rendering a page");
    Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "the page could not be made").into_response()
}

fn follow(app: &Arc<App>, page: Page, asked: Asked) -> Response {
    let Ok(permit) = Arc::clone(&app.listeners).try_acquire_owned() else {
        let words = "there are too many listeners already";
        return Fault::new(StatusCode::SERVICE_UNAVAILABLE, words).into_response();
    };
    // Before anything is read, so that nothing falls in between.
    let news = app.house.feed.subscribe();
    let house = Arc::clone(&app.house);
    let sent = match page.render(&house, &asked) {
        Ok(Some(rendered)) => rendered,
        Ok(None) => return missing(app, &page),
        Err(error) => return broken(&error),
    };
    let follower = Follower {
        house,
        page,
        asked,
        news,
        closing: app.closing.clone(),
        sent,
        is_first: true,
        looked: Instant::now(),
        _permit: permit,
    };
    let events = stream::unfold(follower, async |mut follower| {
        let event = follower.next().await?;
        Some((Ok::<_, Infallible>(event), follower))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}

/// Somebody who has a page open.
struct Follower {
    house: Arc<House>,
    page: Page,
    asked: Asked,
    news: Subscription,
    closing: watch::Receiver<bool>,
    sent: Rendered,
    is_first: bool,
    looked: Instant,
    _permit: OwnedSemaphorePermit,
}

impl Follower {
    /// `None` when the service ends, or what the page shows is gone.
    async fn next(&mut self) -> Option<Event> {
        if std::mem::take(&mut self.is_first) {
            // The page was made a moment ago, and something may have changed since: all that can differ is sent once.
            let nothing = Rendered { blocks: Vec::new(), ..bare(&self.sent) };
            return Some(event(&Patch::between(&nothing, &self.sent)));
        }
        let mut touched = false;
        loop {
            let wait = if touched { BETWEEN } else { LOOK_ANYWAY };
            tokio::select! {
                biased;
                _ = self.closing.changed() => return None,
                () = sleep_until(self.looked + wait) => {}
                changed = self.news.changed.changed(), if !touched => {
                    changed.ok()?;
                    touched = true;
                    continue;
                }
            }
            self.looked = Instant::now();
            touched = false;
            let rendered = self.page.render(&self.house, &self.asked).ok()??;
            let patch = Patch::between(&self.sent, &rendered);
            let has_news =
                !patch.is_empty() || rendered.now.as_second() != self.sent.now.as_second();
            let event = has_news.then(|| event(&patch));
            self.sent = rendered;
            if event.is_some() {
                return event;
            }
        }
    }
}

fn bare(of: &Rendered) -> Rendered {
    Rendered {
        title: String::new(),
        place: of.place.clone(),
        places: Vec::new(),
        service: String::new(),
        version: String::new(),
        now: of.now,
        waiting: of.waiting,
        demo: None,
        blocks: Vec::new(),
    }
}

fn event(patch: &Patch<'_>) -> Event {
    Event::default().json_data(patch).unwrap_or_else(|error| {
        // A patch is text; it would be a fault of ours.
        tracing::error!(%error, "writing a change of a page");
        Event::default().comment("a change could not be written")
    })
}
