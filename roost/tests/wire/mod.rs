//! The built binary as its users run it: simulators and the service as processes that talk over real sockets.
//!
//! Ports are picked by the system and read from what a process says. Everything ends with the test.
#![allow(dead_code, unused_imports, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod account;
mod cds;
mod control;
mod process;
mod service;
mod site;
mod vcenter;
mod vm;

use std::io::{Read as _, Write as _};
use std::time::Duration;

use tokio::time::{self, Instant};

pub(crate) use account::account;
pub(crate) use cds::CdsSim;
pub(crate) use control::Control;
pub(crate) use process::{Process, roost};
pub(crate) use service::Service;
pub(crate) use site::Site;
pub(crate) use vcenter::VcenterSim;
pub(crate) use vm::Vm;

const LOOK: Duration = Duration::from_millis(50);

/// One request of a client of that name, by hand. `head` is its method and path.
pub(crate) fn ask_as(client: &str, address: &str, head: &str, body: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let length = body.len();
    let request = format!(
        "{head} HTTP/1.1\r\nHost: {address}\r\nUser-Agent: {client}\r\nContent-Type: text/xml\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The rows of one client in the table that a simulator ends with: their names, calls, and bytes in and out.
pub(crate) fn rows_of(said: &str, client: &str) -> Vec<(String, Vec<u64>)> {
    let mut lines = said.lines().skip_while(|line| *line != client);
    assert_eq!(lines.next(), Some(client), "{said}");
    let rows = lines.skip(1).take_while(|line| line.starts_with("  "));
    rows.map(|row| {
        let mut words: Vec<&str> = row.split_whitespace().collect();
        let numbers = words.split_off(words.len() - 3);
        (words.join(" "), numbers.iter().map(|number| number.parse().unwrap()).collect())
    })
    .collect()
}

/// That many seconds from now. Generous: a slow machine shall not fail a test.
pub(crate) fn within(secs: u64) -> Instant {
    Instant::now() + Duration::from_secs(secs)
}

/// Waits until something holds, and says what did not by the deadline.
pub(crate) async fn until(what: &str, deadline: Instant, holds: impl AsyncFnMut() -> bool) {
    assert!(comes_true(deadline, holds).await, "not in time: {what}");
}

/// Looks again and again whether something holds; `false` if it does not by the deadline.
pub(crate) async fn comes_true(deadline: Instant, mut holds: impl AsyncFnMut() -> bool) -> bool {
    while !holds().await {
        if Instant::now() >= deadline {
            return false;
        }
        time::sleep(LOOK).await;
    }
    true
}
