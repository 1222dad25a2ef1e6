//! Why a call failed, and what to do about it.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use roost_vim_wire::{Fault, LocalizedMethodFault, WireError};

use crate::remedy::fault_remedy;
use crate::{CallClass, CredentialError, Faulted, Remedy};

/// Why a call has no result. Cheap to clone, because all callers that share a login share its failure.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CallError {
    #[error("{method}: {}", Told(fault))]
    Fault { method: &'static str, fault: Box<LocalizedMethodFault> },
    #[error("{method} was not answered within its {} deadline of {after:?}", class.as_str())]
    Deadline { method: &'static str, class: CallClass, after: Duration },
    #[error("{method}: the connection failed")]
    Connection { method: &'static str, source: Arc<io::Error> },
    #[error("{method}: the answer cannot be read")]
    Answer { method: &'static str, source: WireError },
    #[error("{method}: the server answered with HTTP status {status}")]
    Http { method: &'static str, status: StatusCode },
    #[error(
        "the server refused the login of {user}; nothing is sent for another {retry_in:?} or until the credentials change"
    )]
    LoginPaused { user: String, attempts: u32, retry_in: Duration },
    #[error(
        "the server refused the login of {user} ({attempts} in a row); it is not tried again until the credentials change"
    )]
    BadCredentials { user: String, attempts: u32 },
    #[error("logging in")]
    Credentials { source: Arc<CredentialError> },
    #[error("the server accepted the login but sent no session cookie")]
    NoCookie,
    #[error("the server has no {manager}")]
    NoManager { manager: &'static str },
    /// The task that did the work panicked or its runtime is going down.
    #[error("{method} was abandoned")]
    Abandoned { method: &'static str },
    #[error("the client is shutting down")]
    ShuttingDown,
}

impl CallError {
    pub(crate) fn of_fault(method: &'static str, fault: LocalizedMethodFault) -> Self {
        Self::Fault { method, fault: Box::new(fault) }
    }

    pub(crate) fn connection(method: &'static str, source: io::Error) -> Self {
        Self::Connection { method, source: Arc::new(source) }
    }

    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Fault { fault, .. } => fault_remedy(&fault.fault),
            Self::Deadline { .. } | Self::Connection { .. } | Self::Abandoned { .. } => {
                Remedy::Retry
            }
            Self::Answer { source, .. } => match source {
                // Cut short on its way; anything else will come back the same.
                WireError::Incomplete => Remedy::Retry,
                WireError::Malformed { .. }
                | WireError::Unexpected { .. }
                | WireError::TooLarge { .. } => Remedy::GiveUp,
            },
            Self::Http { status, .. } => match status.as_u16() {
                401 | 403 => Remedy::Relogin,
                404 | 410 => Remedy::Gone,
                429 | 503 => Remedy::Wait,
                408 | 500 | 502 | 504 => Remedy::Retry,
                _ => Remedy::GiveUp,
            },
            Self::LoginPaused { .. } | Self::Credentials { .. } => Remedy::Wait,
            Self::BadCredentials { .. }
            | Self::NoCookie
            | Self::NoManager { .. }
            | Self::ShuttingDown => Remedy::GiveUp,
        }
    }

    /// Whether the server may have done what it was asked although no answer says so. Before repeating a change, look.
    pub fn outcome_unknown(&self) -> bool {
        match self {
            Self::Deadline { .. } | Self::Answer { .. } | Self::Abandoned { .. } => true,
            Self::Connection { source, .. } => source.kind() != io::ErrorKind::ConnectionRefused,
            Self::Http { status, .. } => matches!(status.as_u16(), 408 | 500 | 502 | 504),
            Self::Fault { .. }
            | Self::LoginPaused { .. }
            | Self::BadCredentials { .. }
            | Self::Credentials { .. }
            | Self::NoCookie
            | Self::NoManager { .. }
            | Self::ShuttingDown => false,
        }
    }

    /// Whether this is one of the shapes in which a server says that the session is gone.
    pub(crate) fn is_session_lost(&self) -> bool {
        match self {
            Self::Fault { fault, .. } => fault.fault.is("NotAuthenticated"),
            Self::Http { status, .. } => matches!(status.as_u16(), 401 | 403),
            _ => false,
        }
    }
}

