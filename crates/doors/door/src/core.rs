use std::fmt::Debug;

use roost_views::{
    AddressView, AddressesView, DecisionQuery, DecisionView, DeletionsDetail, DeletionsView,
    Gauges, LinkDetail, LinkView, StepView,
};

/// A core in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CoreView {
    pub link: LinkView,
    /// Of servers of another kind, which other doors have.
    pub other_links: Vec<LinkView>,
    /// Limits that all doors share.
    pub gauges: Gauges,
    /// `None` if addresses are not ours to give.
    pub addresses: Option<AddressesView>,
    pub deletions: DeletionsView,
}

/// What the doors of one vCenter share, as people see it. Cheap, as [`FrontDoor`](crate::FrontDoor): it reads memory and changes nothing.
pub trait Core: Debug + Send + Sync + 'static {
    /// Oldest first.
    fn decisions(&self, query: &DecisionQuery) -> Vec<DecisionView>;

    /// In numbers, at one moment.
    fn overview(&self) -> CoreView;

    fn link_detail(&self) -> LinkDetail {
        LinkDetail { link: self.overview().link, ..LinkDetail::default() }
    }

    /// Every address of the configured ranges, in their order.
    fn addresses(&self) -> Vec<AddressView> {
        Vec::new()
    }

    fn deletions(&self) -> DeletionsDetail {
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
