//! Packages into VMs and out of them: import, export, and the lease under which the disks travel over HTTP.
//!
//! ```text
//! initializing --VM is made--> ready --complete--> done
//!       |                        |
//!       +--- the task failed ----+--- abort, or no progress for five minutes --> error
//! ```
//!
//! A lease that ends in an error takes the half-filled VM of an import with it.

mod door;
mod export;
mod import;
mod lease;

use roost_vim_wire::{MoRef, Request};

pub(crate) use door::transfer;
pub(crate) use export::export;
pub(crate) use import::import;
pub(crate) use lease::{Leases, property};

use crate::call::{CallContext, CallResult};
use crate::model::calls;
use crate::world::World;

/// The methods of the OVF manager and of leases.
pub(crate) fn call(
    request: &Request<'_>,
    this: &MoRef,
    world: &mut World,
    cx: &CallContext<'_>,
) -> Option<CallResult> {
    calls! { request;
        CreateImportSpec => |call| Ok(import::import_spec(world, &call)),
        ParseDescriptor => |call| Ok(import::parse(&call.ovf_descriptor)),
        ValidateHost => |_| Ok(import::validate_host()),
        CreateDescriptor => |call| export::descriptor(world, &call.obj, &call.cdp),
        HttpNfcLeaseProgress => |call| lease::progress(world, cx, this, call.percent),
        HttpNfcLeaseComplete => |_| lease::complete(world, this),
        HttpNfcLeaseAbort => |_| lease::abort(world, cx, this),
        HttpNfcLeaseGetManifest => |_| lease::manifest(world, this),
        HttpNfcLeaseSetManifestChecksumType => |_| Ok(()),
    }
}
