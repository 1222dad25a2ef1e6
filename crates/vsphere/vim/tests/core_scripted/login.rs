use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use roost_vim::wire::MoRef;
use roost_vim::wire::methods::{CurrentTime, Login};
use roost_vim::wire::types::UserSession;
use roost_vim::{
    CallError, CredentialError, CredentialSource, Credentials, Hooks, LoginOutcome, Remedy,
};
use tokio::time::{Instant, sleep};

use crate::script::{Answer, Script, connect, connect_with, fault, logged_in, reply, settings};

fn now() -> CurrentTime {
    CurrentTime { this: MoRef::service_instance() }
}

#[tokio::test(start_paused = true)]
async fn connecting_speaks_a_version_that_both_know_and_replays_the_cookie() {
    let script = Script::new(|incoming| match incoming.method.as_str() {
        "Login" => Some(logged_in("\"52 a=b\"")),
        _ => None,
    });
    let client = connect(&script).await;
    client.read(&now()).await.unwrap();
    let log = script.log();
    let methods: Vec<_> = log.iter().map(|incoming| incoming.method.as_str()).collect();
    assert_eq!(
        methods,
        ["/sdk/vimServiceVersions.xml", "RetrieveServiceContent", "Login", "CurrentTime"]
    );
    assert_eq!(log[2].cookie, None, "a login never carries a cookie");
    assert_eq!(log[3].cookie.as_deref(), Some("vmware_soap_session=\"52 a=b\""));
    assert_eq!(log[3].soap_action.as_deref(), Some("urn:vim25/8.0.3.0"));
    assert!(String::from_utf8_lossy(&log[3].body).contains("<operationID>roost-3</operationID>"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_lists_no_versions_is_asked_what_it_is() {
    let script = Script::new(|incoming| {
        (incoming.method == "/sdk/vimServiceVersions.xml").then_some(Answer::Status(404))
    });
    connect(&script).await;
    let login = script.log().into_iter().find(|incoming| incoming.method == "Login").unwrap();
    assert_eq!(login.soap_action.as_deref(), Some("urn:vim25/7.0.3.0"));
}

#[tokio::test(start_paused = true)]
async fn a_hundred_callers_share_one_login() {
    // The first session is gone after the login; the second lives.
    let script =
        Script::new(|incoming| match (incoming.method.as_str(), incoming.cookie.as_deref()) {
            ("Login", _) if incoming.before > 0 => {
                Some(Answer::After(Duration::from_secs(2), Box::new(logged_in("s=2"))))
            }
            ("CurrentTime", Some("vmware_soap_session=s=1")) => {
                Some(Answer::After(Duration::from_secs(1), Box::new(fault("NotAuthenticated")?)))
            }
            _ => None,
        });
    let client = connect(&script).await;
    script.forget();
    let callers: Vec<_> = (0..100)
        .map(|_| {
            tokio::spawn({
                let client = client.clone();
                async move { client.read(&now()).await }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap().unwrap();
    }
    assert_eq!(script.count("Login"), 1);
    assert_eq!(script.count("CurrentTime"), 200, "each was refused once and replayed once");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_refused_twice_is_reported_and_not_renewed_for_ever() {
    let script = Script::new(|incoming| {
        (incoming.method == "CurrentTime").then(|| fault("NotAuthenticated")).flatten()
    });
    let client = connect(&script).await;
    let error = client.read(&now()).await.unwrap_err();
    assert_eq!(error.remedy(), Remedy::Relogin);
    assert_eq!((script.count("Login"), script.count("CurrentTime")), (2, 2));
}

/// Gives what a test puts into it.
#[derive(Debug, Clone)]
struct Changing(Arc<Mutex<&'static str>>);

impl CredentialSource for Changing {
    fn read(&self) -> Result<Credentials, CredentialError> {
        Ok(Credentials::new("roost", *self.0.lock().unwrap()))
    }
}

#[derive(Debug, Default)]
struct Logins(Mutex<Vec<LoginOutcome>>);

impl Hooks for Logins {
    fn login(&self, outcome: LoginOutcome) {
        self.0.lock().unwrap().push(outcome);
    }
}

#[tokio::test(start_paused = true)]
async fn refused_credentials_are_sent_three_times_and_then_not_until_they_change() {
    let password = Arc::new(Mutex::new("old"));
    // The password is changed on the server while the client runs.
    let script = Script::new(|incoming| match incoming.method.as_str() {
        "Login" if incoming.before > 0 && incoming.decode::<Login>().password.0 != "new" => {
            fault("InvalidLogin")
        }
        "CurrentTime" if incoming.cookie.as_deref() == Some("vmware_soap_session=s=1") => {
            fault("NotAuthenticated")
        }
        _ => None,
    });
    let (mut settings, hooks) = (settings(), Arc::new(Logins::default()));
    settings.credentials = Arc::new(Changing(Arc::clone(&password)));
    settings.hooks = Arc::clone(&hooks) as Arc<dyn Hooks>;
    let client = connect_with(&script, settings).await.unwrap();
    script.forget();

    // Twenty callers ask every minute for a day, and the keep-alive besides.
    for minute in 0..24 * 60 {
        let time = now();
        let callers = (0..20).map(|_| client.read(&time));
        for result in futures_util::future::join_all(callers).await {
            let error = result.unwrap_err();
            assert!(matches!(error.remedy(), Remedy::Wait | Remedy::GiveUp), "{error}");
        }
        if minute == 0 {
            assert_eq!(script.count("Login"), 1, "all pause after the first refusal");
        }
        sleep(Duration::from_mins(1)).await;
    }
    assert_eq!(script.count("Login"), 3);
    let error = client.read(&now()).await.unwrap_err();
    assert!(matches!(error, CallError::BadCredentials { attempts: 3, .. }), "{error}");

    *password.lock().unwrap() = "new";
    client.read(&now()).await.unwrap();
    assert_eq!(script.count("Login"), 4);
    let mut outcomes = vec![LoginOutcome::LoggedIn];
    outcomes.extend([LoginOutcome::Refused; 3]);
    outcomes.push(LoginOutcome::LoggedIn);
    assert_eq!(*hooks.0.lock().unwrap(), outcomes);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_starts_is_waited_for() {
    let script = Script::new(|incoming| match incoming.method.as_str() {
        "Login" if incoming.before < 4 => Some(Answer::Status(503)),
        _ => None,
    });
    let started = Instant::now();
    connect(&script).await;
    assert_eq!(script.count("Login"), 5);
    assert!(
        started.elapsed() > Duration::from_secs(5),
        "with growing pauses: {:?}",
        started.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_without_a_session_left_is_reported_at_the_login_deadline() {
    let script =
        Script::new(|incoming| (incoming.method == "Login").then_some(Answer::Status(503)));
    let started = Instant::now();
    let error = connect_with(&script, settings()).await.unwrap_err();
    assert_eq!(error.remedy(), Remedy::Wait, "{error}");
    assert!(started.elapsed() <= Duration::from_secs(30));
    assert!(script.count("Login") < 12, "{} logins", script.count("Login"));
}

#[tokio::test(start_paused = true)]
async fn credentials_that_cannot_be_read_send_nothing() {
    #[derive(Debug)]
    struct Missing;
    impl CredentialSource for Missing {
        fn read(&self) -> Result<Credentials, CredentialError> {
            Err(CredentialError::Empty)
        }
    }
    let script = Script::new(|_| None);
    let mut settings = settings();
    settings.credentials = Arc::new(Missing);
    let error = connect_with(&script, settings).await.unwrap_err();
    assert!(matches!(error, CallError::Credentials { .. }));
    assert_eq!(script.count("Login"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_login_without_a_cookie_is_no_login() {
    let script = Script::new(|incoming| match incoming.method.as_str() {
        "Login" => reply::<Login>(&UserSession::default()),
        _ => None,
    });
    assert!(matches!(connect_with(&script, settings()).await, Err(CallError::NoCookie)));
}

#[tokio::test(start_paused = true)]
async fn the_session_is_kept_alive_every_five_minutes() {
    let script = Script::new(|_| None);
    let _client = connect(&script).await;
    script.forget();
    sleep(Duration::from_hours(1) + Duration::from_secs(1)).await;
    assert_eq!(script.methods(), vec!["CurrentTime"; 12]);
}

#[tokio::test(start_paused = true)]
async fn the_keep_alive_survives_an_outage_and_logs_in_again() {
    let down = Arc::new(AtomicUsize::new(0));
    let script = Script::new({
        let down = Arc::clone(&down);
        move |incoming| match (down.load(Ordering::Relaxed), incoming.cookie.as_deref()) {
            (1, _) => Some(Answer::Refused),
            (2, Some("vmware_soap_session=s=1")) => fault("NotAuthenticated"),
            _ => None,
        }
    });
    let client = connect(&script).await;
    down.store(1, Ordering::Relaxed);
    sleep(Duration::from_mins(30)).await;
    down.store(2, Ordering::Relaxed);
    script.forget();
    sleep(Duration::from_mins(6)).await;
    assert_eq!(script.count("Login"), 1);
    client.read(&now()).await.unwrap();
    assert_eq!(script.count("Login"), 1, "the session was there already");
}