impl Faulted for CallError {
    fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Fault { fault, .. } => Some(&fault.fault),
            _ => None,
        }
    }
}

/// A fault in one line: its class, the server's words, and what vCenter hides in `faultMessage`.
pub(crate) struct Told<'a>(pub(crate) &'a LocalizedMethodFault);

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.fault.class)?;
        let words = self.0.localized_message.as_deref().into_iter().chain(self.0.fault.messages());
        for (index, text) in words.map(str::trim).filter(|text| !text.is_empty()).enumerate() {
            write!(f, "{}{text}", if index == 0 { ": " } else { "; " })?;
        }
        for field in &self.0.fault.rest {
            if !field.text.is_empty() {
                write!(f, " [{} {}]", field.name, field.text)?;
            }
        }
        if let Some(cause) = &self.0.fault.fault_cause {
            write!(f, ", because {}", Told(cause))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use roost_vim_wire::{MoRef, MoType};

    use super::*;

    #[test]
    fn a_fault_is_told_with_its_nouns_and_causes() {
        let cause = LocalizedMethodFault::new(Fault::of("HostNotReachable"), "");
        let mut fault = Fault::of("NoPermission")
            .with("object", &MoRef::new(MoType::Folder, "group-d1"))
            .with("privilegeId", &"VirtualMachine.Inventory.Create".to_owned());
        fault.fault_cause = Some(Box::new(cause));
        let error = CallError::of_fault(
            "CloneVM_Task",
            LocalizedMethodFault::new(fault, "Permission was denied."),
        );
        assert_eq!(
            error.to_string(),
            "CloneVM_Task: NoPermission: Permission was denied. [object group-d1] \
             [privilegeId VirtualMachine.Inventory.Create], because HostNotReachable"
        );
    }

    #[test]
    fn every_error_without_a_fault_has_its_remedy() {
        let http =
            |status| CallError::Http { method: "m", status: StatusCode::from_u16(status).unwrap() };
        let answer = |source| CallError::Answer { method: "m", source };
        for (case, error, wanted, unknown) in [
            (
                "deadline",
                CallError::Deadline { method: "m", class: CallClass::Read, after: Duration::ZERO },
                Remedy::Retry,
                true,
            ),
            (
                "cut",
                CallError::connection("m", io::ErrorKind::ConnectionReset.into()),
                Remedy::Retry,
                true,
            ),
            (
                "refused",
                CallError::connection("m", io::ErrorKind::ConnectionRefused.into()),
                Remedy::Retry,
                false,
            ),
            ("half an answer", answer(WireError::Incomplete), Remedy::Retry, true),
            ("a huge answer", answer(WireError::TooLarge { limit: 1 }), Remedy::GiveUp, true),
            ("401", http(401), Remedy::Relogin, false),
            ("403", http(403), Remedy::Relogin, false),
            ("404", http(404), Remedy::Gone, false),
            ("405", http(405), Remedy::GiveUp, false),
            ("500 without a fault", http(500), Remedy::Retry, true),
            ("502", http(502), Remedy::Retry, true),
            ("503", http(503), Remedy::Wait, false),
            (
                "pause",
                CallError::LoginPaused { user: "u".into(), attempts: 1, retry_in: Duration::ZERO },
                Remedy::Wait,
                false,
            ),
            (
                "stop",
                CallError::BadCredentials { user: "u".into(), attempts: 3 },
                Remedy::GiveUp,
                false,
            ),
            (
                "no credentials",
                CallError::Credentials { source: CredentialError::Empty.into() },
                Remedy::Wait,
                false,
            ),
            ("no cookie", CallError::NoCookie, Remedy::GiveUp, false),
            (
                "no manager",
                CallError::NoManager { manager: "event manager" },
                Remedy::GiveUp,
                false,
            ),
            ("abandoned", CallError::Abandoned { method: "m" }, Remedy::Retry, true),
            ("shutdown", CallError::ShuttingDown, Remedy::GiveUp, false),
        ] {
            assert_eq!(error.remedy(), wanted, "{case}");
            assert_eq!(error.outcome_unknown(), unknown, "{case}");
        }
    }
}
