//! Worker models: the enabled V1 models, read again and again, and models as code, read when a V1 job names one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use roost_cds::v2::AsCodePath;
use roost_cds::{CallError, v1, v2};
use roost_supervise::Tasks;

use super::context::Context;
use super::scheduler::lock;
use crate::time::is_recent;

/// Half as often as CDS's own hatchery: models change by the day, and this is most of what a hatchery at rest asks for.
const INTERVAL: Duration = Duration::from_secs(20);
/// A model as code that was read is believed for this long.
const AS_CODE_FOR: Duration = Duration::from_mins(1);
const MOST_AS_CODE: usize = 1_024;

#[derive(Debug, Default)]
pub(crate) struct Models {
    v1: Mutex<Option<Arc<Vec<v1::Model>>>>,
    as_code: Mutex<BTreeMap<String, (Timestamp, Arc<v2::Model>)>>,
}

impl Models {
    /// `None` before they were read for the first time.
    pub(crate) fn v1(&self) -> Option<Arc<Vec<v1::Model>>> {
        lock(&self.v1).clone()
    }
}

impl Context {
    /// Reads the enabled V1 models. Nothing happens for a hatchery without V1.
    pub(crate) async fn read_models(&self) -> Result<(), CallError> {
        let Some(client) = self.cds.v1().filter(|_| self.config.models_v1) else {
            return Ok(());
        };
        let models = client.enabled_models().await?;
        let mut known = lock(&self.models.v1);
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

    pub(super) async fn follow_models(&self, tasks: &Tasks) {
        loop {
            tasks.beat("worker-models", self.patience() + INTERVAL);
            if let Err(error) = self.read_models().await {
                tracing::warn!("reading the V1 worker models failed: {error}");
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// A model as code, for a V1 job. `None` without a V2 token.
    pub(crate) async fn model_as_code(
        &self,
        path: &AsCodePath,
    ) -> Result<Option<Arc<v2::Model>>, CallError> {
        let Some(client) = self.cds.v2() else { return Ok(None) };
        let (key, now) = (path.to_string(), self.clock.now());
        if let Some((at, model)) = lock(&self.models.as_code).get(&key)
            && is_recent(*at, now, AS_CODE_FOR)
        {
            return Ok(Some(Arc::clone(model)));
        }
        let model = Arc::new(client.worker_model(path).await?);
        let mut known = lock(&self.models.as_code);
        if known.len() >= MOST_AS_CODE {
            known.retain(|_, (at, _)| is_recent(*at, now, AS_CODE_FOR));
        }
        known.insert(key, (now, Arc::clone(&model)));
        Ok(Some(model))
    }
}
