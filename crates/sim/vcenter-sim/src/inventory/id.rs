use roost_vim_wire::{MoRef, MoType};

use crate::options::Product;

/// Hands out object ids in the two products' ways: `vm-42` and `group-v3` on vCenter, `42` and `ha-folder-vm` on a host.
#[derive(Debug, Clone)]
pub(crate) struct Ids {
    product: Product,
    next: u32,
}

impl Ids {
    pub(crate) fn new(product: Product) -> Self {
        // 1 is the root folder, `group-d1`.
        Self { product, next: 2 }
    }

    pub(crate) fn number(&mut self) -> u32 {
        let number = self.next;
        self.next += 1;
        number
    }

    /// The next object of this kind. `prefix` is what stands before the number on a vCenter.
    pub(crate) fn next(&mut self, kind: MoType, prefix: &str) -> MoRef {
        let number = self.number();
        let id = match (self.product, &kind) {
            (Product::HostAgent, MoType::VirtualMachine) => number.to_string(),
            (Product::HostAgent, MoType::Task) => format!("haTask-ha-host-vim.Task-{number}"),
            _ => format!("{prefix}{number}"),
        };
        MoRef::new(kind, id)
    }

    pub(crate) fn vm(&mut self) -> MoRef {
        self.next(MoType::VirtualMachine, "vm-")
    }

    pub(crate) fn snapshot(&mut self) -> MoRef {
        self.next(MoType::VirtualMachineSnapshot, "snapshot-")
    }

    pub(crate) fn task(&mut self) -> MoRef {
        self.next(MoType::Task, "task-")
    }

    pub(crate) fn folder(&mut self, kind: super::FolderKind) -> MoRef {
        let number = self.number();
        MoRef::new(MoType::Folder, format!("group-{}{number}", kind.letter()))
    }
}
