use std::sync::Arc;
use std::time::Duration;

use roost_cds::{Api, Call, HttpSettings, HttpTransport};
use roost_clock::SystemClock;
use serde_json::Value;

/// The control endpoint of a simulator, or any other JSON over HTTP.
#[derive(Debug)]
pub(crate) struct Control {
    api: Api,
}

impl Control {
    /// Places are taken from here, so `base` may end in a path.
    pub(crate) fn new(base: &str) -> Self {
        // A simulator makes its own certificate.
        let settings = HttpSettings { insecure: true, ca_file: None };
        let transport = Arc::new(HttpTransport::new(&settings).unwrap());
        let url = base.parse().unwrap();
        Self { api: Api::new(transport, &url, Duration::from_secs(30), Arc::new(SystemClock)) }
    }

    async fn call(&self, call: Call) -> Value {
        let answer = self.api.call(&call, None).await;
        let answer = answer.unwrap_or_else(|error| panic!("{call}: {error}"));
        serde_json::from_slice(&answer.body).unwrap()
    }

    /// `None` if it is refused.
    pub(crate) async fn try_get(&self, place: &str) -> Option<Value> {
        let answer = self.api.call(&Call::get(format!("/{place}")), None).await.ok()?;
        serde_json::from_slice(&answer.body).ok()
    }

    pub(crate) async fn get(&self, place: &str) -> Value {
        self.call(Call::get(format!("/{place}"))).await
    }

    /// What is no JSON.
    pub(crate) async fn text(&self, place: &str) -> String {
        let answer = self.api.call(&Call::get(format!("/{place}")), None).await.unwrap();
        String::from_utf8_lossy(&answer.body).into_owned()
    }

    pub(crate) async fn post(&self, place: &str, body: &Value) -> Value {
        self.call(Call::post(format!("/{place}")).json(body)).await
    }

    pub(crate) async fn put(&self, place: &str, body: &Value) -> Value {
        self.call(Call::put(format!("/{place}")).json(body)).await
    }

    pub(crate) async fn delete(&self, place: &str) -> Value {
        self.call(Call::delete(format!("/{place}"))).await
    }
}
