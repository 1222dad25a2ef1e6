//! Whole messages: requests as the simulator reads them, replies as the client does.
#![no_main]

use libfuzzer_sys::fuzz_target;
use roost_vim_wire::{Element, Request, decode_reply, methods};

fuzz_target!(|body: &[u8]| {
    let _ = Element::parse(body);
    let _ = decode_reply::<methods::RetrieveServiceContent>(body);
    let _ = decode_reply::<methods::WaitForUpdatesEx>(body);
    let _ = decode_reply::<methods::QueryEvents>(body);
    if let Ok(request) = Request::parse(body) {
        let _ = request.decode::<methods::CloneVmTask>();
        let _ = request.decode::<methods::CreateVmTask>();
        let _ = request.decode::<methods::CreateFilter>();
        let _ = request.decode::<methods::StartProgramInGuest>();
    }
});
