//! Worker models: the enabled V1 models, read again and again, and models as code, read when a V1 job names one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use roost_cds::v2::AsCodePath;
use roost_cds::{CallError, v1, v2};
use roost_supervise::{Chain, Tasks};

use super::about::About;
use super::scheduler::lock;
use super::signals::Signals;
use crate::job::{Job, ModelRequest};
use crate::model::WorkerModel;
use crate::plan::Choice;
use crate::refusal::Refusal;
use crate::time::elapsed;

/// Half as often as CDS's own hatchery: models change by the day, and this is most of what a hatchery at rest asks for.
const INTERVAL: Duration = Duration::from_secs(20);
/// A model as code that was read is believed for this long.
const AS_CODE_FOR: Duration = Duration::from_mins(1);
const MOST_AS_CODE: usize = 1_024;

/// Reads the models, and has what was read last.
#[derive(Debug)]
pub(crate) struct Models {
    about: Arc<About>,
    cds: roost_cds::Client,
    signals: Arc<Signals>,
    v1: Mutex<Option<Arc<Vec<v1::Model>>>>,
    code: Mutex<BTreeMap<String, (Timestamp, Arc<v2::Model>)>>,
}

impl Models {
    pub(super) fn new(about: &Arc<About>, cds: &roost_cds::Client, signals: &Arc<Signals>) -> Self {
        Self {
            about: Arc::clone(about),
            cds: cds.clone(),
            signals: Arc::clone(signals),
            v1: Mutex::default(),
            code: Mutex::default(),
        }
    }

    /// `None` before they were read for the first time.
    pub(crate) fn v1(&self) -> Option<Arc<Vec<v1::Model>>> {
        lock(&self.v1).clone()
    }

    /// Reads the enabled V1 models. Nothing happens for a hatchery without V1.
    pub(crate) async fn read(&self) -> Result<(), CallError> {
        let Some(client) = self.cds.v1().filter(|_| self.about.config.models_v1) else {
            return Ok(());
        };
        let models = client.enabled_models().await?;
        let mut known = lock(&self.v1);
        let is_news = known.as_ref().is_none_or(|before| **before != models);
        *known = Some(Arc::new(models));
        drop(known);
        if is_news {
            self.signals.plan.notify_one();
            self.signals.spares.notify_one();
            self.signals.register.notify_one();
        }
        Ok(())
    }

    pub(super) async fn follow(&self, tasks: &Tasks) {
        loop {
            tasks.beat("worker-models", self.about.patience() + INTERVAL);
            if let Err(error) = self.read().await {
                tracing::warn!("reading the V1 worker models failed: {error}");
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// A model as code, for a V1 job. `None` without a V2 token.
    pub(crate) async fn as_code(
        &self,
        path: &AsCodePath,
    ) -> Result<Option<Arc<v2::Model>>, CallError> {
        let Some(client) = self.cds.v2() else { return Ok(None) };
        let (key, now) = (path.to_string(), self.about.clock.now());
        if let Some((at, model)) = lock(&self.code).get(&key)
            && elapsed(*at, now) < AS_CODE_FOR
        {
            return Ok(Some(Arc::clone(model)));
        }
        let model = Arc::new(client.worker_model(path).await?);
        let mut known = lock(&self.code);
        if known.len() >= MOST_AS_CODE {
            known.retain(|_, (at, _)| elapsed(*at, now) < AS_CODE_FOR);
        }
        known.insert(key, (now, Arc::clone(&model)));
        Ok(Some(model))
    }

    /// Which model serves the job, as far as that does not depend on the moment (2.3, step 5; 3.3, step 5).
    pub(super) async fn choose(&self, job: &Job) -> Result<Choice, CallError> {
        let read = |path: String, model: &v2::Model| match WorkerModel::v2(path, model) {
            Ok(model) => Choice::Fixed(Arc::new(model)),
            Err(refusal) => Choice::Refused(refusal),
        };
        let path = match &job.model {
            ModelRequest::Embedded { path, model } => return Ok(read(path.clone(), model)),
            ModelRequest::Named(_) => return Ok(Choice::AnyV1),
            ModelRequest::AsCode(path) => path,
            ModelRequest::Any => match job.default_model(&self.about.config.default_models) {
                None => return Ok(Choice::AnyV1),
                Some(path) => path,
            },
        };
        let is_default = job.model == ModelRequest::Any;
        match self.as_code(path).await {
            Ok(Some(model)) => Ok(read(path.to_string(), &model)),
            Ok(None) if is_default => Ok(Choice::AnyV1),
            Ok(None) => Ok(Choice::Refused(Refusal::NoV2Token { model: path.to_string() })),
            Err(error) if is_default => {
                tracing::warn!(job = %job.id, "reading the default model {path} failed: {}", Chain(&error));
                Ok(Choice::AnyV1)
            }
            Err(error) => Err(error),
        }
    }
}
