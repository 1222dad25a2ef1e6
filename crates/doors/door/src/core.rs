use std::fmt::Debug;

use roost_views::{
    AddressView, AddressesView, DecisionQuery, DecisionView, DeletionsDetail, DeletionsView,
    Gauges, LinkDetail, LinkView, StepView,
};

/// What the doors of one vCenter share, as people see it. Cheap, as [`FrontDoor`](crate::FrontDoor): it reads memory and changes nothing.
pub trait Core: Debug + Send + Sync + 'static {
    /// Oldest first.
    fn decisions(&self, query: &DecisionQuery) -> Vec<DecisionView>;

    fn link(&self) -> LinkView;

    fn link_detail(&self) -> LinkDetail {
        LinkDetail { link: self.link(), ..LinkDetail::default() }
    }

    /// Limits that all doors share.
    fn gauges(&self) -> Gauges {
        Gauges::default()
    }

    /// `None` if addresses are not ours to give.
    fn addresses(&self) -> Option<AddressesView> {
        None
    }

    /// Every address of the configured ranges, in their order.
    fn address_map(&self) -> Vec<AddressView> {
        Vec::new()
    }

    fn deletions(&self) -> DeletionsView {
        DeletionsView::default()
    }

    fn deletions_detail(&self) -> DeletionsDetail {
        DeletionsDetail::default()
    }

    /// What a VM of this name went through, oldest first, also if it is gone.
    fn timeline(&self, _vm: &str) -> Vec<StepView> {
        Vec::new()
    }

    /// Prometheus text of its own.
    fn metrics(&self) -> String {
        String::new()
    }
}
