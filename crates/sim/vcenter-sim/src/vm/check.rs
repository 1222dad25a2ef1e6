//! The checkers: whether a VM could be there, or be so, without doing it.

use roost_vim_wire::types::{VirtualMachineConfigSpec, VirtualMachineRelocateSpec};
use roost_vim_wire::{Array, Element, LocalizedMethodFault, MoRef, Value};

use crate::call::{CallContext, Failure};
use crate::inventory::Record;
use crate::task::{Job, submit};
use crate::vm::fault::vm;
use crate::vm::{guest_full_name, relocate};
use crate::world::World;

pub(super) fn relocate(
    world: &mut World,
    cx: &CallContext<'_>,
    (this, target, spec): (&MoRef, MoRef, VirtualMachineRelocateSpec),
) -> Result<MoRef, Failure> {
    vm(world, &target)?;
    Ok(check(world, cx, "CheckRelocate_Task", this, move |world| {
        let found = relocate::could(world, &target, &spec).err();
        (Some(target), spec.host.clone(), found.into_iter().collect())
    }))
}

pub(super) fn compatibility(
    world: &mut World,
    cx: &CallContext<'_>,
    (this, target, host, pool): (&MoRef, MoRef, Option<MoRef>, Option<MoRef>),
) -> Result<MoRef, Failure> {
    vm(world, &target)?;
    same_compute(world, host.as_ref(), pool.as_ref())?;
    Ok(check(world, cx, "CheckCompatibility_Task", this, move |world| {
        let spec = VirtualMachineRelocateSpec { host: host.clone(), pool, ..Default::default() };
        let found = relocate::could(world, &target, &spec).err();
        (Some(target), host, found.into_iter().collect())
    }))
}

pub(super) fn config(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    (spec, target, host, pool): (
        VirtualMachineConfigSpec,
        Option<MoRef>,
        Option<MoRef>,
        Option<MoRef>,
    ),
) -> Result<MoRef, Failure> {
    if let Some(target) = &target {
        vm(world, target)?;
    }
    same_compute(world, host.as_ref(), pool.as_ref())?;
    Ok(check(world, cx, "CheckVmConfig_Task", this, move |world| {
        let on = host
            .or_else(|| {
                target
                    .as_ref()
                    .and_then(|vm| world.inventory.vms.get(vm))
                    .map(|row| row.host.clone())
            })
            .or_else(|| world.inventory.hosts.refs().next().cloned());
        let mut faults = Vec::new();
        if let Some(row) = on.as_ref().and_then(|on| world.inventory.hosts.get(on)) {
            let cores = i32::from(row.cores);
            if let Some(asked) = spec.num_cpus.filter(|asked| *asked > cores) {
                faults.push(Failure::of(
                    "NotEnoughCpus",
                    format!("The host has {cores} CPUs, but the vm requires {asked} CPUs."),
                ));
            }
            if let Some(asked) =
                spec.memory_mb.filter(|asked| *asked << 20 > MAX_VM_MEMORY_MB << 20)
            {
                faults.push(Failure::of(
                    "MemorySizeNotSupported",
                    format!("The memory size {asked} is outside the range that the host supports."),
                ));
            }
        }
        let known = |guest: &str| guest_full_name(guest) != guest;
        if let Some(guest) =
            spec.guest_id.as_deref().filter(|guest| !guest.is_empty() && !known(guest))
        {
            faults.push(Failure::of(
                "UnsupportedGuest",
                format!("The guest operating system '{guest}' is unsupported."),
            ));
        }
        (target, on, faults)
    }))
}

/// The most memory that a simulated host gives one VM.
pub(crate) const MAX_VM_MEMORY_MB: i64 = 6_128 * 1024;

fn same_compute(world: &World, host: Option<&MoRef>, pool: Option<&MoRef>) -> Result<(), Failure> {
    let (Some(host), Some(pool)) = (host, pool) else { return Ok(()) };
    let owner = world.inventory.pools.get(pool).map(|row| &row.owner);
    if owner.is_some() && owner == world.inventory.compute_of_host(host) {
        return Ok(());
    }
    let message = "The host and the resource pool do not belong to the same compute resource.";
    Err(Failure::of("InvalidArgument", message).with("invalidProperty", &"host".to_owned()))
}

type Found = (Option<MoRef>, Option<MoRef>, Vec<Failure>);

fn check(
    world: &mut World,
    cx: &CallContext<'_>,
    method: &'static str,
    this: &MoRef,
    look: impl FnOnce(&World) -> Found + Send + 'static,
) -> MoRef {
    let takes = cx.handle.options.timings.file.draw(&mut world.random);
    let job = Job::on(method, this).without_hold().then(takes, move |world, _| {
        let (vm, host, failures) = look(world);
        let faults = failures.into_iter().map(|failure| fault(&failure.localized())).collect();
        let result = Record::of("CheckResult")
            .set("vm", &vm)
            .set("host", &host)
            .put("error", Value::Array(Array::new("LocalizedMethodFault", faults)));
        Ok(Some(Value::Array(Array::new("CheckResult", vec![result.value()]))))
    });
    submit(world, cx, job)
}

fn fault(fault: &LocalizedMethodFault) -> Value {
    let mut elements = Element::of_field("error", fault);
    Value::Other(Box::new(elements.pop().unwrap_or_default()))
}
