//! Versions, and what an answer between two of them holds.

use roost_vim_wire::types::PropertyChangeOp;
use roost_vim_wire::xml::Writer;
use roost_vim_wire::{Field, MoRef, encode_reply_with};

use super::filter::Filter;
use super::pending::{PathChange, Paths, Pending};
use super::retrieve::write_missing;
use super::{Collectors, Key};
use crate::call::{Failure, ReplyBody};
use crate::property::Reading;

/// How far the client is. Versions only ever grow, also when the client starts over.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The version of the last answer; 0 before the first.
    issued: u64,
    /// Whether that answer was cut off: its version can be used once.
    was_truncated: bool,
    /// The version that the client is known to have, if it may come back to it.
    reusable: Option<u64>,
    /// Whether the client has asked from nothing and has not been answered.
    is_initial: bool,
}

/// What the version in a call means.
enum Claim {
    Initial,
    /// The client has the last answer.
    LastAnswer,
    /// The client has the answer before the last, which was lost.
    LostAnswer,
}

impl Progress {
    fn claim(&self, version: &str) -> Result<Claim, Failure> {
        if version.is_empty() {
            return Ok(Claim::Initial);
        }
        let number = version.parse().ok().filter(|number| *number > 0);
        match number {
            Some(number) if number == self.issued => Ok(Claim::LastAnswer),
            Some(number) if Some(number) == self.reusable => Ok(Claim::LostAnswer),
            _ => Err(Failure::of(
                "InvalidCollectorVersion",
                "The data version is not known to the property collector.",
            )),
        }
    }
}

impl Collectors {
    /// Takes note of the version that a client comes with.
    pub(super) fn accept_version(&mut self, key: &Key, version: &str) -> Result<(), Failure> {
        let Some(collector) = self.by_key.get_mut(key) else { return Ok(()) };
        let claim = collector.progress.claim(version)?;
        let progress = &mut collector.progress;
        match claim {
            Claim::Initial => {
                progress.reusable = None;
                progress.is_initial = true;
            }
            Claim::LastAnswer => {
                progress.reusable = (!progress.was_truncated).then_some(progress.issued);
            }
            Claim::LostAnswer => {}
        }
        for id in &collector.filters {
            let Some(filter) = self.filters.get_mut(id) else { continue };
            match claim {
                Claim::Initial => filter.reset(),
                Claim::LastAnswer => filter.acknowledge(),
                Claim::LostAnswer => filter.restore(),
            }
        }
        Ok(())
    }

    /// The next answer, if there is something to tell. A client that starts from nothing is answered in any case, so that it
    /// has a version to go on from.
    pub(super) fn next_answer(
        &mut self,
        reading: &Reading<'_>,
        key: &Key,
        method: &str,
        max: usize,
        reads: &mut u64,
    ) -> Option<ReplyBody> {
        let collector = self.by_key.get_mut(key)?;
        let is_initial = collector.progress.is_initial && !collector.filters.is_empty();
        let filters = &mut self.filters;
        let mut has_news = |id: &u64| -> bool { filters.get_mut(id).is_some_and(Filter::has_news) };
        if !is_initial && !collector.filters.iter().any(&mut has_news) {
            return None;
        }
        let progress = &mut collector.progress;
        progress.issued += 1;
        progress.is_initial = false;
        let version = progress.issued;
        let (ids, mut left, mut truncated) = (collector.filters.clone(), max, false);
        let Ok(body) = encode_reply_with(method, 4096, |w| {
            w.open("returnval");
            w.open("version");
            w.plain(version);
            w.close("version");
            for id in ids {
                let Some(filter) = self.filters.get_mut(&id) else { continue };
                if left > 0 && filter.has_news() {
                    write_filter(reading, filter, &mut left, reads, w);
                }
                truncated |= filter.has_news();
            }
            if truncated {
                w.leaf("truncated", "true");
            }
            w.close("returnval");
            Ok::<_, std::convert::Infallible>(())
        });
        if let Some(collector) = self.by_key.get_mut(key) {
            collector.progress.was_truncated = truncated;
        }
        Some(ReplyBody(body))
    }
}

fn write_filter(
    reading: &Reading<'_>,
    filter: &mut Filter,
    left: &mut usize,
    reads: &mut u64,
    w: &mut Writer,
) {
    w.open("filterSet");
    filter.obj.write(w, "filter");
    while *left > 0
        && let Some((obj, news)) = filter.next()
    {
        write_update(reading, filter, &obj, &news, reads, w);
        *left -= 1;
    }
    for start in filter.take_missing() {
        w.open("missingSet");
        start.write(w, "obj");
        Failure::not_found(&start).localized().write(w, "fault");
        w.close("missingSet");
    }
    w.close("filterSet");
}

fn write_update(
    reading: &Reading<'_>,
    filter: &mut Filter,
    obj: &MoRef,
    news: &Pending,
    reads: &mut u64,
    w: &mut Writer,
) {
    let all = |filter: &mut Filter| -> Vec<PathChange> {
        let assign = |name: &std::sync::Arc<str>| PathChange {
            name: name.clone(),
            op: PropertyChangeOp::Assign,
        };
        filter.asked(obj).iter().map(assign).collect()
    };
    let (kind, changes) = match news {
        Pending::Enter => ("enter", all(filter)),
        Pending::Modify(Paths::All) => ("modify", all(filter)),
        Pending::Modify(Paths::These(changes)) => ("modify", changes.clone()),
        Pending::Leave => ("leave", Vec::new()),
    };
    w.open("objectSet");
    w.leaf("kind", kind);
    obj.write(w, "obj");
    let denied = reading.world.permissions.read_fault(obj, &reading.world.inventory);
    for change in changes.iter().filter(|_| denied.is_none()) {
        write_change(reading, obj, change, reads, w);
    }
    if let Some(fault) = denied {
        for change in &changes {
            write_missing(&change.name, &fault, w);
        }
    }
    w.close("objectSet");
}

/// The value is the one of now: a client is never told of a state that is already over.
fn write_change(
    reading: &Reading<'_>,
    obj: &MoRef,
    change: &PathChange,
    reads: &mut u64,
    w: &mut Writer,
) {
    let value = if change.op == PropertyChangeOp::Remove {
        None
    } else {
        *reads += 1;
        // A path that objects of this kind do not have was refused when the filter was made.
        reading.get(obj, &change.name).unwrap_or_default()
    };
    let op = match &value {
        None if change.op == PropertyChangeOp::Assign
            && has_lost_parent(reading, obj, &change.name) =>
        {
            &PropertyChangeOp::IndirectRemove
        }
        _ => &change.op,
    };
    w.open("changeSet");
    w.leaf("name", &change.name);
    w.leaf("op", op.as_str());
    value.write(w, "val");
    w.close("changeSet");
}

/// Whether a property is unset because the object that it is a part of is.
fn has_lost_parent(reading: &Reading<'_>, obj: &MoRef, path: &str) -> bool {
    // A key may hold dots, and what has a key is a member and not a part.
    let parent = path.rsplit_once('.').filter(|_| !path.contains('[')).map(|(parent, _)| parent);
    parent.is_some_and(|parent| matches!(reading.get(obj, parent), Ok(None)))
}
