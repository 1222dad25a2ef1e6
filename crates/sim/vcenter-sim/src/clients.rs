//! Who asked for what: to hold any two clients beside each other on the same server.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use crate::counters::CounterReport;
use crate::dispatch::Caller;

/// Whoever sends another name with each call shall not fill the memory.
const MOST_CLIENTS: usize = 64;
const LONGEST_NAME: usize = 60;
const NO_AGENT: &str = "(no user agent)";
const OTHERS: &str = "(others)";

/// What one client has asked for by one method. Bodies only, before compression.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    pub calls: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Clients(BTreeMap<String, BTreeMap<String, Tally>>);

impl Clients {
    pub(crate) fn tally(&mut self, caller: &Caller, method: &str) -> &mut Tally {
        let agent = caller.user_agent.as_deref().unwrap_or(NO_AGENT);
        let printable = agent.chars().filter(|letter| !letter.is_control());
        let mut name: String = printable.take(LONGEST_NAME).collect();
        if !self.0.contains_key(&name) && self.0.len() >= MOST_CLIENTS {
            OTHERS.clone_into(&mut name);
        }
        self.0.entry(name).or_default().entry(method.to_owned()).or_default()
    }

    pub(crate) fn into_report(self) -> BTreeMap<String, BTreeMap<String, Tally>> {
        self.0
    }
}

impl CounterReport {
    /// Calls and bytes by client and method, for people. Empty if nobody asked for anything.
    pub fn table(&self) -> String {
        let mut table = String::new();
        for (client, methods) in &self.clients {
            let _ = writeln!(table, "{client}");
            let _ = writeln!(
                table,
                "  {:<36} {:>9} {:>13} {:>13}",
                "method", "calls", "bytes in", "bytes out"
            );
            let mut all = Tally::default();
            for (method, tally) in methods {
                all.calls += tally.calls;
                all.bytes_in += tally.bytes_in;
                all.bytes_out += tally.bytes_out;
                line(&mut table, method, *tally);
            }
            line(&mut table, "all", all);
        }
        table
    }
}

fn line(table: &mut String, name: &str, tally: Tally) {
    let Tally { calls, bytes_in, bytes_out } = tally;
    let _ = writeln!(table, "  {name:<36} {calls:>9} {bytes_in:>13} {bytes_out:>13}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(agent: &str) -> Caller {
        Caller { user_agent: Some(agent.to_owned()), ..Caller::default() }
    }

    #[test]
    fn calls_are_told_apart_by_client_and_method() {
        let mut clients = Clients::default();
        for (agent, method) in [("govc/1", "Login"), ("roost/1", "Login"), ("govc/1", "Login")] {
            let tally = clients.tally(&caller(agent), method);
            tally.calls += 1;
            tally.bytes_out += 10;
        }
        let report = CounterReport { clients: clients.into_report(), ..CounterReport::default() };
        assert_eq!(report.clients["govc/1"]["Login"].calls, 2);
        let table = report.table();
        assert!(table.contains("roost/1\n") && table.contains("Login"), "{table}");
        assert_eq!(table.matches("\n  all ").count(), 2, "{table}");
    }

    #[test]
    fn a_client_of_a_thousand_names_takes_no_more_room_than_64() {
        let mut clients = Clients::default();
        for number in 0..1_000 {
            clients.tally(&caller(&format!("agent {number}")), "Login").calls += 1;
        }
        assert_eq!(clients.0.len(), MOST_CLIENTS + 1);
        assert_eq!(clients.0[OTHERS]["Login"].calls, 1_000 - 64);
    }
}
