//! Calls that make no sense, and the plain HTTP around the ones that do.

use crate::lab::{Lab, folder};
use http::Request;
use http_body_util::BodyExt as _;
use roost_vcenter_sim::{Options, full_body};
use roost_vim_wire::methods::{CurrentTime, PowerOnVmTask, RetrievePropertiesEx};
use roost_vim_wire::types::{PropertyFilterSpec, PropertySpec, RetrieveOptions};
use roost_vim_wire::{MoRef, encode_request};

#[tokio::test(start_paused = true)]
async fn what_is_no_call_is_a_fault_and_never_a_panic() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let cut =
        String::from_utf8(encode_request(&CurrentTime { this: MoRef::service_instance() }, None))
            .unwrap();
    let bodies = [
        "",
        "hello",
        "<a/>",
        "<Envelope/>",
        "<Envelope><Body/></Envelope>",
        "<Envelope><Body><CurrentTime/></Body></Envelope>",
        "<Envelope><Body><CurrentTime><_this type='X'></_this></CurrentTime></Body></Envelope>",
        "<!DOCTYPE a [<!ENTITY b 'c'>]><Envelope/>",
        &cut[..cut.len() / 2],
    ];
    for body in bodies {
        let response = client.send(body.as_bytes().to_vec()).await.unwrap();
        assert_eq!(response.status(), 500, "{body}");
        let text = response.into_body().collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&text).contains("InvalidRequestFault"), "{body}");
    }
    assert_eq!(lab.vcenter.counters().panics, 0);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_method_and_an_unknown_object_are_told_apart() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let call = "<Envelope><Body><Frobnicate xmlns='urn:vim25'><_this type='Folder'>group-d1</_this></Frobnicate></Body></Envelope>";
    let response = client.send(call.into()).await.unwrap();
    assert_eq!(response.status(), 500);
    let text = response.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8_lossy(&text);
    assert!(
        text.contains("xsi:type=\"MethodNotFound\"")
            && text.contains("<method>Frobnicate</method>"),
        "{text}"
    );
    let fault =
        client.call(PowerOnVmTask { this: MoRef::vm("vm-999"), host: None }).await.unwrap_err();
    assert_eq!(
        (fault.class.as_str(), fault.object("obj")),
        ("ManagedObjectNotFound", Some(MoRef::vm("vm-999")))
    );
    let fault =
        client.call(PowerOnVmTask { this: folder("group-d1"), host: None }).await.unwrap_err();
    assert_eq!(fault.class, "MethodNotFound", "a folder cannot be powered on");
    let fault = client.call(CurrentTime { this: folder("group-d1") }).await.unwrap_err();
    assert_eq!(fault.class, "MethodNotFound");
}

#[tokio::test(start_paused = true)]
async fn only_posts_reach_the_sdk() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    assert_eq!(client.http("GET", "/sdk", "").await.unwrap().0, 405);
    let (status, body) = client.http("GET", "/sdk/vimServiceVersions.xml", "").await.unwrap();
    assert_eq!(status, 200);
    assert!(body.contains("<name>urn:vim25</name><version>8.0.3.0</version>"), "{body}");
    assert_eq!(client.http("GET", "/", "").await.unwrap().0, 404);
    assert_eq!(
        client.http("GET", "/roost/control/counters", "").await.unwrap().0,
        404,
        "off unless asked for"
    );
    let (status, body) = client.http("GET", "/about", "").await.unwrap();
    assert!(status == 200 && body.contains("CloneVM_Task"));
}

#[tokio::test(start_paused = true)]
async fn large_answers_are_compressed_for_clients_that_take_it() {
    let lab = Lab::start(Options { vms: 200, ..Options::default() }).await;
    let client = lab.login().await;
    let view = client.view("VirtualMachine").await;
    let spec = PropertyFilterSpec::of_view(
        &view,
        vec![PropertySpec::new("VirtualMachine", &["name", "parent"])],
    );
    let options = RetrieveOptions::default();
    let call = RetrievePropertiesEx { this: client.collector(), spec_set: vec![spec], options };
    let answer = |encoding: &'static str, body: Vec<u8>| {
        let request = Request::post("/sdk/vimService")
            .header("cookie", client.cookie.clone().unwrap())
            .header("accept-encoding", encoding);
        let request = request.body(full_body(body)).unwrap();
        let vcenter = lab.vcenter.clone();
        async move {
            let response = vcenter.handle(request).await.unwrap();
            let encoding = response.headers().get("content-encoding").cloned();
            (encoding, response.into_body().collect().await.unwrap().to_bytes())
        }
    };
    let large = encode_request(&call, None);
    let (plain, text) = answer("identity", large.clone()).await;
    assert_eq!(plain, None);
    for accepts in ["gzip", "deflate, gzip;q=0.5", "*"] {
        let (encoding, bytes) = answer(accepts, large.clone()).await;
        assert_eq!(encoding.unwrap(), "gzip");
        assert!(bytes.len() < text.len() / 4 && bytes.starts_with(&[0x1f, 0x8b]), "{accepts}");
    }
    assert_eq!(answer("gzip;q=0, identity", large).await.0, None);
    let small = encode_request(&CurrentTime { this: MoRef::service_instance() }, None);
    assert_eq!(answer("gzip", small).await.0, None, "not worth it");
}

#[tokio::test(start_paused = true)]
async fn calls_and_bytes_are_counted() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    lab.vcenter.reset_counters();
    for _ in 0..3 {
        client.call(CurrentTime { this: MoRef::service_instance() }).await.unwrap();
    }
    client.call(PowerOnVmTask { this: MoRef::vm("vm-999"), host: None }).await.unwrap_err();
    let counters = lab.vcenter.counters();
    assert_eq!((counters.calls_of("CurrentTime"), counters.total_calls()), (3, 4));
    assert_eq!(counters.faults.get("ManagedObjectNotFound"), Some(&1));
    assert!(counters.bytes_in > 800 && counters.bytes_out > 800, "{counters:?}");
    assert_eq!(counters.open_sessions, 1, "what is open is not forgotten");
}
