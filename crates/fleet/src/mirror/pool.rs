use std::sync::Arc;

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
