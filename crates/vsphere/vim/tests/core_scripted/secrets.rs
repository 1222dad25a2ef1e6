use std::fmt::Write as _;
use std::io::Write;
use std::sync::{Arc, Mutex};

use roost_vim::wire::MoRef;
use roost_vim::wire::methods::{CurrentTime, ValidateCredentialsInGuest};
use roost_vim::wire::types::{NamePasswordAuthentication, Password};
use tracing_subscriber::fmt::MakeWriter;

use crate::script::{Answer, PASSWORD, Script, connect_with, fault, logged_in, settings};

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test(start_paused = true)]
async fn no_secret_reaches_logs_errors_or_debug_output() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(lines.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let script = Script::new(|incoming| match (incoming.method.as_str(), incoming.before) {
        ("Login", 0) => Some(logged_in("secret-cookie")),
        ("Login", _) => fault("InvalidLogin"),
        ("CurrentTime", 0) => fault("NotAuthenticated"),
        ("CurrentTime", _) => Some(Answer::Cut),
        ("ValidateCredentialsInGuest", _) => fault("InvalidGuestLogin"),
        _ => None,
    });
    let settings = settings();
    let mut shown = format!("{settings:?} {settings:#?}");
    let client = connect_with(&script, settings).await.unwrap();
    write!(shown, "{client:?} {:?}", client.observer()).unwrap();
    let auth = NamePasswordAuthentication {
        password: Password("guest-secret".into()),
        ..Default::default()
    };
    let check = ValidateCredentialsInGuest { this: MoRef::default(), vm: MoRef::vm("vm-1"), auth };
    write!(shown, "{check:?}").unwrap();
    let error = client.read(&check).await.unwrap_err();
    write!(shown, "{error} {error:?}").unwrap();
    let error = client.read(&CurrentTime { this: MoRef::service_instance() }).await.unwrap_err();
    write!(shown, "{error} {error:?}").unwrap();
    client.shutdown().await;
    shown += &String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    assert!(
        shown.contains("CurrentTime") && shown.contains("roost@vsphere.local"),
        "something was logged: {shown}"
    );
    for secret in [PASSWORD, "secret-cookie", "guest-secret"] {
        assert!(!shown.contains(secret), "{secret} in: {shown}");
    }
}
