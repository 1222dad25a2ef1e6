use roost_door::Action;
use roost_views::{RequestDetail, RequestId, RequestView, VmDetail, VmView};

use super::Picture;

/// Where a view has its data from.
pub trait Origin {
    /// What there is to see now, and what is opened if that is known by now. Does not wait for anybody.
    fn look(&mut self, opened: Option<&Opened>) -> Look;

    /// Whether orders are carried out; if not, what to do about that.
    fn may_act(&self) -> Result<(), String>;

    /// Begins to carry out what was confirmed. What came of it is said in a later look.
    fn order(&mut self, action: Action);
}

/// What is shown at one moment.
#[derive(Debug, Clone)]
pub struct Look {
    pub picture: Picture,
    pub requests: Vec<RequestView>,
    pub vms: Vec<VmView>,
    /// Of what is opened; `None` as long as it is not known.
    pub detail: Option<Detail>,
    /// What came of an order since the last look.
    pub said: Option<Said>,
}

/// What somebody wants to know all about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    Request(RequestId),
    Vm(String),
    /// By its number. It is among the decisions of the picture, so nobody has to be asked for it.
    Decision(u64),
    /// All that needs a person. It is in the picture.
    Needs,
}

#[derive(Debug, Clone)]
pub enum Detail {
    Request(Box<RequestDetail>),
    Vm(Box<VmDetail>),
    /// Nobody knows it, or it cannot be had; in words.
    Nothing(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub is_done: bool,
    pub words: String,
}
