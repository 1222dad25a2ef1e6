//! Transfers that a vCenter sends to the host of the VM instead of taking them itself.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, header};
use http_body_util::BodyExt;
use roost_vcenter_sim::{Vcenter, full_body};
use roost_vim::{
    Body, CloneVm, GuestCredentials, GuestFileOptions, SendFuture, Thumbprint, Transport,
};

use crate::lab::{Lab, connect_through, within};

const NETWORK: &str = "<propSet><name>config.virtualNicManagerInfo.netConfig</name>";

/// What a host with TLS has besides.
fn thumbprint_property() -> String {
    let name = "summary.config.sslThumbprint";
    format!(
        r#"<propSet><name>{name}</name><val xsi:type="xsd:string">{}</val></propSet>"#,
        thumbprint()
    )
}

fn thumbprint() -> Thumbprint {
    Thumbprint::of(b"a certificate")
}

/// Lets the server name its host in transfer addresses, and stands at that host's door as well.
#[derive(Debug)]
struct NamesHost {
    vcenter: Vcenter,
    trusted: Mutex<Vec<String>>,
    /// The host and whether a cookie came, of each transfer.
    transfers: Arc<Mutex<Vec<(String, bool)>>>,
}

impl Transport for NamesHost {
    fn send(&self, request: Request<Body>) -> SendFuture {
        let (vcenter, transfers) = (self.vcenter.clone(), Arc::clone(&self.transfers));
        Box::pin(async move {
            let host = request.uri().host().unwrap_or_default().to_owned();
            if request.uri().path().starts_with("/guestFile") {
                transfers
                    .lock()
                    .unwrap()
                    .push((host, request.headers().contains_key(header::COOKIE)));
                return vcenter.handle(request).await;
            }
            let (parts, body) = vcenter.handle(request).await?.into_parts();
            let text = String::from_utf8_lossy(&body.collect().await?.to_bytes())
                .replace("://*/", "://esx1.test/");
            let text = text.replacen(NETWORK, &format!("{}{NETWORK}", thumbprint_property()), 1);
            Ok(http::Response::from_parts(parts, full_body(text)))
        })
    }

    fn trust(&self, host: &str, thumbprint: Thumbprint) {
        self.trusted.lock().unwrap().push(format!("{host} {thumbprint}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_transfer_to_another_host_is_pinned_to_it_and_takes_no_cookie_there() {
    let lab = Lab::start().await;
    let request = CloneVm { power_on: true, ..lab.clone_request("worker-1").await };
    let vm = lab.client.clone_vm(&lab.template().await, &request).await.unwrap();
    lab.client.wait_for_guest_operations(&vm, within(180)).await.unwrap();
    let transport = Arc::new(NamesHost {
        vcenter: lab.vcenter.clone(),
        trusted: Mutex::default(),
        transfers: Arc::default(),
    });
    let client = connect_through(Arc::clone(&transport) as Arc<dyn Transport>).await;
    let managers = client.guest_operations().await.unwrap();
    let guest =
        client.guest(&managers, &vm, GuestCredentials::new("root", "pw")).ready_by(within(60));
    guest.upload(&Bytes::from_static(b"x"), "/srv/x", GuestFileOptions::default()).await.unwrap();
    assert_eq!(guest.download("/srv/x").await.unwrap().bytes(10).await.unwrap(), "x");
    let transfers = transport.transfers.lock().unwrap().clone();
    assert_eq!(transfers.len(), 2);
    assert!(
        transfers
            .iter()
            .all(|(host, cookie)| !host.is_empty() && host != "vcenter.test" && !cookie),
        "{transfers:?}"
    );
    let trusted = transport.trusted.lock().unwrap().clone();
    let pin = format!("{} {}", transfers[0].0, thumbprint());
    assert_eq!(trusted, [pin.clone(), pin]);
}
