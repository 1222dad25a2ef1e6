//! Who asked for what: to hold any two hatcheries beside each other on the same API.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use http::HeaderMap;
use http::header::USER_AGENT;
use serde::Serialize;

use crate::api::CdsApi;

/// Whoever sends another name with each call shall not fill the memory.
const MOST_CLIENTS: usize = 64;
const LONGEST_NAME: usize = 60;
const NO_AGENT: &str = "(no user agent)";
const OTHERS: &str = "(others)";

/// What one client has asked for at one route. Bodies only, before compression; of a websocket only that it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    pub calls: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
}

/// By client, as its user agent names it, and route.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Clients(BTreeMap<String, BTreeMap<&'static str, Tally>>);

impl Clients {
    pub(crate) fn count(
        &mut self,
        headers: &HeaderMap,
        route: &'static str,
        bytes_in: usize,
        bytes_out: usize,
    ) {
        let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok());
        let printable = agent.unwrap_or(NO_AGENT).chars().filter(|letter| !letter.is_control());
        let mut name: String = printable.take(LONGEST_NAME).collect();
        if !self.0.contains_key(&name) && self.0.len() >= MOST_CLIENTS {
            OTHERS.clone_into(&mut name);
        }
        let tally = self.0.entry(name).or_default().entry(route).or_default();
        tally.calls += 1;
        tally.bytes_in += bytes_in as u64;
        tally.bytes_out += bytes_out as u64;
    }

    /// What one client asked for at one route.
    pub fn tally(&self, client: &str, route: &str) -> Tally {
        self.0.get(client).and_then(|routes| routes.get(route)).copied().unwrap_or_default()
    }

    /// For people. Empty if nobody asked for anything.
    pub fn table(&self) -> String {
        let mut table = String::new();
        for (client, routes) in &self.0 {
            let _ = writeln!(table, "{client}");
            let _ = writeln!(
                table,
                "  {:<48} {:>9} {:>13} {:>13}",
                "route", "calls", "bytes in", "bytes out"
            );
            let mut all = Tally::default();
            for (route, tally) in routes {
                all.calls += tally.calls;
                all.bytes_in += tally.bytes_in;
                all.bytes_out += tally.bytes_out;
                line(&mut table, route, *tally);
            }
            line(&mut table, "all", all);
        }
        table
    }
}

fn line(table: &mut String, name: &str, tally: Tally) {
    let Tally { calls, bytes_in, bytes_out } = tally;
    let _ = writeln!(table, "  {name:<48} {calls:>9} {bytes_in:>13} {bytes_out:>13}");
}

impl CdsApi {
    /// Calls and bytes by client and route, since it was started or they were reset.
    pub fn clients(&self) -> Clients {
        self.lock().clients.clone()
    }

    pub fn reset_clients(&self) {
        self.lock().clients = Clients::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(name: &str) -> HeaderMap {
        HeaderMap::from_iter([(USER_AGENT, name.parse().unwrap())])
    }

    #[test]
    fn calls_and_bytes_are_told_apart_by_client_and_route() {
        let mut clients = Clients::default();
        for (name, out) in [("roost/1", 10), ("CDS/0.57", 20), ("roost/1", 30)] {
            clients.count(&agent(name), "GET /worker", 1, out);
        }
        clients.count(&HeaderMap::new(), "GET /worker", 0, 0);
        let tally = clients.tally("roost/1", "GET /worker");
        assert_eq!((tally.calls, tally.bytes_in, tally.bytes_out), (2, 2, 40));
        assert_eq!(clients.tally(NO_AGENT, "GET /worker").calls, 1);
        let table = clients.table();
        assert_eq!(table.matches("\n  all ").count(), 3, "{table}");
    }

    #[test]
    fn a_client_of_a_thousand_names_takes_no_more_room_than_64() {
        let mut clients = Clients::default();
        for number in 0..1_000 {
            clients.count(&agent(&format!("agent {number}")), "GET /worker", 0, 0);
        }
        assert_eq!(clients.0.len(), MOST_CLIENTS + 1);
        assert_eq!(clients.tally(OTHERS, "GET /worker").calls, 1_000 - 64);
    }
}
