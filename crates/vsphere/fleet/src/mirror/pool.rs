use std::sync::Arc;

use roost_vim::wire::types::ResourcePoolRuntimeInfo;
use roost_vim::{CallError, Observer};

use crate::{PoolId, PoolRoom};

/// A resource pool and what it has left by its own account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    pub id: PoolId,
    pub name: Arc<str>,
    /// The compute resource that it belongs to.
    pub owner: Option<Arc<str>>,
    pub cpu_mhz: PoolAmount,
    pub memory_bytes: PoolAmount,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolAmount {
    pub max: Option<u64>,
    /// What VMs may still reserve.
    pub unreserved: Option<u64>,
}

impl Pool {
    pub(crate) fn unknown(id: PoolId) -> Self {
        Self {
            id,
            name: "".into(),
            owner: None,
            cpu_mhz: PoolAmount::default(),
            memory_bytes: PoolAmount::default(),
        }
    }

    /// `None` while the server has not told both.
    pub fn room(&self) -> Option<PoolRoom> {
        let (cpu_mhz, bytes) = (self.cpu_mhz.unreserved?, self.memory_bytes.unreserved?);
        Some(PoolRoom { cpu_mhz, memory_mb: bytes >> 20 })
    }
}

/// What runs in a pool at this moment. It changes all the time, so it is asked for and not watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolUsage {
    pub cpu_mhz: u64,
    pub memory_bytes: u64,
}

impl PoolUsage {
    /// One call. `None` if the server does not tell.
    pub async fn read(observer: &Observer, pool: &PoolId) -> Result<Option<Self>, CallError> {
        let properties = observer.properties(&pool.moref(), &["runtime"]).await?;
        let amount = |usage: i64| u64::try_from(usage).unwrap_or(0);
        Ok(properties.data::<ResourcePoolRuntimeInfo>("runtime").map(|runtime| Self {
            cpu_mhz: amount(runtime.cpu.overall_usage),
            memory_bytes: amount(runtime.memory.overall_usage),
        }))
    }
}
