//! How large a VM is by its class, and what that changes of one that is there.

use roost_vim::wire::types::{ResourceAllocationInfo, SharesInfo, VirtualMachineConfigSpec};

use super::seen::Seen;
use crate::api::{CpuMemory, Quantity, QuantityError, VirtualMachine, VirtualMachineClass};

/// CPUs, memory, and what of it is reserved.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Compute {
    pub(crate) cpus: Option<i32>,
    pub(crate) memory_mb: Option<i64>,
    pub(crate) cpu: Option<ResourceAllocationInfo>,
    pub(crate) memory: Option<ResourceAllocationInfo>,
}

impl Compute {
    /// `mhz` is what one CPU is worth. What the object itself asks for goes before its class.
    pub(crate) fn of(
        vm: &VirtualMachine,
        class: Option<&VirtualMachineClass>,
        mhz: i64,
    ) -> Result<Self, QuantityError> {
        let mut compute = Self::default();
        if let Some(class) = class {
            let hardware = &class.spec.hardware;
            compute.cpus = i32::try_from(hardware.cpus).ok().filter(|cpus| *cpus > 0);
            compute.memory_mb = hardware.memory.as_ref().map(Quantity::mebibytes).transpose()?;
            let resources = &class.spec.policies.resources;
            let (requests, limits) = (&resources.requests, &resources.limits);
            let in_mhz = |of: &CpuMemory| -> Result<Option<i64>, QuantityError> {
                let Some(cpu) = of.cpu.as_ref().filter(|cpu| !cpu.is_zero()) else {
                    return Ok(None);
                };
                let milli = i64::try_from(cpu.milli()?).unwrap_or(i64::MAX / mhz.max(1));
                Ok(Some((milli * mhz + 999) / 1000))
            };
            let in_mib = |of: &CpuMemory| -> Result<Option<i64>, QuantityError> {
                let memory = of.memory.as_ref().filter(|memory| !memory.is_zero());
                memory.map(Quantity::mebibytes).transpose()
            };
            compute.cpu = allocation(in_mhz(requests)?, in_mhz(limits)?);
            compute.memory = allocation(in_mib(requests)?, in_mib(limits)?);
        }
        compute.overridden(vm)
    }

    fn overridden(mut self, vm: &VirtualMachine) -> Result<Self, QuantityError> {
        let Some(resources) = &vm.spec.resources else { return Ok(self) };
        if let Some(size) = &resources.size {
            if let Some(cpu) = &size.cpu {
                self.cpus = i32::try_from(cpu.value()?).ok();
            }
            if let Some(memory) = &size.memory {
                self.memory_mb = Some(memory.mebibytes()?);
            }
        }
        let part = |of: &Option<CpuMemory>, cpu: bool| -> Result<Option<i64>, QuantityError> {
            let Some(of) = of else { return Ok(None) };
            match (cpu, &of.cpu, &of.memory) {
                (true, Some(cpu), _) => cpu.value().map(Some),
                (false, _, Some(memory)) => memory.mebibytes().map(Some),
                _ => Ok(None),
            }
        };
        let (requests, limits) = (&resources.requests, &resources.limits);
        self.cpu = allocation(part(requests, true)?, part(limits, true)?).or(self.cpu);
        self.memory = allocation(part(requests, false)?, part(limits, false)?).or(self.memory);
        Ok(self)
    }

    pub(crate) fn write(&self, spec: &mut VirtualMachineConfigSpec) {
        spec.num_cpus = self.cpus.or(spec.num_cpus);
        spec.memory_mb = self.memory_mb.or(spec.memory_mb);
        if self.cpu.is_some() {
            spec.cpu_allocation.clone_from(&self.cpu);
        }
        if self.memory.is_some() {
            spec.memory_allocation.clone_from(&self.memory);
        }
    }

    /// What differs from the VM as it is.
    pub(crate) fn differences(&self, seen: &Seen, spec: &mut VirtualMachineConfigSpec) {
        let Some(hardware) = seen.hardware() else { return };
        spec.num_cpus = self.cpus.filter(|cpus| *cpus != hardware.num_cpu);
        spec.memory_mb = self.memory_mb.filter(|memory| *memory != i64::from(hardware.memory_mb));
        let differs = |wanted: &Option<ResourceAllocationInfo>,
                       is: Option<&ResourceAllocationInfo>| {
            let wanted = wanted.as_ref()?;
            let same = is.is_some_and(|is| {
                is.reservation.unwrap_or(0) == wanted.reservation.unwrap_or(0)
                    && is.limit.unwrap_or(-1) == wanted.limit.unwrap_or(-1)
            });
            (!same).then(|| wanted.clone())
        };
        spec.cpu_allocation = differs(&self.cpu, seen.cpu_allocation());
        spec.memory_allocation = differs(&self.memory, seen.memory_allocation());
    }
}

/// Without a word on either nothing is set.
fn allocation(reserved: Option<i64>, limit: Option<i64>) -> Option<ResourceAllocationInfo> {
    if reserved.is_none() && limit.is_none() {
        return None;
    }
    Some(ResourceAllocationInfo {
        reservation: Some(reserved.unwrap_or(0)),
        limit: Some(limit.unwrap_or(-1)),
        shares: Some(SharesInfo { shares: 0, level: "normal".to_owned() }),
        ..ResourceAllocationInfo::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::vm::Resources;

    #[test]
    fn a_class_gives_size_and_reservations_and_the_object_goes_before_it() {
        let mut class = VirtualMachineClass::default();
        class.spec.hardware.cpus = 2;
        class.spec.hardware.memory = Some(Quantity::new("4Gi"));
        class.spec.policies.resources.requests.cpu = Some(Quantity::new("500m"));
        class.spec.policies.resources.limits.memory = Some(Quantity::new("4Gi"));
        let mut vm = VirtualMachine::default();
        let got = Compute::of(&vm, Some(&class), 2_001).unwrap();
        assert_eq!((got.cpus, got.memory_mb), (Some(2), Some(4096)));
        let cpu = got.cpu.unwrap();
        assert_eq!((cpu.reservation, cpu.limit), (Some(1001), Some(-1)), "rounded up");
        let memory = got.memory.unwrap();
        assert_eq!((memory.reservation, memory.limit), (Some(0), Some(4096)));

        let size = CpuMemory { cpu: Some(Quantity::new("8")), memory: None };
        let requests = CpuMemory { cpu: Some(Quantity::new("700")), memory: None };
        vm.spec.resources =
            Some(Resources { size: Some(size), requests: Some(requests), ..Resources::default() });
        let got = Compute::of(&vm, Some(&class), 2_000).unwrap();
        assert_eq!((got.cpus, got.memory_mb), (Some(8), Some(4096)));
        assert_eq!(got.cpu.unwrap().reservation, Some(700), "in MHz");
        assert_eq!(Compute::of(&VirtualMachine::default(), None, 1).unwrap(), Compute::default());
    }
}
