//! Bytes that are not what they should be: whatever comes, no panic.

use proptest::prelude::*;
use roost_vim_wire::types::{
    CustomizationSpec, VirtualMachineConfigSpec, VirtualMachineRelocateSpec,
};
use roost_vim_wire::{Element, MoRef, Request, decode_reply, encode_request, methods};

/// A large request of many nested types.
fn clone_request() -> Vec<u8> {
    let mut call = methods::CloneVmTask {
        this: MoRef::vm("vm-1"),
        name: "worker".into(),
        ..Default::default()
    };
    call.spec.location =
        VirtualMachineRelocateSpec { disk_move_type: Some("x".into()), ..Default::default() };
    call.spec.config = Some(VirtualMachineConfigSpec {
        annotation: Some("{\"a\":\"<&>\"}".into()),
        ..Default::default()
    });
    call.spec.customization = Some(CustomizationSpec::default());
    encode_request(&call, Some("op"))
}

fn decode_as_everything(bytes: &[u8]) {
    let _ = decode_reply::<methods::RetrieveServiceContent>(bytes);
    let _ = decode_reply::<methods::WaitForUpdatesEx>(bytes);
    let _ = decode_reply::<methods::QueryEvents>(bytes);
    let _ = decode_reply::<methods::ListProcessesInGuest>(bytes);
    let _ = Element::parse(bytes);
    if let Ok(request) = Request::parse(bytes) {
        let _ = request.decode::<methods::CloneVmTask>();
        let _ = request.decode::<methods::CreateFilter>();
        let _ = request.decode::<methods::StartProgramInGuest>();
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
        decode_as_everything(&bytes);
    }

    #[test]
    fn damaged_messages_never_panic(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..3), 1..8),
    ) {
        let mut bytes = clone_request();
        for (at, with, how) in edits {
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = with,
                1 => bytes.insert(at, with),
                _ => bytes.truncate(at.max(1)),
            }
        }
        decode_as_everything(&bytes);
    }

    #[test]
    fn a_request_reads_back_as_it_was_written(name in "\\PC{0,40}", annotation in "\\PC{0,80}", cpus in any::<Option<i32>>()) {
        let mut call = methods::CloneVmTask { this: MoRef::vm("vm-1"), name, ..Default::default() };
        let config = VirtualMachineConfigSpec { annotation: Some(annotation), num_cpus: cpus, ..Default::default() };
        call.spec.config = Some(config);
        let bytes = encode_request(&call, None);
        let request = Request::parse(&bytes).unwrap();
        prop_assert_eq!(request.method, "CloneVM_Task");
        let read: methods::CloneVmTask = request.decode().unwrap();
        prop_assert_eq!(read.name, call.name);
        prop_assert_eq!(read.spec.config, call.spec.config);
    }
}
