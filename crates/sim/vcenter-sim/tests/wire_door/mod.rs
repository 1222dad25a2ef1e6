//! A simulated vCenter on a free port, in real time, for clients that we did not write.
#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used, reason = "it is part of tests")]

use std::sync::Arc;
use std::time::Duration;

use roost_clock::SystemClock;
use roost_vcenter_sim::{
    Credentials, Options, Server, TemplateOptions, Timings, TlsIdentity, Vcenter,
};
use tokio::runtime::{Builder, Runtime};

pub(crate) const USER: &str = "roost@vsphere.local";
/// Characters that a URL and XML both escape.
pub(crate) const PASSWORD: &str = "p@ss/<&>";

/// Far more than anything takes here, for machines that have much else to do.
const LIMIT: Duration = Duration::from_secs(30);

/// Serves until it is dropped. The clients block, so it has a thread of its own.
#[derive(Debug)]
pub(crate) struct WireDoor {
    pub(crate) vcenter: Vcenter,
    /// Of the certificate, if there is one.
    pub(crate) thumbprint: Option<String>,
    endpoint: String,
    runtime: Runtime,
}

impl WireDoor {
    pub(crate) fn open(options: Options) -> Self {
        Self::serve(options, None)
    }

    pub(crate) fn open_tls(options: Options) -> Self {
        Self::serve(options, Some(TlsIdentity::self_signed("vCenter simulator", &[]).unwrap()))
    }

    fn serve(options: Options, tls: Option<TlsIdentity>) -> Self {
        let credentials = Some(Credentials { user: USER.into(), password: PASSWORD.into() });
        let options = Options { credentials, ..options };
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (vcenter, server) = runtime.block_on(async {
            let vcenter = Vcenter::start(options, Arc::new(SystemClock));
            let server =
                Server::bind(vcenter.clone(), "127.0.0.1:0".parse().unwrap(), tls).await.unwrap();
            (vcenter, server)
        });
        let (endpoint, thumbprint) = (server.url(), server.thumbprint().map(str::to_owned));
        runtime.spawn(server.run_until(std::future::pending::<()>()));
        Self { vcenter, thumbprint, endpoint, runtime }
    }

    /// Waits for a state that the server comes to without further calls.
    pub(crate) fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let waiting = async {
            while !is_so() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let in_time = self.runtime.block_on(async { tokio::time::timeout(LIMIT, waiting).await });
        assert!(in_time.is_ok(), "{what}: not within {LIMIT:?}");
    }

    /// How often a method has been called.
    pub(crate) fn calls(&self, method: &str) -> u64 {
        self.vcenter.counters().calls.get(method).copied().unwrap_or_default()
    }

    /// With the login of the one user.
    pub(crate) fn url(&self) -> String {
        self.url_for("roost%40vsphere.local", "p%40ss%2F%3C%26%3E")
    }

    /// Host and port.
    pub(crate) fn authority(&self) -> &str {
        self.endpoint.split('/').nth(2).unwrap()
    }

    /// User and password are percent-encoded.
    pub(crate) fn url_for(&self, user: &str, password: &str) -> String {
        self.endpoint.replace("://", &format!("://{user}:{password}@"))
    }
}

/// The default inventory with a template, where nothing takes long.
pub(crate) fn quick() -> Options {
    Options {
        timings: Timings::quick(),
        templates: vec![TemplateOptions::new("debian12")],
        ..Options::default()
    }
}

/// The same where nothing takes any time.
pub(crate) fn instant() -> Options {
    Options { timings: Timings::instant(), ..quick() }
}
