//! One-time tickets for transfers that go around the cookie.

use std::collections::BTreeMap;

/// A ticket opens one request with this method to this path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub session: String,
    pub method: http::Method,
    pub path: String,
}

#[derive(Debug, Default)]
pub(super) struct Tickets(BTreeMap<String, Ticket>);

impl Tickets {
    pub(super) fn issue(&mut self, id: String, ticket: Ticket) {
        self.0.insert(id, ticket);
    }

    pub(super) fn drop_session(&mut self, session: &str) {
        self.0.retain(|_, ticket| ticket.session != session);
    }

    fn redeem(&mut self, id: &str, method: &http::Method, path: &str) -> Option<Ticket> {
        let ticket = self.0.remove(id)?;
        (ticket.method == *method && ticket.path == path).then_some(ticket)
    }
}

impl super::Sessions {
    /// Takes a ticket and says whose session it was made in; a ticket is gone once it was shown.
    pub(crate) fn redeem(&mut self, id: &str, method: &http::Method, path: &str) -> Option<String> {
        self.tickets.redeem(id, method, path).map(|ticket| ticket.session)
    }
}
