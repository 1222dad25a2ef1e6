//! The web page: what the views say, as HTML.
//!
//! A page is a list of blocks. Whoever opens it gets all of them; afterwards a stream tells which of them read differently now, and of a table only
//! the rows that do. Both are rendered by the same code, so that what is patched in is what a reload would show. Times are written as times; the
//! page itself turns them into "12 s ago", so that the passing of time changes nothing here.

mod address;
mod band;
mod block;
#[cfg(test)]
mod contrast;
mod decisions;
mod deletions;
mod edits;
mod export;
mod foreign;
mod link;
mod needs;
mod outlook;
mod overview;
mod paging;
mod patch;
mod request;
mod requests;
mod search;
mod shell;
mod shown;
mod sorting;
#[cfg(test)]
mod tests;
mod vm;
mod vms;
mod waterfall;

use std::borrow::Cow;

pub(crate) use self::block::Block;
pub(crate) use self::export::{decisions_csv, requests_csv, requests_wanted, vms_csv, vms_wanted};
pub(crate) use self::foreign::plain;
pub(crate) use self::patch::Patch;
pub(crate) use self::search::{Hit, search};
pub(crate) use self::shell::{document, stranger};

use jiff::Timestamp;
use roost_door::{House, Meant};
use roost_views::words::title;
use serde::Deserialize;

/// Which page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Page {
    Overview,
    /// The requests of a door, by what it calls them.
    Requests(String),
    Request {
        nouns: String,
        id: String,
    },
    Vms,
    Vm(String),
    Decisions,
    Deletions,
    Link,
    Search,
}

/// What stands behind the `?`. Every page takes all of it and looks at what concerns it: an address that was typed is not a contract.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    pub(crate) page: String,
    /// Part of a name.
    pub(crate) q: String,
    pub(crate) state: String,
    pub(crate) kind: String,
    pub(crate) subject: String,
    pub(crate) verdict: String,
    pub(crate) bound_by: String,
    /// A column, and `:desc` for the other way round.
    pub(crate) sort: String,
    /// The part of their life that VMs are in.
    pub(crate) phase: String,
    /// With any word: what only waits is shown as well.
    pub(crate) all: String,
}

/// A page as it reads at one moment.
#[derive(Debug)]
pub(crate) struct Rendered {
    pub(crate) title: String,
    /// Where in the navigation it is.
    pub(crate) place: String,
    pub(crate) places: Vec<Place>,
    pub(crate) service: String,
    pub(crate) version: String,
    pub(crate) now: Timestamp,
    /// Requests that wait, for the title of the window.
    pub(crate) waiting: u64,
    /// A demo: how its time runs, and what opens actions in it.
    pub(crate) demo: Option<(String, String)>,
    pub(crate) blocks: Vec<Block>,
}

/// An entry of the navigation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) href: String,
    pub(crate) words: String,
}

impl Place {
    /// What all doors share, and one for each door.
    fn all(house: &House, server: &str) -> Vec<Self> {
        let place = |href: &str, words: &str| Self { href: href.into(), words: words.into() };
        let doors = house.doors.iter().map(|door| door.words());
        let doors = doors.map(|it| place(&format!("/{}", it.path()), &title(it.nouns)));
        let common = [
            place("/vms", "VMs"),
            place("/decisions", "Decisions"),
            place("/deletions", "Deletions"),
            place("/link", &format!("{server} link")),
        ];
        [place("/", "Overview")].into_iter().chain(doors).chain(common).collect()
    }
}

impl Page {
    fn place(&self) -> String {
        match self {
            Self::Overview => "/".to_owned(),
            Self::Requests(nouns) | Self::Request { nouns, .. } => format!("/{nouns}"),
            Self::Vms | Self::Vm(_) => "/vms".to_owned(),
            Self::Decisions => "/decisions".to_owned(),
            Self::Deletions => "/deletions".to_owned(),
            Self::Link => "/link".to_owned(),
            Self::Search => "/search".to_owned(),
        }
    }

    /// `None` if there is no such request or VM.
    pub(crate) fn render(
        &self,
        house: &House,
        asked: &Asked,
    ) -> Result<Option<Rendered>, askama::Error> {
        let overview = house.overview();
        let now = overview.now;
        let mut blocks = vec![overview::banners(house, &overview, *self == Self::Overview)?];
        let title: Cow<'static, str> = match self {
            Self::Overview => {
                blocks.extend(overview::blocks(house, &overview, asked)?);
                "Overview".into()
            }
            Self::Requests(nouns) => {
                let Some(door) = house.door_of(nouns) else { return Ok(None) };
                blocks.extend(requests::blocks(house, door.as_ref(), asked)?);
                title(nouns).into()
            }
            Self::Request { nouns, id } => {
                let Some(door) = house.door_of(nouns) else { return Ok(None) };
                let words = door.words();
                let Meant::One(meant) = house.request_meant(Some(words.name), id) else {
                    return Ok(None);
                };
                let id = &meant.id;
                let Some(detail) = house.request(&meant) else { return Ok(None) };
                blocks.extend(request::blocks(house, &words, &detail, now)?);
                format!("{} {}", title(words.noun), plain(id)).into()
            }
            Self::Vms => {
                blocks.extend(vms::blocks(house, asked)?);
                "VMs".into()
            }
            Self::Vm(id) => {
                let id = match house.vm_meant(id) {
                    Meant::One(meant) => &meant.clone(),
                    Meant::Several(_) | Meant::Nothing { .. } => id,
                };
                let (name, found) = match house.vm(id) {
                    Some(detail) => (detail.vm.name.clone(), vm::blocks(house, &detail, now)?),
                    None => match vm::gone(house, id, now)? {
                        Some(gone) => gone,
                        None => return Ok(None),
                    },
                };
                blocks.extend(found);
                format!("VM {}", plain(&name)).into()
            }
            Self::Decisions => {
                blocks.extend(decisions::blocks(house, asked)?);
                "Decisions".into()
            }
            Self::Deletions => {
                blocks.extend(deletions::blocks(house, asked)?);
                "Deletions".into()
            }
            Self::Link => {
                blocks.extend(link::blocks(house)?);
                format!("{} link", overview.link.server).into()
            }
            Self::Search => {
                blocks.push(search::block(house, &asked.q)?);
                "Search".into()
            }
        };
        let demo = house.demonstration.as_ref();
        Ok(Some(Rendered {
            title: title.into_owned(),
            place: self.place(),
            places: Place::all(house, &overview.link.server),
            service: overview.service,
            version: overview.version,
            now,
            waiting: overview.queue.waiting,
            demo: demo.map(|demo| (demo.pace(), demo.token())),
            blocks,
        }))
    }
}
