use std::sync::Arc;

use roost_clock::SystemClock;
use roost_vim::{Client, Credentials, HttpTransport, Settings, TlsTrust};

use super::{Control, Process, Site, roost};

/// `roost sim vcenter` over TLS, with guests that are processes and the control endpoint.
#[derive(Debug)]
pub(crate) struct VcenterSim {
    pub(crate) process: Process,
    pub(crate) control: Control,
}

impl VcenterSim {
    pub(crate) fn start(site: &Site, args: &[&str]) -> Self {
        let mut command = roost(&["sim", "vcenter", "--listen", "127.0.0.1:0", "--seed", "7"]);
        command.args(["--tls", "--guests", "exec", "--control"]).args(args);
        let process = Process::start(command, &site.file("sim-vcenter.log"), "Ctrl-C");
        let control = Control::new(process.line("Control endpoint: "));
        Self { process, control }
    }

    /// `127.0.0.1:8989`.
    pub(crate) fn endpoint(&self) -> &str {
        let url = self.process.word("https://127").strip_prefix("https://").unwrap();
        url.strip_suffix("/sdk").unwrap()
    }

    pub(crate) fn thumbprint(&self) -> &str {
        self.process.line("# SHA-256 thumbprint ")
    }

    /// What a hatchery needs to use it.
    pub(crate) fn toml(&self) -> String {
        format!(
            "user = \"roost\"\npassword = \"demo\"\nendpoint = \"{}\"\nthumbprint = \"{}\"\n\
             datacenterString = \"DC0\"\nnetworkString = \"DC0_DVPG0\"\n",
            self.endpoint(),
            self.thumbprint(),
        )
    }

    pub(crate) async fn client(&self) -> Client {
        let trust = TlsTrust::Thumbprint(self.thumbprint().parse().unwrap());
        let transport = Arc::new(HttpTransport::new(&trust).unwrap());
        let settings = Settings::new(self.endpoint(), Credentials::new("test", "test")).unwrap();
        Client::connect(settings, transport, Arc::new(SystemClock)).await.unwrap()
    }
}
