//! A client whose requests are counted, under the name that client-go has for them, and none of which waits for ever.

use std::io;
use std::time::Duration;

use http::Request;
use kube::Client;
use kube::client::Body;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tokio::time::timeout;

/// Without `host`: a process talks to one API server.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByAnswer {
    code: String,
    method: String,
}

/// What client-go writes for a request without an answer.
const NO_ANSWER: &str = "<error>";

/// How long an answer may take to begin. An API server gives up after a minute itself; a connection that is dead says nothing, and a
/// list or watch that waited for it would be blind until the next start.
const ANSWERED_WITHIN: Duration = Duration::from_secs(75);

#[derive(Debug, Clone)]
pub(crate) struct Requests(Family<ByAnswer, Counter>);

impl Requests {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let requests = Self(Family::default());
        let help = "Requests to the API server, by status code and method";
        registry.register("rest_client_requests", help, requests.0.clone());
        requests
    }

    /// The same client, counting, and no longer waiting than an answer can take.
    pub(crate) fn count(&self, client: Client) -> Client {
        let (family, namespace) = (self.0.clone(), client.default_namespace().to_owned());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (client, family) = (client.clone(), family.clone());
            async move {
                let method = request.method().to_string();
                let answer = timeout(ANSWERED_WITHIN, client.send(request)).await;
                let answer = answer.unwrap_or_else(|_| {
                    let what = format!("no answer of the API server within {ANSWERED_WITHIN:?}");
                    Err(kube::Error::Service(io::Error::new(io::ErrorKind::TimedOut, what).into()))
                });
                let code = match &answer {
                    Ok(answer) => answer.status().as_str().to_owned(),
                    Err(_) => NO_ANSWER.to_owned(),
                };
                family.get_or_create(&ByAnswer { code, method }).inc();
                answer
            }
        });
        Client::new(service, namespace)
    }
}
