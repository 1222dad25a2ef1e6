//! One answer of `WaitForUpdatesEx`.

use std::time::Duration;

use roost_vim_wire::methods::WaitForUpdatesEx;
use roost_vim_wire::types::{ObjectUpdate, WaitOptions};
use roost_vim_wire::{Item, LocalizedMethodFault, MoRef};

use crate::client_core::Core;
use crate::exchange::Patience;
use crate::retrieve::not_authenticated;
use crate::session::Lease;
use crate::{CallClass, CallError};

#[derive(Debug, Default)]
pub(super) struct Page {
    /// `None` when nothing changed.
    pub(super) version: Option<String>,
    pub(super) truncated: bool,
    /// Each with its filter.
    pub(super) updates: Vec<(MoRef, ObjectUpdate)>,
}

impl Core {
    /// Waits for changes. Nothing of a page is handed out before it is known to come from a live session.
    pub(super) async fn wait_for_updates(
        &self,
        lease: &Lease,
        collector: MoRef,
        version: Option<String>,
        max_wait: Duration,
    ) -> Result<Page, CallError> {
        let options = WaitOptions {
            max_wait_seconds: Some(max_wait.as_secs().try_into().unwrap_or(i32::MAX)),
            max_object_updates: Some(self.settings.stream.max_object_updates.max(1)),
        };
        let call = WaitForUpdatesEx { this: collector, version, options: Some(options) };
        let silence = self.deadline(CallClass::Read);
        let (mut page, mut filter, mut gone) = (Page::default(), MoRef::default(), None);
        self.exchange_page(
            &call,
            &lease.cookie,
            Patience { first: max_wait + silence, silence },
            |item| match item {
                Item::Filter(found) => filter = found,
                Item::Update(update) => {
                    note(&mut gone, not_authenticated(&update.missing_set));
                    page.updates.push((filter.clone(), update));
                }
                Item::Missing(missing) => {
                    let fault = missing.fault;
                    tracing::debug!(obj = %missing.obj, "cannot be read: {}", fault.fault.class);
                    note(&mut gone, Some(fault).filter(|fault| fault.fault.is("NotAuthenticated")));
                }
                Item::Version(version) => page.version = Some(version),
                Item::Truncated(truncated) => page.truncated = truncated,
                Item::Object(_) | Item::Token(_) | Item::Fault(_) => {}
            },
        )
        .await?;
        match gone {
            Some(fault) => Err(CallError::of_fault("WaitForUpdatesEx", fault)),
            None => Ok(page),
        }
    }
}

fn note(gone: &mut Option<LocalizedMethodFault>, found: Option<LocalizedMethodFault>) {
    if gone.is_none() {
        *gone = found;
    }
}
