use std::sync::Arc;

use http::Request;
use roost_clock::{Clock, SimClock};
use roost_fleet::{Fleet, FleetRules, FleetSettings, OpenError, Recognise, VmId};
use roost_vcenter_sim::{Options, TemplateOptions, Vcenter};
use roost_vim::wire::MoRef;
use roost_vim::{Body, Credentials, SendFuture, Settings, Transport};

/// A vCenter with one cluster and one template, on simulated time.
#[derive(Debug, Clone)]
pub struct Site {
    pub vcenter: Vcenter,
    pub clock: Arc<SimClock>,
}

/// The way into an embedded vCenter without a socket.
#[derive(Debug, Clone)]
pub struct InProcess(pub Vcenter);

impl Transport for InProcess {
    fn send(&self, request: Request<Body>) -> SendFuture {
        let vcenter = self.0.clone();
        Box::pin(async move { vcenter.handle(request).await })
    }
}

impl Site {
    pub const TEMPLATE: &'static str = "debian12";

    /// With so many VMs of other people in it.
    pub fn new(foreign_vms: usize) -> Self {
        Self::seeded(foreign_vms, 0)
    }

    /// All chance of the vCenter comes from the seed.
    pub fn seeded(foreign_vms: usize, seed: u64) -> Self {
        let options = Options {
            seed,
            clusters: 1,
            standalone_hosts: 0,
            vms: foreign_vms,
            templates: vec![TemplateOptions::new(Self::TEMPLATE)],
            ..Options::default()
        };
        let clock = Arc::new(SimClock::new());
        Self { vcenter: Vcenter::start(options, clock.clone()), clock }
    }

    /// One login for these doors.
    pub async fn open(&self, doors: Vec<Arc<dyn Recognise>>) -> Result<Fleet, OpenError> {
        self.open_with(doors, |_| ()).await
    }

    /// The same with other settings of the client.
    pub async fn open_with(
        &self,
        doors: Vec<Arc<dyn Recognise>>,
        change: impl FnOnce(&mut Settings),
    ) -> Result<Fleet, OpenError> {
        // The embedded vCenter takes any.
        let login = Credentials::new("roost", "secret");
        let clock: Arc<dyn Clock> = self.clock.clone();
        let mut vcenter = Settings::new("vcenter.test", login)
            .unwrap_or_else(|error| unreachable!("a plain name is an address: {error}"));
        change(&mut vcenter);
        Fleet::open(FleetSettings {
            vcenter,
            transport: Arc::new(InProcess(self.vcenter.clone())),
            clock,
            doors,
            phases: None,
            rules: FleetRules::default(),
        })
        .await
    }

    /// An object by its inventory path.
    ///
    /// # Panics
    /// If there is none: a test's own mistake.
    pub fn find(&self, path: &str) -> MoRef {
        self.vcenter.find(path).unwrap_or_else(|| panic!("there is no {path}"))
    }

    pub fn template(&self) -> VmId {
        VmId::from(&self.find(&format!("/DC0/vm/{}", Self::TEMPLATE)))
    }
}
