#![doc = include_str!("../README.md")]

mod certificate;
mod client_certificate;
mod identity;
mod judge;
mod pem;
mod reload;
mod server;
mod signing_request;
mod thumbprint;
mod trust;
mod verifier;

pub use certificate::Certificate;
pub use client_certificate::{ClientCertificate, ClientCertificateError};
pub use identity::{IdentityError, TlsIdentity};
pub use judge::{Belief, Disbelief};
pub use pem::{PemError, PemFileError};
pub use reload::{ClientCa, ServerFileError, ServerFiles};
pub use server::{ServerTls, ServerTlsError, TlsPart};
pub use signing_request::{RequestedSubject, SigningRequest};
pub use thumbprint::{Thumbprint, ThumbprintError};
pub use trust::{Pins, TlsTrust, TrustError};
