//! As much of the WebDriver protocol as the tests need.

use std::time::Duration;

use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

/// A browser with one window.
pub(crate) struct Browser {
    client: Client,
    /// Of the session.
    url: String,
}

/// On a machine that does other things, too.
const PATIENCE: Duration = Duration::from_mins(1);

impl Browser {
    pub(crate) async fn open(client: Client, driver: &str, capabilities: &str) -> Self {
        let mut browser = Self { client, url: driver.to_owned() };
        let session = browser.ask(Method::POST, "/session", Some(capabilities.to_owned())).await;
        browser.url = format!("{driver}/session/{}", session["sessionId"].as_str().unwrap());
        let size = json!({"width": 1360, "height": 1080}).to_string();
        browser.ask(Method::POST, "/window/rect", Some(size)).await;
        browser
    }

    async fn ask(&self, method: Method, path: &str, body: Option<String>) -> Value {
        let mut request = self.client.request(method, format!("{}{path}", self.url));
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body);
        }
        let answer = request.send().await.unwrap().bytes().await.unwrap();
        let mut answer: Value = serde_json::from_slice(&answer).unwrap();
        let value = answer["value"].take();
        assert!(value.get("error").is_none(), "{path}: {value}");
        value
    }

    pub(crate) async fn go(&self, url: &str) {
        self.ask(Method::POST, "/url", Some(json!({"url": url}).to_string())).await;
    }

    /// What a script returns; of a promise, what it comes to.
    pub(crate) async fn run(&self, script: &str) -> Value {
        let body = json!({"script": script, "args": []}).to_string();
        self.ask(Method::POST, "/execute/sync", Some(body)).await
    }

    pub(crate) async fn until(&self, script: &str) {
        let holds = async {
            while self.run(script).await != true {
                sleep(Duration::from_millis(50)).await;
            }
        };
        if timeout(PATIENCE, holds).await.is_err() {
            let page = self.run("return document.body.innerText").await;
            panic!("not within {PATIENCE:?}: {script}\n{page}");
        }
    }

    /// What the browser had to object to: blocked content, scripts that failed.
    pub(crate) async fn complaints(&self) -> Vec<String> {
        let body = json!({"type": "browser"}).to_string();
        let log = self.ask(Method::POST, "/se/log", Some(body)).await;
        let entries = log.as_array().unwrap().iter();
        entries.filter_map(|entry| Some(entry["message"].as_str()?.to_owned())).collect()
    }

    pub(crate) async fn picture(&self, name: &str) {
        let png = self.ask(Method::GET, "/screenshot", None).await;
        super::keep_picture(name, png.as_str().unwrap());
    }

    pub(crate) async fn close(self) {
        self.ask(Method::DELETE, "", None).await;
    }
}
