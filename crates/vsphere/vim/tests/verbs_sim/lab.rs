use std::sync::Arc;
use std::time::Duration;

use http::Request;
use roost_clock::SimClock;
use roost_vcenter_sim::{Action, Options, Rule, RuleId, TemplateOptions, Vcenter};
use roost_vim::wire::MoRef;
use roost_vim::{
    Body, Client, CloneVm, Credentials, Finder, SendFuture, Settings, TemplateFacts, Transport,
};
use tokio::time::Instant;

/// The door in process.
#[derive(Debug)]
struct InProcess(Vcenter);

impl Transport for InProcess {
    fn send(&self, request: Request<Body>) -> SendFuture {
        let vcenter = self.0.clone();
        Box::pin(async move { vcenter.handle(request).await })
    }
}

/// A client that is connected to a simulated vCenter.
pub(crate) struct Lab {
    pub(crate) vcenter: Vcenter,
    pub(crate) client: Client,
    pub(crate) finder: Finder,
}

impl Lab {
    /// With vcsim's inventory, all powered off, and the template `debian12`.
    pub(crate) async fn start() -> Self {
        Self::with(Options::default()).await
    }

    pub(crate) async fn with(options: Options) -> Self {
        Self::with_templates(options, vec![TemplateOptions::new("debian12")]).await
    }

    pub(crate) async fn with_templates(options: Options, templates: Vec<TemplateOptions>) -> Self {
        let options = Options { autostart: false, templates, ..options };
        let vcenter = Vcenter::start(options, Arc::new(SimClock::new()));
        let client = connect(&vcenter).await;
        let finder = client.finder("").await.unwrap();
        Self { vcenter, client, finder }
    }

    pub(crate) fn rule(&self, rule: Rule) -> RuleId {
        self.vcenter.faults().add(rule)
    }

    /// The next call of this method is carried out, and its answer lost.
    pub(crate) fn lose_answer_of(&self, method: &str) -> RuleId {
        self.rule(Rule::new(method, Action::CutAfter).once())
    }

    pub(crate) fn fired(&self, rule: RuleId) -> u64 {
        self.vcenter.faults().fired(rule)
    }

    pub(crate) fn calls(&self, method: &str) -> u64 {
        self.vcenter.counters().calls.get(method).copied().unwrap_or_default()
    }

    pub(crate) async fn vm(&self, name: &str) -> MoRef {
        self.finder.vm(name).await.unwrap().moref
    }

    pub(crate) async fn template(&self) -> TemplateFacts {
        let template = self.finder.template("debian12").await.unwrap();
        self.client.template_facts(&template.moref).await.unwrap()
    }

    /// A clone of the template in the datacenter's VM folder and the cluster's pool.
    pub(crate) async fn clone_request(&self, name: &str) -> CloneVm {
        let folder = self.finder.vm_folder("").await.unwrap().moref;
        let pool = self.finder.resource_pool("DC0_C0").await.unwrap().moref;
        CloneVm {
            annotation: Some(format!("request of {name}")),
            ..CloneVm::new(folder, name, pool)
        }
    }

    pub(crate) async fn power_state(&self, vm: &MoRef) -> String {
        let read = self.client.properties(vm, &["runtime.powerState"]).await.unwrap();
        read.str("runtime.powerState").unwrap().to_owned()
    }

    pub(crate) async fn annotation(&self, vm: &MoRef) -> String {
        let read = self.client.properties(vm, &["config.annotation"]).await.unwrap();
        read.str("config.annotation").unwrap_or_default().to_owned()
    }
}

pub(crate) async fn connect(vcenter: &Vcenter) -> Client {
    connect_through(Arc::new(InProcess(vcenter.clone()))).await
}

pub(crate) async fn connect_through(transport: Arc<dyn Transport>) -> Client {
    let credentials = Credentials::new("roost", "secret");
    let settings = Settings::new("http://vcenter.test", credentials).unwrap();
    Client::connect(settings, transport, Arc::new(SimClock::new())).await.unwrap()
}

pub(crate) fn within(seconds: u64) -> Instant {
    Instant::now() + Duration::from_secs(seconds)
}
