//! Whoever answers need not be the service: what it says is cleaned, and what it sends is bounded.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use roost_supervise::Chain;
use roost_views::Overview;
use roost_views::foreign::is_unsafe;
use serde_json::json;

use super::{AskError, Client, LARGEST_FAULT, Target};
use crate::output::printable;

/// Escape sequences, a C1 control, text from right to left, a line break that begins a line of the liar's own.
const EVIL: &str =
    "no such job\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}live\nroost: all is well";

/// A service that answers every request with this status, and lets `body` write the rest.
fn answering(
    status: &'static str,
    body: impl Fn(&mut TcpStream) -> std::io::Result<()> + Send + 'static,
) -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            write!(stream, "HTTP/1.1 {status}\r\nconnection: close\r\n\r\n").unwrap();
            // It fails as soon as the client has had enough.
            let _ = body(&mut stream);
        }
    });
    let url = format!("http://{address}").parse().unwrap();
    Client::new(Target { url, token: None, token_trouble: None }).unwrap()
}

fn saying(status: &'static str, text: String) -> Client {
    answering(status, move |stream| stream.write_all(text.as_bytes()))
}

/// As the program prints it before it ends.
fn printed(error: &AskError) -> String {
    printable(&format!("roost: {}", Chain(error)))
}

#[tokio::test]
async fn the_words_of_a_refusal_do_not_command_the_terminal_and_are_few() {
    let words = format!("{EVIL}{}", "x".repeat(20_000));
    for status in ["404 Not Found", "401 Unauthorized", "503 Service Unavailable"] {
        let client = saying(status, json!({ "error": words }).to_string());
        let error = client.get(&["requests", "42"], &[]).await.unwrap_err();
        let text = Chain(&error).to_string();
        assert!(text.contains("no such job\u{fffd}[2J"), "{status}: {text:?}");
        assert!(!text.contains(is_unsafe), "{status}: {text:?}");
        assert!(text.len() < 1_000, "{status}: {} bytes", text.len());
    }
}

/// The reason why an answer cannot be read quotes the answer.
#[tokio::test]
async fn an_answer_of_another_form_is_not_quoted_as_it_is() {
    let client = saying("200 OK", json!({ "state": EVIL, "queue": { EVIL: EVIL } }).to_string());
    let error = client.read::<Overview>(&["overview"], &[]).await.unwrap_err();
    assert!(matches!(error, AskError::Unreadable { .. }), "{error:?}");
    let text = printed(&error);
    assert!(!text.contains(is_unsafe), "{text:?}");
    let client = saying("200 OK", format!("<html>{EVIL}</html>"));
    let error = client.get(&["vms"], &[]).await.unwrap_err();
    assert!(matches!(error, AskError::Foreign { .. }), "{error:?}");
    assert!(!printed(&error).contains(is_unsafe), "{error}");
}

#[tokio::test]
async fn an_answer_without_an_end_is_not_read_to_its_end() {
    let endless = |status| {
        answering(status, |stream| {
            let piece = vec![b' '; 64 << 10];
            loop {
                stream.write_all(&piece)?;
            }
        })
    };
    let client = endless("500 Internal Server Error");
    let error = client.get(&["vms"], &[]).await.unwrap_err();
    assert!(matches!(error, AskError::TooLarge { most: LARGEST_FAULT, .. }), "{error:?}");
    // What is asked for may be large; the same with a smaller bound.
    let client = endless("200 OK");
    let answer = client.send(client.http.get(client.place(&["vms"], &[]))).await.unwrap();
    let error = client.collect(answer, 1 << 20).await.unwrap_err();
    assert!(matches!(error, AskError::TooLarge { .. }), "{error:?}");
}
