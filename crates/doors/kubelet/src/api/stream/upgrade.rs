//! What a client offers to speak, and what is chosen of it.

use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::api::answer::{Answer, Refusal};

const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");

/// The names of protocols that a request of this kind can be served by, those of SPDY and those of WebSockets.
pub(in crate::api) struct Offer {
    spdy: &'static [&'static str],
    socket: &'static [&'static str],
}

/// Exec and attach.
pub(in crate::api) const COMMAND: Offer = Offer {
    spdy: &[
        "v5.channel.k8s.io",
        "v4.channel.k8s.io",
        "v3.channel.k8s.io",
        "v2.channel.k8s.io",
        "channel.k8s.io",
    ],
    socket: &[
        "v5.channel.k8s.io",
        "v4.channel.k8s.io",
        "v4.base64.channel.k8s.io",
        "channel.k8s.io",
        "base64.channel.k8s.io",
        "",
    ],
};

pub(in crate::api) const FORWARD: Offer = Offer {
    spdy: &["portforward.k8s.io"],
    socket: &["SPDY/3.1+portforward.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io", ""],
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::api) enum Transport {
    Spdy,
    WebSocket,
}

/// What both sides will speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::api) struct Chosen {
    pub(in crate::api) transport: Transport,
    pub(in crate::api) protocol: &'static str,
}

impl Chosen {
    /// Whether a command's end is told as a JSON status, not as words.
    pub(in crate::api) fn has_status(self) -> bool {
        self.protocol.starts_with("v4.") || self.protocol.starts_with("v5.")
    }

    pub(in crate::api) fn has_resize(self) -> bool {
        self.transport == Transport::WebSocket
            || self.has_status()
            || self.protocol.starts_with("v3.")
    }

    pub(in crate::api) fn is_base64(self) -> bool {
        self.protocol.contains("base64")
    }
}

/// A connection that is about to change.
pub(in crate::api) struct Upgrade {
    connection: OnUpgrade,
    pub(in crate::api) chosen: Chosen,
    accept_key: Option<String>,
}

impl Upgrade {
    pub(in crate::api) fn of(
        mut request: Request<Incoming>,
        offer: &Offer,
    ) -> Result<Self, Refusal> {
        let connection = hyper::upgrade::on(&mut request);
        let headers = request.headers();
        let chosen = choose(headers, offer)?;
        let accept_key = match chosen.transport {
            Transport::Spdy => None,
            Transport::WebSocket => {
                let key = headers.get(SEC_WEBSOCKET_KEY);
                let key = key.ok_or_else(|| Refusal::bad("no Sec-WebSocket-Key"))?;
                Some(derive_accept_key(key.as_bytes()))
            }
        };
        Ok(Self { connection, chosen, accept_key })
    }

    /// What the client is told. After it the connection is [`wait`](Self::wait)ed for.
    pub(in crate::api) fn answer(&self) -> Answer {
        let mut answer = Response::new(Empty::new().boxed_unsync());
        *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = answer.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        let protocol = HeaderValue::from_static(self.chosen.protocol);
        match self.chosen.transport {
            Transport::Spdy => {
                headers.insert(UPGRADE, HeaderValue::from_static("SPDY/3.1"));
                headers.insert(STREAM_PROTOCOL, protocol);
            }
            Transport::WebSocket => {
                headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
                if !protocol.is_empty() {
                    headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
                }
            }
        }
        if let Some(key) = self.accept_key.as_deref().and_then(|key| key.parse().ok()) {
            headers.insert(SEC_WEBSOCKET_ACCEPT, key);
        }
        answer
    }

    pub(in crate::api) async fn wait(self) -> Option<TokioIo<Upgraded>> {
        match self.connection.await {
            Ok(upgraded) => Some(TokioIo::new(upgraded)),
            Err(error) => {
                tracing::debug!("a connection did not change: {error}");
                None
            }
        }
    }
}

fn listed(headers: &HeaderMap, name: &HeaderName) -> Vec<String> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(|value| value.trim().to_owned()).collect()
}

/// The first of the client's that is known here.
fn choose(headers: &HeaderMap, offer: &Offer) -> Result<Chosen, Refusal> {
    let wanted = headers.get(UPGRADE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (transport, name, known) = match wanted.to_ascii_lowercase().as_str() {
        "spdy/3.1" => (Transport::Spdy, STREAM_PROTOCOL, offer.spdy),
        "websocket" => (Transport::WebSocket, SEC_WEBSOCKET_PROTOCOL, offer.socket),
        _ => {
            return Err(Refusal::bad("this request must be upgraded to SPDY/3.1 or websocket"));
        }
    };
    let mut asked = listed(headers, &name);
    if asked.is_empty() && transport == Transport::Spdy {
        return Err(Refusal::bad("no X-Stream-Protocol-Version is offered"));
    }
    if asked.is_empty() {
        asked.push(String::new());
    }
    let find = |asked: &String| known.iter().find(|known| *known == asked).copied();
    if let Some(protocol) = asked.iter().find_map(find) {
        return Ok(Chosen { transport, protocol });
    }
    let text = format!("none of {} is spoken here", asked.join(", "));
    Err(Refusal { spoken: known, ..Refusal::new(StatusCode::FORBIDDEN, text) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), value.parse().unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn the_first_that_both_know_is_chosen() {
        let spdy = |versions: &[&'static str]| {
            let mut all = headers(&[("upgrade", "SPDY/3.1")]);
            for version in versions {
                all.append(STREAM_PROTOCOL, HeaderValue::from_static(version));
            }
            all
        };
        let chosen = |headers: &HeaderMap, offer| {
            choose(headers, offer)
                .map(|chosen| (chosen.transport, chosen.protocol))
                .map_err(|refused| refused.status.as_u16())
        };
        let repeated = spdy(&["v5.channel.k8s.io", "v4.channel.k8s.io"]);
        assert_eq!(chosen(&repeated, &COMMAND), Ok((Transport::Spdy, "v5.channel.k8s.io")));
        let in_one_line = spdy(&["v9.channel.k8s.io, v4.channel.k8s.io"]);
        assert_eq!(chosen(&in_one_line, &COMMAND), Ok((Transport::Spdy, "v4.channel.k8s.io")));
        assert_eq!(chosen(&spdy(&["v9.channel.k8s.io"]), &COMMAND), Err(403));
        assert_eq!(chosen(&spdy(&[]), &COMMAND), Err(400));
        assert_eq!(chosen(&headers(&[]), &COMMAND), Err(400));
        let socket =
            |protocol| headers(&[("upgrade", "WebSocket"), ("sec-websocket-protocol", protocol)]);
        let tunnel = socket("SPDY/3.1+portforward.k8s.io");
        let wanted = (Transport::WebSocket, "SPDY/3.1+portforward.k8s.io");
        assert_eq!(chosen(&tunnel, &FORWARD), Ok(wanted));
        assert_eq!(chosen(&tunnel, &COMMAND), Err(403));
        let none = headers(&[("upgrade", "websocket")]);
        assert_eq!(chosen(&none, &COMMAND), Ok((Transport::WebSocket, "")));
    }
}
