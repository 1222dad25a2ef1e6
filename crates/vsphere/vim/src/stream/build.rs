//! Making the server side of the stream: collector, views, filters. Everything is made in one session; if that is gone, so is
//! all of it.

use std::sync::Arc;

use roost_vim_wire::MoRef;
use roost_vim_wire::methods::{
    CreateContainerView, CreateFilter, CreateListView, CreatePropertyCollector, ModifyListView,
};
use roost_vim_wire::types::{PropertyFilterSpec, PropertySpec};

use super::{WatchSpec, Watched};
use crate::CallError;
use crate::cleanup::{Destroy, SessionObject};
use crate::client_core::Core;
use crate::session::Lease;

/// A view with a filter on it, and when it came to be.
#[derive(Debug)]
pub(super) struct Built {
    view: SessionObject,
    filter: SessionObject,
    /// The calculation that was under way; only a later one is sure to cover the filter.
    pub(super) during: u64,
    /// Objects of a list that do not exist.
    pub(super) missing: Vec<MoRef>,
}

impl Built {
    pub(super) fn filter(&self) -> &MoRef {
        self.filter.moref()
    }

    pub(super) fn view(&self) -> &MoRef {
        self.view.moref()
    }

    /// The collector takes its filters with it; only the view is left to destroy.
    pub(super) fn collector_gone(self) {
        self.filter.forget();
    }
}

impl Core {
    /// A collector in the current session, or in a new one if that turns out to be dead.
    pub(super) async fn build_collector(
        self: &Arc<Self>,
        lost: Option<Lease>,
    ) -> Result<(Lease, SessionObject), CallError> {
        let call = CreatePropertyCollector { this: self.content()?.property_collector.clone() };
        let lease = match &lost {
            Some(lost) => self.renew(lost).await?,
            None => self.lease().await?,
        };
        match self.create_in(&lease, call.clone(), Destroy::Collector).await {
            Err(error) if error.is_session_lost() => {
                let lease = self.renew(&lease).await?;
                let collector = self.create_in(&lease, call, Destroy::Collector).await?;
                Ok((lease, collector))
            }
            made => Ok((lease, made?)),
        }
    }

    pub(super) async fn build_watch(
        self: &Arc<Self>,
        lease: &Lease,
        collector: &MoRef,
        spec: WatchSpec,
    ) -> Result<Built, CallError> {
        let (view, missing) = match spec.objects {
            Watched::Container { container, kinds, recursive } => {
                let kind = kinds.iter().map(|kind| kind.as_str().to_owned()).collect();
                let call =
                    CreateContainerView { this: self.view_manager()?, container, kind, recursive };
                (self.create_in(lease, call, Destroy::View).await?, Vec::new())
            }
            Watched::Objects(objects) => self.build_list(lease, objects).await?,
        };
        let built = self.build_filter(lease, collector, view, spec.properties).await?;
        Ok(Built { missing, ..built })
    }

    /// A list view of these objects, and those of them that do not exist.
    pub(super) async fn build_list(
        self: &Arc<Self>,
        lease: &Lease,
        objects: Vec<MoRef>,
    ) -> Result<(SessionObject, Vec<MoRef>), CallError> {
        // Empty at first: a list that is made of objects fails as a whole if one of them is gone.
        let call = CreateListView { this: self.view_manager()?, obj: Vec::new() };
        let view = self.create_in(lease, call, Destroy::View).await?;
        let mut unresolved = Vec::new();
        if !objects.is_empty() {
            let fill =
                ModifyListView { this: view.moref().clone(), add: objects, remove: Vec::new() };
            unresolved = self.call_in(lease, &fill).await?;
        }
        Ok((view, unresolved))
    }

    pub(super) async fn build_filter(
        self: &Arc<Self>,
        lease: &Lease,
        collector: &MoRef,
        view: SessionObject,
        properties: Vec<PropertySpec>,
    ) -> Result<Built, CallError> {
        let spec = PropertyFilterSpec::of_view(view.moref(), properties);
        let call = CreateFilter { this: collector.clone(), spec, partial_updates: false };
        let filter = self.create_in(lease, call, Destroy::Filter).await?;
        Ok(Built { view, filter, during: 0, missing: Vec::new() })
    }

    fn view_manager(&self) -> Result<MoRef, CallError> {
        self.content()?.view_manager.clone().ok_or(CallError::NoManager { manager: "view manager" })
    }
}
