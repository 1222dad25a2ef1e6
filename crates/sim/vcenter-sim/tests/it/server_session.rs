//! Sessions: how they begin, how they end, and how their end shows.

use std::time::Duration;

use crate::lab::{Client, Lab, of_object, session_manager};
use roost_vcenter_sim::{Credentials, Options, Product};
use roost_vim_wire::methods::{
    AcquireGenericServiceTicket, CreateFilter, CreatePropertyCollector, CurrentTime, Fetch, Logout,
    QueryOptions, RetrievePropertiesEx, RetrieveServiceContent, SessionIsActive, TerminateSession,
    UpdateOptions, WaitForUpdatesEx,
};
use roost_vim_wire::types::{
    OptionValue, RetrieveOptions, SessionManagerHttpServiceRequestSpec, UserSession, WaitOptions,
};
use roost_vim_wire::{Fault, MoRef, Value};
use tokio::time::sleep;

async fn now(client: &Client) -> Result<jiff::Timestamp, Fault> {
    client.call(CurrentTime { this: MoRef::service_instance() }).await
}

#[tokio::test(start_paused = true)]
async fn the_service_content_needs_no_session_and_names_the_product() {
    for (product, api_type, collector, root) in [
        (Product::VirtualCenter, "VirtualCenter", "propertyCollector", "group-d1"),
        (Product::HostAgent, "HostAgent", "ha-property-collector", "ha-folder-root"),
    ] {
        let lab = Lab::start(Options { product, ..Options::default() }).await;
        assert_eq!(lab.content.about.api_type, api_type);
        assert_eq!(&*lab.content.property_collector.id, collector);
        assert_eq!(&*lab.content.root_folder.id, root);
        let client = lab.login().await;
        let content = client
            .call(Fetch { this: MoRef::service_instance(), prop: "content".into() })
            .await
            .unwrap();
        assert_eq!(
            content.unwrap().get("rootFolder"),
            Some(Value::Ref(lab.content.root_folder.clone()))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_begins_with_login_and_ends_with_logout() {
    let lab = Lab::default().await;
    assert_eq!(now(&lab.anonymous()).await.unwrap_err().class, "NotAuthenticated");
    let client = lab.login().await;
    assert_eq!(client.session.user_name, "user");
    assert!(
        !client.cookie.as_ref().unwrap().contains(&client.session.key),
        "the cookie is another secret"
    );
    assert!(now(&client).await.is_ok());
    client.call(Logout { this: session_manager(&client) }).await.unwrap();
    let fault = now(&client).await.unwrap_err();
    assert_eq!(
        (fault.class.as_str(), fault.text("privilegeId")),
        ("NotAuthenticated", Some("System.View"))
    );
    assert_eq!(lab.vcenter.counters().open_sessions, 0);
}

#[tokio::test(start_paused = true)]
async fn bad_credentials_are_refused() {
    let lab = Lab::default().await;
    for (user, password) in [("", "pass"), ("user", ""), ("", "")] {
        let refused = lab.anonymous().log_in(user, password).await.unwrap_err();
        assert_eq!(refused.fault.class, "InvalidLogin", "{user} {password}");
    }
    let only = Credentials { user: "roost".into(), password: "secret".into() };
    let lab = Lab::start(Options { credentials: Some(only), ..Options::default() }).await;
    assert_eq!(
        lab.anonymous().log_in("roost", "Secret").await.unwrap_err().fault.class,
        "InvalidLogin"
    );
    assert!(lab.anonymous().log_in("roost", "secret").await.is_ok());
    assert_eq!((lab.vcenter.counters().logins, lab.vcenter.counters().failed_logins), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_login_with_the_cookie_of_a_live_session_is_refused() {
    let lab = Lab::default().await;
    let mut client = lab.login().await;
    assert_eq!(client.log_in("user", "pass").await.unwrap_err().fault.class, "InvalidLogin");
    lab.vcenter.expire_sessions();
    assert!(
        client.log_in("user", "pass").await.is_ok(),
        "the cookie of a dead session does no harm"
    );
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_expires_and_a_used_one_does_not() {
    let lab = Lab::default().await;
    let (idle, used) = (lab.login().await, lab.login().await);
    for _ in 0..4 {
        sleep(Duration::from_mins(10)).await;
        now(&used).await.unwrap();
    }
    assert_eq!(now(&idle).await.unwrap_err().class, "NotAuthenticated");
    assert_eq!(lab.vcenter.counters().open_sessions, 1);
    sleep(Duration::from_mins(29)).await;
    assert!(now(&used).await.is_ok());
    sleep(Duration::from_mins(30)).await;
    assert_eq!(now(&used).await.unwrap_err().class, "NotAuthenticated");
}

#[tokio::test(start_paused = true)]
async fn the_idle_limit_is_an_option_that_clients_can_change() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let this = lab.content.setting.clone().unwrap();
    let name = "config.vmacore.soap.sessionTimeout".to_owned();
    let before =
        client.call(QueryOptions { this: this.clone(), name: Some(name.clone()) }).await.unwrap();
    assert_eq!(before[0].value, Some(Value::Int(30)));
    let changed = OptionValue::text(name, "2s");
    client.call(UpdateOptions { this: this.clone(), changed_value: vec![changed] }).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert!(now(&client).await.is_ok());
    sleep(Duration::from_secs(2)).await;
    assert_eq!(now(&client).await.unwrap_err().class, "NotAuthenticated");
    let unknown = QueryOptions { this, name: Some("no.such.option".into()) };
    assert_eq!(lab.login().await.call(unknown).await.unwrap_err().class, "InvalidName");
}

#[tokio::test(start_paused = true)]
async fn an_expired_session_shows_its_four_shapes() {
    let lab = Lab::default().await;
    let mut client = lab.login().await;
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    let collector =
        client.call(CreatePropertyCollector { this: client.collector() }).await.unwrap();
    let view = client.view("VirtualMachine").await;
    lab.vcenter.expire_sessions();

    // An ordinary call, and the calls of a watcher.
    assert_eq!(now(&client).await.unwrap_err().class, "NotAuthenticated");
    let options = Some(WaitOptions { max_wait_seconds: Some(0), max_object_updates: None });
    let wait = WaitForUpdatesEx { this: client.collector(), version: None, options };
    assert_eq!(client.call(wait).await.unwrap_err().class, "NotAuthenticated");
    let filter = CreateFilter {
        this: client.collector(),
        spec: of_object(&vm, &["name"]),
        partial_updates: false,
    };
    assert_eq!(client.call(filter).await.unwrap_err().class, "NotAuthenticated");

    // A property read succeeds and holds nothing.
    let read = RetrievePropertiesEx {
        this: client.collector(),
        spec_set: vec![of_object(&vm, &["name", "runtime.powerState"])],
        options: RetrieveOptions::default(),
    };
    let objects = client.call(read).await.unwrap().unwrap().objects;
    assert_eq!((&objects[0].obj, objects[0].prop_set.len()), (&vm, 0));
    let missing: Vec<_> = objects[0]
        .missing_set
        .iter()
        .map(|missing| (missing.path.as_str(), missing.fault.fault.class.as_str()))
        .collect();
    assert_eq!(missing, [("name", "NotAuthenticated"), ("runtime.powerState", "NotAuthenticated")]);

    // Files.
    let (status, _) =
        client.http("GET", "/folder/x?dcPath=DC0&dsName=LocalDS_0", "").await.unwrap();
    assert_eq!(status, 401);
    let (status, _) = client.http("GET", "/guestFile?id=1&token=gone", "").await.unwrap();
    assert_eq!(status, 401);

    // What lived in the old session is not there in the new one.
    let old = client.session.key.clone();
    client.cookie = None;
    client.log_in("user", "pass").await.unwrap();
    assert!(collector.id.starts_with(&format!("session[{old}]")), "{collector}");
    let fault = client.call(CreatePropertyCollector { this: collector.clone() }).await.unwrap_err();
    assert_eq!(
        (fault.class.as_str(), fault.object("obj")),
        ("ManagedObjectNotFound", Some(collector))
    );
    let fault = client.call(roost_vim_wire::methods::DestroyView { this: view }).await.unwrap_err();
    assert_eq!(fault.class, "ManagedObjectNotFound");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_ends_the_wait_in_it() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let filter = CreateFilter {
        this: client.collector(),
        spec: of_object(&client.content.root_folder, &["name"]),
        partial_updates: false,
    };
    client.call(filter).await.unwrap();
    let wait = |version| WaitForUpdatesEx { this: client.collector(), version, options: None };
    let first = client.call(wait(None)).await.unwrap().unwrap();
    let waiting = tokio::spawn({
        let (client, call) = (client.clone(), wait(Some(first.version)));
        async move { client.call(call).await }
    });
    // Waiting does not keep a session alive.
    assert_eq!(waiting.await.unwrap().unwrap_err().class, "NotAuthenticated");
    assert_eq!(lab.vcenter.counters().open_filters, 0);
}

#[tokio::test(start_paused = true)]
async fn too_many_sessions_are_answered_with_503() {
    let lab = Lab::start(Options { max_sessions: 2, ..Options::default() }).await;
    let (first, _second) = (lab.login().await, lab.login().await);
    assert_eq!(lab.anonymous().log_in("user", "pass").await.unwrap_err().fault.class, "Http503");
    first.call(Logout { this: session_manager(&first) }).await.unwrap();
    assert!(lab.anonymous().log_in("user", "pass").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn sessions_can_be_listed_probed_and_terminated() {
    let lab = Lab::default().await;
    let (one, two) = (lab.login().await, lab.login().await);
    let this = session_manager(&one);
    let list = one.property(&this, "sessionList").await.unwrap();
    assert_eq!(list.data_items::<UserSession>().count(), 2);
    let current = one.property(&this, "currentSession").await.unwrap();
    assert_eq!(current.as_data::<UserSession>().unwrap().key, one.session.key);
    let probe = |key: &str, user: &str| SessionIsActive {
        this: this.clone(),
        session_id: key.into(),
        user_name: user.into(),
    };
    assert!(one.call(probe(&two.session.key, "user")).await.unwrap());
    assert!(!one.call(probe(&two.session.key, "other")).await.unwrap());
    let end = |keys: &[&str]| TerminateSession {
        this: this.clone(),
        session_id: keys.iter().map(ToString::to_string).collect(),
    };
    assert_eq!(one.call(end(&[&one.session.key])).await.unwrap_err().class, "InvalidArgument");
    assert_eq!(one.call(end(&[&two.session.key, "unknown"])).await.unwrap_err().class, "NotFound");
    one.call(end(&[&two.session.key])).await.unwrap();
    assert!(!one.call(probe(&two.session.key, "user")).await.unwrap());
    assert_eq!(now(&two).await.unwrap_err().class, "NotAuthenticated");
}

#[tokio::test(start_paused = true)]
async fn a_host_does_not_implement_the_session_probe() {
    let lab = Lab::start(Options { product: Product::HostAgent, ..Options::default() }).await;
    let client = lab.login().await;
    let probe = SessionIsActive {
        this: session_manager(&client),
        session_id: client.session.key.clone(),
        user_name: "user".into(),
    };
    assert_eq!(client.call(probe).await.unwrap_err().class, "NotImplemented");
}

#[tokio::test(start_paused = true)]
async fn without_a_session_only_what_is_open_to_all_can_be_read() {
    let lab = Lab::default().await;
    let client = lab.anonymous();
    let this = session_manager(&client);
    let locale =
        client.call(Fetch { this: this.clone(), prop: "defaultLocale".into() }).await.unwrap();
    assert_eq!(locale, Some(Value::string("en")));
    assert_eq!(client.property(&this, "currentSession").await, None);
    let folder = Fetch { this: client.content.root_folder.clone(), prop: "name".into() };
    assert_eq!(client.call(folder).await.unwrap_err().class, "NotAuthenticated");
    let wrong = RetrieveServiceContent { this: this.clone() };
    assert_eq!(client.call(wrong).await.unwrap_err().class, "ManagedObjectNotFound");
}

#[tokio::test(start_paused = true)]
async fn a_ticket_opens_one_transfer_without_a_cookie() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let path = "/folder/a.txt?dcPath=DC0&dsName=LocalDS_0";
    let put = client.http("PUT", path, "hello").await.unwrap().0;
    assert!(put.is_success(), "{put}");
    let spec = SessionManagerHttpServiceRequestSpec {
        method: Some("httpGet".into()),
        url: format!("https://esx1{path}"),
    };
    let ticket = client
        .call(AcquireGenericServiceTicket { this: session_manager(&client), spec })
        .await
        .unwrap();
    assert_eq!(ticket.host_name.as_deref(), Some("esx1"));
    let mut holder = lab.anonymous();
    holder.cookie = Some(format!("vmware_cgi_ticket={}", ticket.id));
    let (status, body) = holder.http("GET", path, "").await.unwrap();
    assert_eq!((status.as_u16(), body.as_str()), (200, "hello"));
    assert_eq!(holder.http("GET", path, "").await.unwrap().0, 401, "a ticket is good once");
}
