//! The web page: what the views say, as HTML.
//!
//! A page is a list of blocks. Whoever opens it gets all of them; afterwards a stream tells which of them read differently now, and of a table only
//! the rows that do. Both are rendered by the same code, so that what is patched in is what a reload would show. Times are written as times; the
//! page itself turns them into "12 s ago", so that the passing of time changes nothing here.

mod address;
mod block;
#[cfg(test)]
mod contrast;
mod decisions;
mod deletions;
mod edits;
mod foreign;
mod job;
mod jobs;
mod link;
mod overview;
mod paging;
mod patch;
mod shell;
mod shown;
#[cfg(test)]
mod tests;
mod vm;
mod vms;
mod waterfall;
mod words;

use std::borrow::Cow;

pub(crate) use self::block::Block;
pub(crate) use self::foreign::plain;
pub(crate) use self::patch::Patch;
pub(crate) use self::shell::{document, stranger};

use jiff::Timestamp;
use serde::Deserialize;

use crate::Source;

/// Which page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Page {
    Overview,
    Jobs,
    Job(String),
    Vms,
    Vm(String),
    Decisions,
    Deletions,
    Link,
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
}

/// A page as it reads at one moment.
#[derive(Debug)]
pub(crate) struct Rendered {
    pub(crate) title: String,
    pub(crate) place: Place,
    pub(crate) service: String,
    pub(crate) version: String,
    pub(crate) now: Timestamp,
    pub(crate) blocks: Vec<Block>,
}

/// Where in the navigation a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Overview,
    Jobs,
    Vms,
    Decisions,
    Deletions,
    Link,
}

impl Place {
    pub(crate) const ALL: [Self; 6] =
        [Self::Overview, Self::Jobs, Self::Vms, Self::Decisions, Self::Deletions, Self::Link];

    pub(crate) fn href(self) -> &'static str {
        match self {
            Self::Overview => "/",
            Self::Jobs => "/jobs",
            Self::Vms => "/vms",
            Self::Decisions => "/decisions",
            Self::Deletions => "/deletions",
            Self::Link => "/link",
        }
    }

    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Jobs => "Jobs",
            Self::Vms => "VMs",
            Self::Decisions => "Decisions",
            Self::Deletions => "Deletions",
            Self::Link => "vCenter link",
        }
    }
}

impl Page {
    fn place(&self) -> Place {
        match self {
            Self::Overview => Place::Overview,
            Self::Jobs | Self::Job(_) => Place::Jobs,
            Self::Vms | Self::Vm(_) => Place::Vms,
            Self::Decisions => Place::Decisions,
            Self::Deletions => Place::Deletions,
            Self::Link => Place::Link,
        }
    }

    /// `None` if there is no such job or VM.
    pub(crate) fn render(
        &self,
        source: &dyn Source,
        asked: &Asked,
    ) -> Result<Option<Rendered>, askama::Error> {
        let overview = source.overview();
        let now = overview.now;
        let mut blocks = vec![overview::banners(source, &overview)?];
        let title: Cow<'static, str> = match self {
            Self::Overview => {
                blocks.extend(overview::blocks(source, &overview)?);
                "Overview".into()
            }
            Self::Jobs => {
                blocks.extend(jobs::blocks(source, asked)?);
                "Jobs".into()
            }
            Self::Job(id) => {
                let Some(detail) = source.job(id) else { return Ok(None) };
                blocks.extend(job::blocks(source, &detail, now)?);
                format!("Job {}", plain(id)).into()
            }
            Self::Vms => {
                blocks.extend(vms::blocks(source, asked)?);
                "VMs".into()
            }
            Self::Vm(id) => {
                let (name, found) = match source.vm(id) {
                    Some(detail) => (detail.vm.name.clone(), vm::blocks(&detail, now)?),
                    None => match vm::gone(source, id, now)? {
                        Some(gone) => gone,
                        None => return Ok(None),
                    },
                };
                blocks.extend(found);
                format!("VM {}", plain(&name)).into()
            }
            Self::Decisions => {
                blocks.extend(decisions::blocks(source, asked)?);
                "Decisions".into()
            }
            Self::Deletions => {
                blocks.extend(deletions::blocks(source)?);
                "Deletions".into()
            }
            Self::Link => {
                blocks.extend(link::blocks(source)?);
                "vCenter link".into()
            }
        };
        Ok(Some(Rendered {
            title: title.into_owned(),
            place: self.place(),
            service: overview.service,
            version: overview.version,
            now,
            blocks,
        }))
    }
}
