//! Verbs run in tasks of their own, so that their futures must be `Send`. This compiles or it does not.

use bytes::Bytes;
use roost_vim::wire::MoRef;
use roost_vim::{
    Client, CloneVm, CreateVm, Datastore, DatastorePath, EventTail, Finder, Guest,
    GuestFileOptions, Kind, Program, Reconfigure, TemplateFacts,
};
use std::time::Duration;
use tokio::time::Instant;

fn spawn(_: impl Send) {}

#[allow(dead_code, clippy::too_many_arguments, reason = "only its types are looked at")]
fn every_verb(
    client: &Client,
    finder: &Finder,
    guest: &Guest,
    files: &Datastore,
    tail: &mut EventTail,
    template: &TemplateFacts,
    clone: &CloneVm,
    create: &CreateVm,
    vm: &MoRef,
    path: &DatastorePath,
) {
    let (now, bytes) = (Instant::now(), Bytes::new());
    spawn(finder.find(Kind::VirtualMachine, ""));
    spawn(client.clone_or_adopt(template, clone, |_| true));
    spawn(client.create_or_adopt(create, |_| true));
    spawn(client.reconfigure(vm, &Reconfigure::default()));
    spawn(client.shut_down(vm, Duration::ZERO));
    spawn(client.destroy(vm));
    spawn(client.wait_for(vm, &["name"], now, |_| Some(())));
    spawn(client.wait_for_address(vm, None, now));
    spawn(client.prepare_for_linked_clones(vm, vm, "base"));
    spawn(guest.run(&Program::bash(""), now));
    spawn(guest.upload(&bytes, "/x", GuestFileOptions::default()));
    spawn(guest.download("/x"));
    spawn(files.upload(&bytes, path));
    spawn(files.list(path, None));
    spawn(files.delete(path));
    spawn(tail.next());
}
