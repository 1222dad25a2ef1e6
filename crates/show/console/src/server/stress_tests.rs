//! Clients that do not read, and a service that starts. Over a real socket.

use std::sync::Arc;
use std::time::Duration;

use roost_clock::SystemClock;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

use super::{Console, Port, Starter};
use crate::Settings;
use crate::fake::Fake;

/// Long enough for a busy machine, and far shorter than what an idle connection is left alone for.
const SOON: Duration = Duration::from_secs(20);

async fn port() -> (Port, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let number = listener.local_addr().unwrap().port();
    let starter = Starter {
        service: "h1".to_owned(),
        service_type: "hatchery".to_owned(),
        hostname: "here".to_owned(),
        clock: Arc::new(SystemClock),
    };
    let port = Port::new(listener, None, starter);
    let serving = port.clone();
    tokio::spawn(async move { serving.serve(std::future::pending()).await });
    (port, number)
}

fn console() -> Console {
    Console { house: Arc::new(Fake::default().house()), settings: Settings::default() }
}

async fn ask(port: u16, path: &str) -> String {
    let asking = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        answer
    };
    timeout(SOON, asking).await.expect("an answer soon")
}

#[tokio::test]
async fn probes_are_answered_while_512_clients_do_not_read() {
    let (port, number) = port().await;
    port.show(console());
    let mut held = Vec::new();
    for _ in 0..512 {
        let mut stream = TcpStream::connect(("127.0.0.1", number)).await.unwrap();
        // Nobody will read what comes of it.
        let _ =
            stream.write_all(&b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(20)).await;
        held.push(stream);
    }
    for path in ["/livez", "/readyz", "/metrics"] {
        let answer = ask(number, path).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer:?}");
    }
    drop(held);
}

/// Before its first request as after one.
#[tokio::test(start_paused = true)]
async fn a_connection_without_a_request_is_closed_after_half_a_minute() {
    let (port, number) = port().await;
    port.show(console());
    for asks_first in [false, true] {
        let mut stream = TcpStream::connect(("127.0.0.1", number)).await.unwrap();
        if asks_first {
            stream.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        }
        let began = Instant::now();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer.contains("HTTP/1.1 200"), asks_first, "{answer}");
        let open = began.elapsed().as_secs();
        assert!((29..=35).contains(&open), "closed after {open} s of the service's own time");
    }
}

#[tokio::test]
async fn while_it_starts_it_lives_and_says_what_it_waits_for() {
    let (port, number) = port().await;
    port.waits_for("CDS to take the sign-in");
    assert!(ask(number, "/livez").await.starts_with("HTTP/1.1 200"));
    for (path, status) in [
        ("/readyz", "HTTP/1.1 503"),
        ("/mon/status", "HTTP/1.1 200"),
        ("/", "HTTP/1.1 503"),
        ("/api/v1/overview", "HTTP/1.1 503"),
    ] {
        let answer = ask(number, path).await;
        assert!(answer.starts_with(status), "{path}: {answer}");
        assert!(answer.contains("waits for CDS to take the sign-in"), "{path}: {answer}");
    }
    port.show(console());
    assert!(ask(number, "/readyz").await.starts_with("HTTP/1.1 200"));
    assert!(!ask(number, "/livez?verbose").await.contains("waits for"));
}
