//! The control endpoint: the typed API as JSON.

use crate::lab::{Client, Lab};
use roost_vcenter_sim::{Options, Power};
use roost_vim_wire::methods::{CurrentTime, StartProgramInGuest};
use roost_vim_wire::types::{GuestProgramSpec, NamePasswordAuthentication, Password};
use roost_vim_wire::{MoRef, MoType};
use serde_json::{Value, json};

async fn lab() -> (Lab, Client) {
    let lab = Lab::start(Options { control_endpoint: true, ..Options::default() }).await;
    let client = lab.login().await;
    (lab, client)
}

async fn control(client: &Client, method: &str, path: &str, body: Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (status, text) =
        client.http(method, &format!("/roost/control/{path}"), &body).await.unwrap();
    (status.as_u16(), serde_json::from_str(&text).unwrap_or_default())
}

fn ask() -> CurrentTime {
    CurrentTime { this: MoRef::service_instance() }
}

#[tokio::test(start_paused = true)]
async fn rules_can_be_added_listed_and_removed() {
    let (_lab, client) = lab().await;
    let rule = json!({ "method": "CurrentTime", "nth": 1, "action": { "fault": { "class": "Timedout", "message": "slow" } } });
    let (status, added) = control(&client, "POST", "rules", rule).await;
    assert_eq!((status, &added), (200, &json!({ "id": 1 })));
    assert_eq!(client.call(ask()).await.unwrap_err().class, "Timedout");
    let (_, list) = control(&client, "GET", "rules", Value::Null).await;
    assert_eq!((&list[0]["fired"], &list[0]["rule"]["nth"]), (&json!(1), &json!(1)));
    assert_eq!(control(&client, "DELETE", "rules/1", Value::Null).await.0, 200);
    assert_eq!(control(&client, "DELETE", "rules/1", Value::Null).await.0, 404);
    let (status, error) =
        control(&client, "POST", "rules", json!({ "method": "*", "action": "explode" })).await;
    assert_eq!(status, 400);
    assert!(error["error"].as_str().unwrap().contains("explode"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn sessions_can_be_listed_and_expired_and_the_server_restarted() {
    let (lab, client) = lab().await;
    let (_, sessions) = control(&client, "GET", "sessions", Value::Null).await;
    assert_eq!(sessions[0]["user"], "user");
    control(&client, "DELETE", "sessions", Value::Null).await;
    assert_eq!(client.call(ask()).await.unwrap_err().class, "NotAuthenticated");
    let other = lab.login().await;
    assert_eq!(control(&other, "POST", "restart", json!({ "lastsMs": 1000 })).await.0, 200);
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert_eq!(other.http("GET", "/sdk", "").await.unwrap().0, 503);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(lab.vcenter.counters().open_sessions, 0);
}

#[tokio::test(start_paused = true)]
async fn counters_can_be_read_and_reset() {
    let (_lab, client) = lab().await;
    client.call(ask()).await.unwrap();
    let (_, counters) = control(&client, "GET", "counters", Value::Null).await;
    assert_eq!(
        (&counters["calls"]["CurrentTime"], &counters["open_sessions"]),
        (&json!(1), &json!(1))
    );
    control(&client, "DELETE", "counters", Value::Null).await;
    let (_, counters) = control(&client, "GET", "counters", Value::Null).await;
    assert_eq!(counters["calls"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn privileges_can_be_taken_away_by_path_or_reference() {
    let (_lab, client) = lab().await;
    let folder = client.find("/DC0/vm").await;
    let create =
        || roost_vim_wire::methods::CreateFolder { this: folder.clone(), name: "x".into() };
    for below in ["/DC0/vm".to_owned(), folder.to_string()] {
        let denial = json!({ "privilege": "Folder.Create", "below": below });
        assert_eq!(control(&client, "POST", "permissions/deny", denial.clone()).await.0, 200);
        assert_eq!(client.call(create()).await.unwrap_err().class, "NoPermission");
        let (_, list) = control(&client, "GET", "permissions", Value::Null).await;
        assert_eq!(list, json!([{ "privilege": "Folder.Create", "below": folder.to_string() }]));
        control(&client, "POST", "permissions/allow", denial).await;
    }
    let nowhere = json!({ "privilege": "Folder.Create", "below": "/nowhere" });
    assert_eq!(control(&client, "POST", "permissions/deny", nowhere).await.0, 400);
    client.call(create()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn guests_can_be_scripted_and_the_world_moved() {
    let (lab, client) = lab().await;
    let scripts = json!([
        { "path": "/bin/worker", "arguments": "*--fail*", "runs": { "exitCode": 3, "output": "no" } },
        { "path": "/bin/none", "notFound": {} },
    ]);
    assert_eq!(control(&client, "PUT", "guests/scripts", scripts).await.0, 200);
    let start = |path: &str| StartProgramInGuest {
        this: MoRef::new(MoType::GuestProcessManager, "guestOperationsProcessManager"),
        vm: lab.vcenter.find("/DC0/vm/DC0_H0_VM0").unwrap(),
        auth: NamePasswordAuthentication {
            username: "root".into(),
            password: Password("pw".into()),
            interactive_session: false,
        },
        spec: GuestProgramSpec {
            program_path: path.into(),
            arguments: "run --fail".into(),
            ..GuestProgramSpec::default()
        },
    };
    assert_eq!(client.call(start("/bin/none")).await.unwrap_err().class, "FileNotFound");
    client.call(start("/bin/worker")).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    assert_eq!(lab.vcenter.guest_processes("DC0_H0_VM0").last().unwrap().exit_code, Some(3));
    let (_, programs) = control(&client, "GET", "guests/programs", Value::Null).await;
    assert_eq!(programs.as_array().unwrap().last().unwrap()["path"], "/bin/worker");

    assert_eq!(control(&client, "PUT", "vms/DC0_H0_VM0/power/off", Value::Null).await.0, 200);
    assert_eq!(lab.vcenter.vm("DC0_H0_VM0").unwrap().power, Power::Off);
    assert_eq!(control(&client, "DELETE", "vms/DC0_H0_VM1", Value::Null).await.0, 200);
    assert!(lab.vcenter.vm("DC0_H0_VM1").is_none());
    assert_eq!(
        control(&client, "PUT", "guests/DC0_H0_VM0/behaviour", json!({ "boots": false })).await.0,
        200
    );
    let wrong = json!({ "address": { "wrong": "10.0.0.9" }, "credentials": { "user": "a", "password": "b" } });
    assert_eq!(control(&client, "PUT", "guests/DC0_H0_VM0/behaviour", wrong).await.0, 200);
    assert_eq!(
        control(&client, "PUT", "hosts/DC0_H0/connection/notResponding", Value::Null).await.0,
        200
    );
    assert_eq!(control(&client, "PUT", "datastores/LocalDS_0/free/1000", Value::Null).await.0, 200);
    assert_eq!(lab.vcenter.datastore_free("LocalDS_0"), Some(1000));
    for (path, status) in
        [("vms/none/power/on", 400), ("vms/DC0_H0_VM0/power/up", 404), ("nonsense", 404)]
    {
        assert_eq!(control(&client, "PUT", path, Value::Null).await.0, status, "{path}");
    }
}
