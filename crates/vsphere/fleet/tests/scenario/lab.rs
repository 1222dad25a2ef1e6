use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use roost_clock::{Clock, SimClock};
use roost_fleet::{Claim, DoorName, Marks, Mirror, Recognise, VmId};
use roost_vcenter_sim::{Options, TemplateOptions, Vcenter};
use roost_vim::wire::MoRef;
use roost_vim::{
    Body, Client, CloneVm, Credentials, DiskCopy, SendFuture, Settings, TemplateFacts, Transport,
};
use tokio::task::JoinHandle;
use tokio::time::sleep;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_mins(1);

#[derive(Debug)]
struct Door(Vcenter);

impl Transport for Door {
    fn send(&self, request: Request<Body>) -> SendFuture {
        let vcenter = self.0.clone();
        Box::pin(async move { vcenter.handle(request).await })
    }
}

pub(crate) const LAB: DoorName = DoorName::new("lab");

/// An annotation is `owner` or `owner/request`.
#[derive(Debug)]
pub(crate) struct Slashes;

impl Recognise for Slashes {
    fn recognise(&self, vm: &Marks<'_>) -> Option<Claim> {
        let (owner, request) = vm.annotation?.split_once('/').unwrap_or((vm.annotation?, ""));
        let request = (!request.is_empty()).then(|| request.into());
        (!owner.is_empty()).then(|| Claim { request, ..Claim::of(LAB, owner) })
    }
}

/// A mirror that follows a simulated server.
pub(crate) struct Lab {
    pub(crate) vcenter: Vcenter,
    pub(crate) client: Client,
    pub(crate) clock: Arc<SimClock>,
    pub(crate) mirror: Mirror,
    pub(crate) following: JoinHandle<()>,
}

impl Lab {
    pub(crate) async fn new(vms: usize) -> Self {
        let options = Options {
            clusters: 1,
            standalone_hosts: 0,
            vms,
            templates: vec![TemplateOptions::new("debian12")],
            ..Options::default()
        };
        let clock = Arc::new(SimClock::new());
        let vcenter = Vcenter::start(options, clock.clone());
        let settings = Settings::new("vc.test", Credentials::new("roost", "secret")).unwrap();
        let door = Arc::new(Door(vcenter.clone()));
        let client = Client::connect(settings, door, clock.clone()).await.unwrap();
        let mirror = Mirror::new(vec![Arc::new(Slashes)], clock.clone());
        let mut lab = Self { vcenter, client, clock, mirror, following: tokio::spawn(async {}) };
        lab.follow();
        assert!(lab.mirror.wait_complete(MINUTE).await);
        lab
    }

    pub(crate) fn find(&self, path: &str) -> MoRef {
        self.vcenter.find(path).unwrap_or_else(|| panic!("there is no {path}"))
    }

    pub(crate) fn follow(&mut self) {
        let (mirror, observer, datacenter) =
            (self.mirror.clone(), self.client.observer(), self.find("/DC0"));
        self.following = tokio::spawn(async move {
            mirror.follow(&observer, &[datacenter]).await.unwrap();
        });
    }

    pub(crate) fn names(&self) -> BTreeSet<String> {
        self.mirror.snapshot().vms().map(|vm| vm.name.to_string()).collect()
    }

    pub(crate) fn true_names(&self) -> BTreeSet<String> {
        self.vcenter.vm_names().into_iter().collect()
    }

    pub(crate) fn id(&self, name: &str) -> VmId {
        VmId::from(&self.vcenter.vm(name).unwrap_or_else(|| panic!("there is no {name}")).moref)
    }

    pub(crate) async fn template(&self) -> TemplateFacts {
        self.client.template_facts(&self.id("debian12").moref()).await.unwrap()
    }

    pub(crate) fn clone_of(&self, name: &str, annotation: &str) -> CloneVm {
        let mut request =
            CloneVm::new(self.find("/DC0/vm"), name, self.find("/DC0/host/DC0_C0/Resources"));
        request.annotation = Some(annotation.into());
        request.disks = DiskCopy::NewChild;
        request
    }

    /// Fails the test when a VM cannot be seen at any moment from here on, or one appears twice by name.
    pub(crate) fn nobody_may_leave(&self) -> JoinHandle<()> {
        let (mirror, wanted) = (self.mirror.clone(), self.mirror.snapshot().len());
        let mut changes = mirror.changes();
        tokio::spawn(async move {
            while changes.changed().await.is_ok() {
                let seen = mirror.snapshot().len();
                assert_eq!(seen, wanted, "a VM left although it is there");
            }
        })
    }

    pub(crate) fn age(&self) -> Duration {
        self.mirror.freshness().age(self.clock.now()).unwrap()
    }
}

pub(crate) async fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..12_000 {
        if holds() {
            return;
        }
        sleep(Duration::from_millis(100)).await;
    }
    panic!("twenty minutes have passed without this: {what}");
}
