//! What can be asked of virtual machines. Requests are plain structs with good defaults; a pure function makes the wire's form
//! of them; the verbs send that, wait for the task, and know which failures mean that nothing is left to do.

mod clone;
mod create;
mod customize;
mod destroy;
mod error;
mod lifecycle;
mod make;
mod power;
mod reconfigure;
mod run;
mod snapshot;
mod template;

use roost_vim_wire::types::{Hidden, OptionValue};

pub use clone::{CloneSpecError, CloneVm, DiskCopy};
pub use create::{BootDevice, CreateVm, Firmware, HotAdd, Reserved};
pub use customize::{Customization, CustomizationError, GuestIdentity, HostName, NicAddress};
pub use destroy::Destroyed;
pub use error::{Step, VmError};
pub use lifecycle::{ConsoleTicket, unlimited_pool};
pub use make::{Made, Namesake};
pub use power::{PowerChange, Shutdown};
pub use reconfigure::{Annotated, Reconfigure};
pub use snapshot::{NewSnapshot, Snapshot, Snapshots};
pub use template::{TemplateFacts, TemplateUse, TemplateWarning};

/// Keys and values of a VM's extra configuration. The values may be secrets (`guestinfo.userdata`) and do not print.
fn options(pairs: &[(String, Hidden)]) -> Vec<OptionValue> {
    pairs.iter().map(|(key, value)| OptionValue::text(key.clone(), value.0.clone())).collect()
}
