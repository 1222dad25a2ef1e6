use jiff::Timestamp;
use roost_vim_wire::MoRef;
use roost_vim_wire::methods::{
    CreateCollectorForEvents, QueryEvents, ReadNextEvents, RewindCollector,
};
use roost_vim_wire::types::{
    Event, EventFilterSpec, EventFilterSpecByEntity, EventFilterSpecByTime,
    EventFilterSpecRecursionOption,
};

use super::error::EventError;
use crate::cleanup::Destroy;
use crate::{CallError, Faulted, Observer, Remedy};

/// Whose events besides the entity's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recursion {
    /// Only the entity's own.
    #[default]
    Own,
    Children,
    /// Everything below.
    All,
}

/// Which events.
#[derive(Debug, Clone, PartialEq)]
pub struct EventQuery {
    pub entity: MoRef,
    pub recursion: Recursion,
    /// Classes, base classes or ids of extended events; empty for all.
    pub types: Vec<String>,
    /// By the server's clock, both included.
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    /// Leaves out the sentence that the server makes of each event, which is most of its bytes.
    pub without_message: bool,
}

/// As many events as a server gives at once.
const PAGE: i32 = 1000;

const TRIES: u32 = 3;

impl EventQuery {
    /// All events of one object.
    pub fn of(entity: MoRef) -> Self {
        Self {
            entity,
            recursion: Recursion::Own,
            types: Vec::new(),
            from: None,
            to: None,
            without_message: false,
        }
    }

    #[must_use]
    pub fn types(self, types: &[&str]) -> Self {
        Self { types: types.iter().map(|name| (*name).into()).collect(), ..self }
    }

    pub(super) fn filter(&self) -> EventFilterSpec {
        EventFilterSpec {
            entity: Some(EventFilterSpecByEntity {
                entity: self.entity.clone(),
                recursion: match self.recursion {
                    Recursion::Own => EventFilterSpecRecursionOption::This,
                    Recursion::Children => EventFilterSpecRecursionOption::Children,
                    Recursion::All => EventFilterSpecRecursionOption::All,
                },
            }),
            time: (self.from.is_some() || self.to.is_some())
                .then_some(EventFilterSpecByTime { begin_time: self.from, end_time: self.to }),
            disable_full_message: self.without_message.then_some(true),
            event_type_id: self.types.clone(),
            ..Default::default()
        }
    }
}

impl Observer {
    /// The events that a query selects, oldest first. One call, unless there are more than a server gives at once.
    pub async fn events(&self, query: &EventQuery) -> Result<Vec<Event>, EventError> {
        let read = self.read_events(query).await;
        let mut events =
            read.map_err(|source| EventError::Query { entity: query.entity.clone(), source })?;
        // No order is promised, and pages may overlap.
        events.sort_by_key(|event| event.key);
        events.dedup_by_key(|event| event.key);
        Ok(events)
    }

    async fn read_events(&self, query: &EventQuery) -> Result<Vec<Event>, CallError> {
        let filter = EventFilterSpec { max_count: Some(PAGE), ..query.filter() };
        match self.read(&QueryEvents { this: self.event_manager()?, filter }).await {
            Ok(events) if events.len() < usize::try_from(PAGE).unwrap_or(usize::MAX) => Ok(events),
            // There may be more; a host without vCenter may not know the call.
            Ok(_) => self.collect_events(query).await,
            Err(error) if error.is_fault("NotImplemented") || error.is_fault("NotSupported") => {
                self.collect_events(query).await
            }
            Err(error) => Err(error),
        }
    }

    /// Scrolls from the oldest to the newest. What cannot be read is read from the start again: after a lost page or session
    /// nobody knows where the scrolling stood.
    async fn collect_events(&self, query: &EventQuery) -> Result<Vec<Event>, CallError> {
        let mut tries = 0;
        loop {
            let error = match self.scroll_events(query).await {
                Ok(events) => return Ok(events),
                Err(error) => error,
            };
            tries += 1;
            let is_passing =
                error.is_fault("ManagedObjectNotFound") || error.remedy() == Remedy::Retry;
            if tries == TRIES || !is_passing {
                return Err(error);
            }
        }
    }

    async fn scroll_events(&self, query: &EventQuery) -> Result<Vec<Event>, CallError> {
        let call = CreateCollectorForEvents { this: self.event_manager()?, filter: query.filter() };
        let collector = self.create(&call, Destroy::History).await?;
        // The API says that a collector begins there; not every server does.
        self.session(&RewindCollector { this: collector.moref().clone() }).await?;
        let mut events = Vec::new();
        loop {
            let call = ReadNextEvents { this: collector.moref().clone(), max_count: PAGE };
            let page = self.session(&call).await?;
            if page.is_empty() {
                return Ok(events);
            }
            events.extend(page);
        }
    }

    pub(super) fn event_manager(&self) -> Result<MoRef, CallError> {
        self.content()
            .event_manager
            .clone()
            .ok_or(CallError::NoManager { manager: "event manager" })
    }
}

#[cfg(test)]
mod tests {
    use roost_vim_wire::{MoType, encode_request};

    use super::*;
    use crate::device::compact;

    #[test]
    fn a_query_is_written_as_it_was_recorded() {
        let query = EventQuery {
            from: "2026-11-15T18:37:17Z".parse().ok(),
            to: "2026-11-15T19:37:17Z".parse().ok(),
            ..EventQuery::of(MoRef::vm("vm-62")).types(&[
                "VmStartingEvent",
                "VmPoweredOffEvent",
                "VmRenamedEvent",
            ])
        };
        let filter = EventFilterSpec { max_count: Some(100), ..query.filter() };
        let call = QueryEvents { this: MoRef::new(MoType::EventManager, "EventManager"), filter };
        let xml = String::from_utf8(encode_request(&call, None)).unwrap();
        let sample = compact(
            r#"<QueryEvents xmlns="urn:vim25"><_this type="EventManager">EventManager</_this><filter><entity><entity type="VirtualMachine">vm-62</entity><recursion>self</recursion></entity>
              <time><beginTime>2026-11-15T18:37:17Z</beginTime><endTime>2026-11-15T19:37:17Z</endTime></time><eventTypeId>VmStartingEvent</eventTypeId>
              <eventTypeId>VmPoweredOffEvent</eventTypeId><eventTypeId>VmRenamedEvent</eventTypeId><maxCount>100</maxCount></filter></QueryEvents>"#,
        );
        assert!(xml.contains(&sample), "{xml}");
    }
}
