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

/// On a machine that does other things, too. Whatever is awaited comes long before, or never.
const PATIENCE: Duration = Duration::from_mins(5);

/// How a person looks at the page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) is_dark: bool,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl Look {
    pub(crate) const DESK: Self = Self { is_dark: false, width: 1360, height: 1000 };
    pub(crate) const SMALL: Self = Self { width: 1024, height: 768, ..Self::DESK };
    pub(crate) const TABLET: Self = Self { width: 768, height: 1024, ..Self::DESK };
    pub(crate) const PHONE: Self = Self { width: 390, height: 844, ..Self::DESK };

    pub(crate) fn dark(self) -> Self {
        Self { is_dark: true, ..self }
    }
}

/// Keys that are no letters, as the protocol names them.
pub(crate) const TAB: char = '\u{e004}';
pub(crate) const ENTER: char = '\u{e007}';
pub(crate) const ESCAPE: char = '\u{e00c}';

impl Browser {
    pub(crate) async fn open(client: Client, driver: &str, capabilities: &str) -> Self {
        let mut browser = Self { client, url: driver.to_owned() };
        let session = browser.ask(Method::POST, "/session", Some(capabilities.to_owned())).await;
        browser.url = format!("{driver}/session/{}", session["sessionId"].as_str().unwrap());
        browser.look(Look::DESK).await;
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

    /// From here on the page is seen so.
    pub(crate) async fn look(&self, look: Look) {
        let scheme = if look.is_dark { "dark" } else { "light" };
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        self.tell("Emulation.setEmulatedMedia", json!({"features": [feature]})).await;
        let size = json!({
            "width": look.width,
            "height": look.height,
            "deviceScaleFactor": 1,
            "mobile": look.width < 500,
        });
        self.tell("Emulation.setDeviceMetricsOverride", size).await;
    }

    /// A command of the browser's own protocol.
    async fn tell(&self, command: &str, parameters: Value) {
        let body = json!({"cmd": command, "params": parameters}).to_string();
        self.ask(Method::POST, "/goog/cdp/execute", Some(body)).await;
    }

    /// Presses keys one after the other, wherever the keyboard is.
    pub(crate) async fn press(&self, keys: impl IntoIterator<Item = char>) {
        let strokes = keys.into_iter().flat_map(|key| {
            ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": key.to_string()}))
        });
        let strokes: Vec<Value> = strokes.collect();
        let keyboard = json!({"type": "key", "id": "keyboard", "actions": strokes});
        let body = json!({"actions": [keyboard]}).to_string();
        self.ask(Method::POST, "/actions", Some(body)).await;
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
                sleep(Duration::from_millis(100)).await;
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
