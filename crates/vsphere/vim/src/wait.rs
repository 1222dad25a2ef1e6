//! Waiting for one object to come into a state, on the property stream.

use roost_vim_wire::{Fault, MoRef};
use tokio::time::Instant;

use crate::{CallError, Change, Faulted, Observer, Properties, Remedy, WatchSpec};

/// Why a wait ended without what it waited for.
#[derive(Debug, thiserror::Error)]
pub enum WaitError {
    #[error("{object} did not come to it in time; last seen: {last_seen}")]
    Deadline { object: MoRef, last_seen: String },
    #[error("{object} no longer exists")]
    Gone { object: MoRef },
    #[error("watching {object}")]
    Call { object: MoRef, source: CallError },
}

impl WaitError {
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Deadline { .. } => Remedy::Wait,
            Self::Gone { .. } => Remedy::Gone,
            Self::Call { source, .. } => source.remedy(),
        }
    }
}

impl Faulted for WaitError {
    fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Call { source, .. } => source.fault(),
            Self::Deadline { .. } | Self::Gone { .. } => None,
        }
    }
}

/// The watched paths with their last values, as far as they are short.
fn told(paths: &[&str], seen: &Properties) -> String {
    let told = paths.iter().map(|path| match seen.get(path) {
        None => format!("{path} unset"),
        Some(value) => match (value.as_str(), value.as_bool(), value.as_i64()) {
            (Some(text), _, _) if text.len() <= 80 => format!("{path} {text:?}"),
            (_, Some(truth), _) => format!("{path} {truth}"),
            (_, _, Some(number)) => format!("{path} {number}"),
            _ => format!("{path} set"),
        },
    });
    told.collect::<Vec<_>>().join(", ")
}

impl Observer {
    /// Watches `paths` of one object until `reached` finds what it looks for in them. The present state counts: a wait for
    /// what is so already ends at once.
    pub async fn wait_for<T>(
        &self,
        object: &MoRef,
        paths: &[&str],
        deadline: Instant,
        mut reached: impl FnMut(&Properties) -> Option<T>,
    ) -> Result<T, WaitError> {
        let mut seen = Properties::default();
        let watch = async {
            let spec = WatchSpec::object(object.clone(), paths);
            let (mut updates, mut is_there) = (self.watch(spec).await?, false);
            while let Some(batch) = updates.next().await {
                for update in batch.updates {
                    match update.change {
                        Change::Enter(properties) => (seen, is_there) = (properties, true),
                        Change::Modify(changes) => {
                            for change in changes {
                                seen.apply(change);
                            }
                        }
                        Change::Leave => return Ok(None),
                    }
                }
                if !is_there {
                    if batch.synced {
                        return Ok(None);
                    }
                    continue;
                }
                if let Some(found) = reached(&seen) {
                    return Ok(Some(found));
                }
            }
            Err(CallError::ShuttingDown)
        };
        let ended = tokio::time::timeout_at(deadline, watch).await;
        let object = object.clone();
        match ended {
            Ok(Ok(Some(found))) => Ok(found),
            Ok(Ok(None)) => Err(WaitError::Gone { object }),
            Ok(Err(error)) if error.is_fault("ManagedObjectNotFound") => {
                Err(WaitError::Gone { object })
            }
            Ok(Err(source)) => Err(WaitError::Call { object, source }),
            Err(_) => Err(WaitError::Deadline { object, last_seen: told(paths, &seen) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use roost_vim_wire::Value;
    use roost_vim_wire::types::DynamicProperty;

    use super::*;

    #[test]
    fn a_missed_deadline_tells_what_was_seen_last() {
        let property = |name: &str, val| DynamicProperty { name: name.into(), val };
        let seen = Properties::new(
            vec![
                property("guest.toolsRunningStatus", Value::string("guestToolsRunning")),
                property("guest.guestOperationsReady", Value::Bool(false)),
            ],
            Vec::new(),
        );
        let paths = ["guest.toolsRunningStatus", "guest.guestOperationsReady", "guest.ipAddress"];
        let error =
            WaitError::Deadline { object: MoRef::vm("vm-7"), last_seen: told(&paths, &seen) };
        assert_eq!(
            error.to_string(),
            "VirtualMachine:vm-7 did not come to it in time; last seen: guest.toolsRunningStatus \"guestToolsRunning\", \
             guest.guestOperationsReady false, guest.ipAddress unset"
        );
    }
}
