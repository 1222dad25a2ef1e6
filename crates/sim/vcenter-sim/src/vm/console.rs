//! `AcquireTicket`.

use roost_vim_wire::{Element, MoRef};

use crate::call::Failure;
use crate::vm::fault::vm;
use crate::world::World;

/// The ticket for a console, which nothing answers.
pub(super) fn ticket(world: &mut World, this: &MoRef, kind: &str) -> Result<Element, Failure> {
    let row = vm(world, this)?;
    let (host, file) = (row.host.clone(), world.inventory.datastore_path(&row.home));
    let host = world.inventory.name(&host).unwrap_or_default().to_owned();
    let ticket = world.random.uuid();
    Ok(Element::new("returnval")
        .with_field("ticket", &ticket)
        .with_field("cfgFile", &file)
        .with_field("host", &host)
        .with_field("port", &443)
        .with_field("sslThumbprint", &world.inventory.host_thumbprint)
        .with_field(
            "url",
            &(kind == "webmks").then(|| format!("wss://{host}:443/ticket/{ticket}")),
        ))
}
