//! A person asks for the console of a VM.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use kube::api::PostParams;
use roost_clock::Clock as _;
use roost_vm_operator::api::vm::PowerState;
use roost_vm_operator::api::{
    VirtualMachineWebConsoleRequest, VirtualMachineWebConsoleRequestSpec,
};
use tokio::time::sleep;

use crate::lab::{Lab, NAMESPACE, minutes, secs, vm};

const KEY: &str = "\
-----BEGIN PUBLIC KEY-----\n\
MIIBCgKCAQEAxbcWH0vtR6xQmpfr3exgblaQ2Hutx+J9ec7mydeSLmr4CCts3M0B\n\
VIJwM0dRtDxEj3oayMjg63PmeuzDpSZF7XfNlWwFD0v5/appNuyCOE/d+7kjUsBg\n\
pCpkbHm+aCfx9jmDMlvBLIHkz9++f4oa8WtJlm0wiTvuKXql+mwy1nwxMEqZwenJ\n\
B5jZxiTdIFDzi6LXvluMIr48fuESilNDOPnKkxEaOn0qKpX/amW7gZoD7gMVoKBO\n\
6VhCpriRXgXYnQLdZHCEaJyC3eyn8W+5I2YF1ytlfPzFk5le94eT4VYegw4CBB47\n\
ZHikTgbG5BRFSm+21ZjGurvOkU1S2c/jxQIDAQAB\n\
-----END PUBLIC KEY-----\n";

async fn request(lab: &Lab, name: &str) {
    let spec = VirtualMachineWebConsoleRequestSpec { name: "web-0".into(), public_key: KEY.into() };
    let mut request = VirtualMachineWebConsoleRequest::new(name, spec);
    request.metadata.namespace = Some(NAMESPACE.into());
    lab.api().create(&PostParams::default(), &request).await.unwrap();
}

async fn answered(lab: &Lab, name: &str) -> VirtualMachineWebConsoleRequest {
    for _ in 0..600 {
        let request: VirtualMachineWebConsoleRequest = lab.api().get(name).await.unwrap();
        if request.status.as_ref().is_some_and(|status| !status.response.is_empty()) {
            return request;
        }
        sleep(secs(1) / 5).await;
    }
    panic!("{name} has no answer");
}

/// Asks for the console of `web-0`, which is on.
pub(crate) async fn ask(lab: &Lab, name: &str) -> VirtualMachineWebConsoleRequest {
    request(lab, name).await;
    answered(lab, name).await
}

#[tokio::test(start_paused = true)]
async fn a_console_request_gets_a_ticket_for_its_key_and_goes_when_it_expires() {
    let lab = Lab::new().await;
    let mut off = vm("web-0");
    off.spec.power_state = Some(PowerState::PoweredOff);
    lab.apply(&off).await;
    request(&lab, "early").await;
    sleep(minutes(5)).await;
    let api = lab.api::<VirtualMachineWebConsoleRequest>();
    assert_eq!(api.get("early").await.unwrap().status, None, "a VM that is off has no console");
    assert_eq!(lab.site.vcenter.counters().calls_of("AcquireTicket"), 0);

    lab.patch("web-0", serde_json::json!({ "spec": { "powerState": "PoweredOn" } })).await;
    let made = lab.until_on("web-0").await;
    let early = answered(&lab, "early").await;
    let status = early.status.as_ref().unwrap();
    assert_eq!(STANDARD.decode(&status.response).unwrap().len(), 256, "as long as the key");
    assert!(!status.proxy_addr.is_empty());
    let label = "vmoperator.vmware.com/webconsolerequest-uuid";
    assert_eq!(early.labels().get(label), early.uid().as_ref());
    assert_eq!(early.owner_references()[0].uid, made.uid().unwrap());
    let Some(Time(expiry)) = status.expiry_time else { panic!("{status:?}") };
    let left = expiry.duration_since(lab.site.clock.now()).as_secs();
    assert!((1..=120).contains(&left), "{left}");
    assert_eq!(lab.site.vcenter.counters().calls_of("AcquireTicket"), 1, "one ticket each");
    sleep(secs(125)).await;
    assert!(api.get_opt("early").await.unwrap().is_none());

    let (one, other) = (ask(&lab, "one").await, ask(&lab, "other").await);
    assert_ne!(one.status.unwrap().response, other.status.unwrap().response);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_none_is_not_tried_again_and_again() {
    let lab = Lab::new().await;
    lab.apply(&vm("web-0")).await;
    lab.until_on("web-0").await;
    let spec = VirtualMachineWebConsoleRequestSpec { name: "web-0".into(), public_key: "x".into() };
    let mut request = VirtualMachineWebConsoleRequest::new("bad", spec);
    request.metadata.namespace = Some(NAMESPACE.into());
    lab.api().create(&PostParams::default(), &request).await.unwrap();
    sleep(minutes(10)).await;
    assert_eq!(lab.site.vcenter.counters().calls_of("AcquireTicket"), 0);
}
