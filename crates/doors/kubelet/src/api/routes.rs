//! Paths, and who answers them.

use std::sync::Arc;

use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use k8s_openapi::api::core::v1::Pod;
use prometheus_client::encoding::text::encode;
use roost_controller::Key;
use roost_microvm::VmRecord;
use serde_json::json;
use tokio::sync::mpsc;

use super::access::{Deed, User};
use super::answer::{self, Answer, Refusal};
use super::stream::Work;
use super::{KubeletApi, Shared};
use crate::pods::Tracked;
use crate::usage::{resource_metrics, summary};

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What metrics-server reads.
const PROMETHEUS: &str = "text/plain; version=0.0.4";

impl KubeletApi {
    /// `upgraded` takes what goes on once the connection is no HTTP any more.
    pub(super) async fn answer(
        self,
        user: Option<&User>,
        request: Request<Incoming>,
        upgraded: &mpsc::Sender<Work>,
    ) -> Answer {
        let deed = Deed::of(request.method(), request.uri().path());
        if let Err(refusal) = self.shared.gate.check(user, request.headers(), deed).await {
            return refusal.into();
        }
        let path = request.uri().path().to_owned();
        tracing::debug!(method = %request.method(), path, "a request");
        let answered = self.route(&path, request, upgraded).await;
        answered.unwrap_or_else(|refusal| {
            tracing::debug!(path, "refused: {refusal}");
            refusal.into()
        })
    }

    async fn route(
        self,
        path: &str,
        request: Request<Incoming>,
        upgraded: &mpsc::Sender<Work>,
    ) -> Result<Answer, Refusal> {
        let api = &self.shared;
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let is_get = matches!(*request.method(), Method::GET | Method::HEAD);
        let streams = is_get || request.method() == Method::POST;
        match parts.as_slice() {
            ["healthz"] if is_get => Ok(answer::text("ok")),
            ["metrics"] if is_get => api.metrics(),
            ["metrics", "resource"] if is_get => {
                Ok(answer::metrics(PROMETHEUS, resource_metrics(&api.sampler.sample())))
            }
            ["stats", "summary"] if is_get => {
                Ok(answer::json(&summary(&api.node, api.started, &api.sampler.sample())))
            }
            ["pods"] if is_get => Ok(list(api.pods.objects())),
            ["runningpods"] if is_get => Ok(list(api.running())),
            ["containerLogs", namespace, pod, container] if is_get => {
                let target = api.target(namespace, pod, Some(container))?;
                super::logs::answer(api, target, request.uri().query().unwrap_or_default()).await
            }
            ["exec", namespace, pod, container] if streams => {
                let target = api.target(namespace, pod, Some(container))?;
                super::exec::answer(api, target.live()?, request, upgraded)
            }
            ["attach", namespace, pod, container] if streams => {
                let target = api.target(namespace, pod, Some(container))?;
                super::attach::answer(api, target.live()?, request, upgraded)
            }
            ["portForward", namespace, pod] if streams => {
                let target = api.target(namespace, pod, None)?;
                super::port_forward::answer(api, target.live()?, request, upgraded)
            }
            _ => Err(Refusal::missing("404 request not found")),
        }
    }
}

/// The pod that a request names, with what is known of it.
pub(super) struct Target {
    pub(super) key: Key,
    pub(super) pod: Arc<Pod>,
    pub(super) tracked: Tracked,
}

/// One that has a VM.
pub(super) struct Live {
    pub(super) key: Key,
    pub(super) uid: String,
    pub(super) tracked: Tracked,
    pub(super) vm: VmRecord,
}

impl Target {
    fn live(self) -> Result<Live, Refusal> {
        let Self { key, pod, tracked } = self;
        let vm = tracked.vm.clone();
        let vm = vm.ok_or_else(|| Refusal::missing(format!("pod {key} has no live VM")))?;
        Ok(Live { uid: pod.metadata.uid.clone().unwrap_or_default(), key, tracked, vm })
    }
}

impl Shared {
    fn target(
        &self,
        namespace: &str,
        pod: &str,
        container: Option<&str>,
    ) -> Result<Target, Refusal> {
        let key = Key::new(namespace, pod);
        let pod = self.pods.get(&key);
        let pod = pod.ok_or_else(|| Refusal::missing(format!("pod {key} is not on this node")))?;
        let containers = pod.spec.as_ref().map(|spec| spec.containers.as_slice());
        if let Some(wanted) = container
            && !containers.unwrap_or_default().iter().any(|it| it.name == wanted)
        {
            return Err(Refusal::missing(format!("container {wanted} not found in pod {key}")));
        }
        let tracked = self.table.get(&key).unwrap_or_default();
        Ok(Target { key, pod, tracked })
    }

    fn running(&self) -> Vec<Arc<Pod>> {
        let all = self.table.all().into_iter();
        all.filter(|(_, pod)| pod.vm.is_some()).filter_map(|(key, _)| self.pods.get(&key)).collect()
    }

    fn metrics(&self) -> Result<Answer, Refusal> {
        let mut text = String::new();
        encode(&mut text, &self.metrics)
            .map_err(|_| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "metrics"))?;
        Ok(answer::metrics(OPENMETRICS, text))
    }
}

fn list(mut pods: Vec<Arc<Pod>>) -> Answer {
    pods.sort_by_key(|pod| Key::of(pod.as_ref()));
    let items: Vec<&Pod> = pods.iter().map(AsRef::as_ref).collect();
    answer::json(&json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}))
}
