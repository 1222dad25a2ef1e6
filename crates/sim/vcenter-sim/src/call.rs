//! What passes between the doors and the code that carries a call out.

use jiff::Timestamp;
use roost_vim_wire::{Fault, Field, LocalizedMethodFault, Method, MoRef, Request, encode_reply};

use crate::world::Handle;

/// The circumstances of one call. The world is locked while it exists, so nothing here locks it again.
#[derive(Debug)]
pub(crate) struct CallContext<'a> {
    /// For [`after`](crate::world::Shared::after) and the options; its world must not be locked from inside a call.
    pub handle: &'a Handle,
    pub now: Timestamp,
    /// Who is logged in.
    pub user: &'a str,
    /// The key of the caller's session: what lives in the session remembers it and dies with it.
    pub session: &'a str,
    /// Whether the caller came over TLS, for URLs that are handed out.
    pub secure: bool,
}

/// A successful answer, ready for the wire.
#[derive(Debug)]
pub(crate) struct ReplyBody(pub Vec<u8>);

impl ReplyBody {
    pub(crate) fn of<M: Method>(output: &M::Output) -> Self {
        Self(encode_reply::<M>(output))
    }
}

/// Why a call was refused.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub fault: Fault,
    /// Shown to people; vCenter's is localized.
    pub message: String,
}

pub(crate) type CallResult = Result<ReplyBody, Failure>;

impl Failure {
    pub(crate) fn new(fault: Fault, message: impl Into<String>) -> Self {
        Self { fault, message: message.into() }
    }

    /// A fault without fields.
    pub(crate) fn of(class: &str, message: impl Into<String>) -> Self {
        Self::new(Fault::of(class), message)
    }

    pub(crate) fn not_found(obj: &MoRef) -> Self {
        let message = format!(
            "The object '{obj}' has already been deleted or has not been completely created"
        );
        Self::new(Fault::of("ManagedObjectNotFound").with("obj", obj), message)
    }

    pub(crate) fn invalid_argument(property: &str) -> Self {
        let fault = Fault::of("InvalidArgument").with("invalidProperty", &property.to_owned());
        Self::new(fault, format!("A specified parameter was not correct: {property}"))
    }

    pub(crate) fn with(mut self, field: &str, value: &impl Field) -> Self {
        self.fault = self.fault.with(field, value);
        self
    }

    pub(crate) fn localized(self) -> LocalizedMethodFault {
        LocalizedMethodFault::new(self.fault, self.message)
    }
}

/// The arguments of a call; what is not even XML is the caller's fault.
pub(crate) fn decode<M: Method>(request: &Request<'_>) -> Result<M, Failure> {
    request.decode().map_err(|error| Failure::of("InvalidRequest", error.to_string()))
}
