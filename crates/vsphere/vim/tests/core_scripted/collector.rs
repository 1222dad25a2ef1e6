//! A property collector in a script: hands out the pages that a test puts in, and obeys cancellation.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use roost_vim::wire::methods::{
    CancelWaitForUpdates, CreateContainerView, CreateFilter, CreateListView,
    CreatePropertyCollector, DestroyPropertyCollector, DestroyPropertyFilter, DestroyView,
    ModifyListView, WaitForUpdatesEx,
};
use roost_vim::wire::types::{
    MissingProperty, ObjectUpdate, ObjectUpdateKind, PropertyChange, PropertyChangeOp,
    PropertyFilterUpdate, UpdateSet,
};
use roost_vim::wire::{Fault, LocalizedMethodFault, MoRef, MoType, Value};

use crate::script::{Answer, Incoming, reply};

/// What the next waits get.
#[derive(Default)]
pub(crate) struct Collector {
    pages: Mutex<VecDeque<Page>>,
    made: Mutex<u32>,
}

pub(crate) enum Page {
    /// Version, truncated, and the updates of the newest filter.
    Set(&'static str, bool, Vec<ObjectUpdate>),
    Answer(Answer),
}

impl Collector {
    pub(crate) fn new(pages: impl IntoIterator<Item = Page>) -> Arc<Self> {
        Arc::new(Self { pages: Mutex::new(pages.into_iter().collect()), made: Mutex::new(0) })
    }

    fn make(&self, kind: MoType, cookie: Option<&str>) -> MoRef {
        let mut made = self.made.lock().unwrap();
        *made += 1;
        MoRef::new(kind, format!("session[{}]{made}", cookie.unwrap_or_default()))
    }

    /// A wait without a page to give is held until it is cancelled or runs out, as a server does.
    pub(crate) fn answer(&self, incoming: &Incoming) -> Option<Answer> {
        let make = |kind| self.make(kind, incoming.cookie.as_deref());
        match incoming.method.as_str() {
            "CreatePropertyCollector" => {
                reply::<CreatePropertyCollector>(&make(MoType::PropertyCollector))
            }
            "CreateContainerView" => reply::<CreateContainerView>(&make(MoType::ContainerView)),
            "CreateListView" => reply::<CreateListView>(&make(MoType::ListView)),
            "ModifyListView" => reply::<ModifyListView>(&vec![]),
            "CreateFilter" => reply::<CreateFilter>(&MoRef::new(MoType::PropertyFilter, "filter")),
            "DestroyView" => reply::<DestroyView>(&()),
            "DestroyPropertyFilter" => reply::<DestroyPropertyFilter>(&()),
            "DestroyPropertyCollector" => reply::<DestroyPropertyCollector>(&()),
            "CancelWaitForUpdates" => reply::<CancelWaitForUpdates>(&()),
            "WaitForUpdatesEx" => {
                let wait = incoming.decode::<WaitForUpdatesEx>().options?.max_wait_seconds?;
                Some(match self.pages.lock().unwrap().pop_front() {
                    // So that a reader sees one page before the next comes.
                    Some(Page::Set(version, truncated, updates)) => Answer::After(
                        Duration::from_secs(1),
                        Box::new(set(version, truncated, updates)),
                    ),
                    Some(Page::Answer(answer)) => answer,
                    None => Answer::After(
                        Duration::from_secs(wait.try_into().unwrap()),
                        Box::new(reply::<WaitForUpdatesEx>(&None)?),
                    ),
                })
            }
            _ => None,
        }
    }
}

fn set(version: &str, truncated: bool, object_set: Vec<ObjectUpdate>) -> Answer {
    let filter = MoRef::new(MoType::PropertyFilter, "filter");
    let filter_set = vec![PropertyFilterUpdate { filter, object_set, missing_set: vec![] }];
    reply::<WaitForUpdatesEx>(&Some(UpdateSet {
        version: version.into(),
        filter_set,
        truncated: Some(truncated),
    }))
    .unwrap()
}

pub(crate) fn enter(id: &str) -> ObjectUpdate {
    let change = PropertyChange {
        name: "name".into(),
        op: PropertyChangeOp::Assign,
        val: Some(Value::string(id)),
    };
    ObjectUpdate {
        kind: ObjectUpdateKind::Enter,
        obj: MoRef::vm(id),
        change_set: vec![change],
        missing_set: vec![],
    }
}

pub(crate) fn leave(id: &str) -> ObjectUpdate {
    ObjectUpdate {
        kind: ObjectUpdateKind::Leave,
        obj: MoRef::vm(id),
        change_set: vec![],
        missing_set: vec![],
    }
}

/// What a collector of a dead session shows.
pub(crate) fn unauthenticated(id: &str) -> ObjectUpdate {
    let fault = LocalizedMethodFault::new(Fault::of("NotAuthenticated"), "");
    let missing = MissingProperty { path: "name".into(), fault };
    ObjectUpdate {
        kind: ObjectUpdateKind::Enter,
        obj: MoRef::vm(id),
        change_set: vec![],
        missing_set: vec![missing],
    }
}
