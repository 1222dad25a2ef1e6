use std::sync::{Arc, Mutex};
use std::time::Duration;

use roost_vcenter_sim::{Action, Outage, Rule};
use roost_vim::wire::MoRef;
use roost_vim::wire::methods::{CurrentTime, RenameTask};
use roost_vim::{CallError, CredentialError, CredentialSource, Credentials, Remedy};
use tokio::time::sleep;

use crate::lab::{Lab, options, settings, vms};

fn now() -> CurrentTime {
    CurrentTime { this: MoRef::service_instance() }
}

#[tokio::test(start_paused = true)]
async fn an_ordinary_call_outlives_its_session() {
    let lab = Lab::new(options()).await;
    lab.vcenter.expire_sessions();
    lab.client.read(&now()).await.unwrap();
    let vm = lab.vcenter.find("/DC0/vm/DC0_H0_VM0").unwrap();
    lab.vcenter.expire_sessions();
    let rename = RenameTask { this: vm, new_name: "other".into() };
    lab.client.submit(&rename).await.unwrap().wait().await.unwrap();
    assert!(lab.vcenter.find("/DC0/vm/other").is_some());
    assert_eq!(lab.vcenter.counters().logins, 3);
}

#[tokio::test(start_paused = true)]
async fn an_expired_session_never_reads_as_an_empty_inventory() {
    let lab = Lab::new(vms(250)).await;
    assert_eq!(lab.read_vms().await.len(), 250);
    lab.vcenter.expire_sessions();
    assert_eq!(lab.read_vms().await.len(), 250);
    // In the middle of the pages, too.
    lab.vcenter.faults().add(Rule::new("ContinueRetrievePropertiesEx", Action::LoseSession).once());
    assert_eq!(lab.read_vms().await.len(), 250);
    assert_eq!(lab.vcenter.counters().logins, 3);
}

#[tokio::test(start_paused = true)]
async fn the_stream_outlives_a_session_whose_collector_is_not_found_any_more() {
    let lab = Lab::new(options()).await;
    let mut vms = lab.watch().await;
    vms.sync().await;
    let known = vms.plain();
    lab.vcenter.expire_sessions();
    // Another caller logs in first: what the stream had belongs to a session that is gone.
    lab.client.read(&now()).await.unwrap();
    vms.follow(Duration::from_mins(2)).await;
    assert!(vms.synced && vms.left.is_empty());
    assert_eq!((vms.plain(), vms.resyncs), (known, 1));
}

#[tokio::test(start_paused = true)]
async fn a_hundred_callers_share_one_login_after_a_restart() {
    let lab = Lab::new(options()).await;
    lab.vcenter.restart(Outage::default());
    let callers: Vec<_> = (0..100)
        .map(|_| {
            let client = lab.client.clone();
            tokio::spawn(async move { client.read(&now()).await })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap().unwrap();
    }
    assert_eq!(lab.vcenter.counters().logins, 2);
}

#[tokio::test(start_paused = true)]
async fn reads_wait_out_a_short_outage_and_report_a_long_one() {
    for refuses in [false, true] {
        let lab = Lab::new(options()).await;
        lab.vcenter.restart(Outage { lasts: Duration::from_secs(8), refuses });
        lab.client.read(&now()).await.unwrap();
        lab.vcenter.restart(Outage { lasts: Duration::from_mins(8), refuses });
        let error = lab.client.read(&now()).await.unwrap_err();
        assert!(matches!(error.remedy(), Remedy::Retry | Remedy::Wait), "{error}");
        sleep(Duration::from_mins(8)).await;
        lab.client.read(&now()).await.unwrap();
    }
}

#[derive(Debug, Clone)]
struct Rotating(Arc<Mutex<String>>);

impl CredentialSource for Rotating {
    fn read(&self) -> Result<Credentials, CredentialError> {
        Ok(Credentials::new("roost", self.0.lock().unwrap().clone()))
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_credentials_are_never_sent_more_than_three_times() {
    let mut options = options();
    options.credentials =
        Some(roost_vcenter_sim::Credentials { user: "roost".into(), password: "new".into() });
    let password = Arc::new(Mutex::new("new".to_owned()));
    let mut settings = settings();
    settings.credentials = Arc::new(Rotating(Arc::clone(&password)));
    let lab = Lab::with(options, settings).await.unwrap();
    let vms = lab.watch().await;
    // A file that was rolled back by mistake, just before the session ends.
    "old".clone_into(&mut password.lock().unwrap());
    lab.vcenter.expire_sessions();
    // The stream, the keep-alive and callers all want in, for a day.
    for _ in 0..24 * 6 {
        lab.client.read(&now()).await.unwrap_err();
        sleep(Duration::from_mins(10)).await;
    }
    assert_eq!(lab.vcenter.counters().failed_logins, 3);
    assert!(!vms.subscription.status().synced);
    let trouble = vms.subscription.status().trouble;
    assert!(matches!(trouble, Some(CallError::BadCredentials { attempts: 3, .. })), "{trouble:?}");

    "new".clone_into(&mut password.lock().unwrap());
    sleep(Duration::from_mins(1)).await;
    assert!(vms.subscription.status().synced, "the stream came back by itself");
    assert_eq!(lab.vcenter.counters().failed_logins, 3);
}

#[tokio::test(start_paused = true)]
async fn an_idle_client_keeps_its_session() {
    let lab = Lab::new(options()).await;
    sleep(Duration::from_hours(24)).await;
    lab.client.read(&now()).await.unwrap();
    assert_eq!(lab.vcenter.counters().logins, 1);
}

#[tokio::test(start_paused = true)]
async fn a_host_without_a_vcenter_is_spoken_to_as_well() {
    let mut options = options();
    options.product = roost_vcenter_sim::Product::HostAgent;
    let lab = Lab::new(options).await;
    assert_eq!(lab.client.content().about.api_type, "HostAgent");
    let mut vms = lab.watch().await;
    vms.sync().await;
    assert!(!vms.objects.is_empty());
}
