use std::collections::BTreeMap;
use std::mem::take;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use super::{AddressGrant, Amounts};
use crate::{DoorName, Gate, RequestId, VmId};

/// A promise of everything that one machine takes. Dropping it gives everything back.
///
/// What dropping means depends on how far it got. Before [`submitted`](Self::submitted) nothing outside knows of it and all is
/// free at once. After that a VM may appear although nobody waits for it any more (the answer was lost, the task was
/// cancelled), so all of it stays taken until the VM is seen or the ledger's safety period is over. Whoever knows better
/// says so: [`commit`](Self::commit) when there is a VM, [`release`](Self::release) when there is none.
#[derive(Debug)]
#[must_use = "dropping a reservation gives it back"]
pub struct Reservation {
    id: ReservationId,
    request: RequestId,
    amounts: Amounts,
    spare: Option<VmId>,
    address: Option<AddressGrant>,
    gates: Vec<Gate>,
    outbox: Arc<Outbox>,
    ended: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ReservationId {
    pub(super) door: DoorName,
    pub(super) number: u64,
}

/// What holders tell the ledger. They do not share it: the ledger has one owner, who reads this before every decision.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    notes: Mutex<Vec<(ReservationId, Note)>>,
    /// In the order of their names, so that a run can be repeated.
    news: Mutex<BTreeMap<DoorName, Arc<Notify>>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Note {
    Submitted { name: Option<Arc<str>> },
    Bound(VmId),
    Committed,
    Released,
    Dropped,
}

impl Outbox {
    fn put(&self, id: ReservationId, note: Note) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push((id, note));
        for news in self.news.lock().unwrap_or_else(PoisonError::into_inner).values() {
            news.notify_one();
        }
    }

    pub(super) fn drain(&self) -> Vec<(ReservationId, Note)> {
        take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn news(&self, door: DoorName) -> Arc<Notify> {
        let mut news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(news.entry(door).or_default())
    }
}

impl Reservation {
    pub(super) fn new(
        id: ReservationId,
        request: RequestId,
        amounts: Amounts,
        spare: Option<VmId>,
        address: Option<AddressGrant>,
        gates: Vec<Gate>,
        outbox: Arc<Outbox>,
    ) -> Self {
        Self { id, request, amounts, spare, address, gates, outbox, ended: false }
    }

    pub fn request(&self) -> &RequestId {
        &self.request
    }

    pub fn amounts(&self) -> &Amounts {
        &self.amounts
    }

    /// The spare that this request alone may claim.
    pub fn spare(&self) -> Option<&VmId> {
        self.spare.as_ref()
    }

    /// The address that the new machine alone may use.
    pub fn address(&self) -> Option<&AddressGrant> {
        self.address.as_ref()
    }

    /// What it was weighed against, for the decision's record.
    pub fn gates(&self) -> &[Gate] {
        &self.gates
    }

    /// Call this before anything is sent that may lead to a VM.
    pub fn submitted(&mut self) {
        self.outbox.put(self.id, Note::Submitted { name: None });
    }

    /// The same when the name of the VM is only known now.
    pub fn submitted_as(&mut self, name: &str) {
        self.outbox.put(self.id, Note::Submitted { name: Some(name.into()) });
    }

    /// This is the VM that it became.
    pub fn bind(&mut self, vm: &VmId) {
        self.outbox.put(self.id, Note::Bound(vm.clone()));
    }

    /// From here on the VM stands for itself. It stays counted until the VM is seen to take what was promised.
    pub fn commit(mut self) {
        self.end(Note::Committed);
    }

    /// There is no VM and none will come. All is free at once.
    pub fn release(mut self) {
        self.end(Note::Released);
    }

    fn end(&mut self, note: Note) {
        if !std::mem::replace(&mut self.ended, true) {
            self.outbox.put(self.id, note);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.end(Note::Dropped);
    }
}
