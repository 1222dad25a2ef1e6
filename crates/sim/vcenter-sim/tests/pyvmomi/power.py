# Reconfigure, power, and the faults that tell what is wrong, each with its own fields.

from pyVmomi.VmomiSupport import GetWsdlName


def refused(step, attempt, *fields):
    try:
        attempt()
        print(step, "went through")
    except vmodl.MethodFault as fault:
        values = [getattr(fault, name) for name in fields]
        values = [value.name if isinstance(value, vim.ManagedEntity) else value for value in values]
        print(step, GetWsdlName(type(fault)), *values)


machine, other = vm("DC0_H0_VM0"), vm("DC0_H0_VM1")
refused("on twice", lambda: WaitForTask(machine.PowerOnVM_Task()), "requestedState", "existingState")
refused("destroyed while on", lambda: WaitForTask(machine.Destroy_Task()), "requestedState", "existingState")
refused("template while on", machine.MarkAsTemplate, "existingState")
refused("CPU while on", lambda: WaitForTask(machine.ReconfigVM_Task(vim.vm.ConfigSpec(numCPUs=2))))
refused("taken name", lambda: WaitForTask(machine.Rename_Task("DC0_H0_VM1")), "name", "object")
refused("bad name", lambda: WaitForTask(machine.Rename_Task("")))

WaitForTask(machine.PowerOffVM_Task())
print("off", machine.runtime.powerState, machine.guest.ipAddress, machine.guest.toolsRunningStatus)
refused("off twice", lambda: WaitForTask(machine.PowerOffVM_Task()), "requestedState", "existingState")
refused("shut down while off", machine.ShutdownGuest, "existingState")

before = machine.config.changeVersion
spec = vim.vm.ConfigSpec(annotation="first\nsecond <&>", numCPUs=4, memoryMB=128)
WaitForTask(machine.ReconfigVM_Task(spec))
print("reconfigured", repr(machine.config.annotation), machine.config.hardware.numCPU, machine.config.hardware.memoryMB)
print("summary", machine.summary.config.numCpu, machine.summary.config.memorySizeMB)
print("version moved", machine.config.changeVersion != before)
spec = vim.vm.ConfigSpec(annotation="too late", changeVersion=before)
refused("stale version", lambda: WaitForTask(machine.ReconfigVM_Task(spec)))
WaitForTask(machine.ReconfigVM_Task(vim.vm.ConfigSpec(annotation="")))
print("cleared", repr(machine.config.annotation or ""))

WaitForTask(machine.PowerOnVM_Task())
print("on", machine.runtime.powerState, machine.runtime.bootTime is not None)
WaitForTask(machine.SuspendVM_Task())
print("suspended", machine.runtime.powerState)
WaitForTask(machine.PowerOnVM_Task())
WaitForTask(machine.ResetVM_Task())
print("reset", machine.runtime.powerState)

WaitForTask(other.Rename_Task("renamed"))
print("renamed", other.name)
WaitForTask(other.PowerOffVM_Task())
WaitForTask(other.Destroy_Task())
refused("gone", lambda: other.name)
template = vm("debian12")
refused("template on", lambda: WaitForTask(template.PowerOnVM_Task()))
pool = find(vim.ClusterComputeResource, "DC0_C0").resourcePool
spec = vim.vm.CloneSpec(location=vim.vm.RelocateSpec(), powerOn=False, template=False)
refused("clone without pool", lambda: WaitForTask(template.CloneVM_Task(template.parent, "x", spec)), "invalidProperty")
spec.location.pool = pool
refused("clone of a taken name", lambda: WaitForTask(template.CloneVM_Task(template.parent, "DC0_H0_VM0", spec)), "name", "object")
refused("folder of a taken name", lambda: template.parent.CreateFolder("DC0_H0_VM0"), "name", "object")

# An object of another kind, and one that never was.
refused("no such object", lambda: vim.VirtualMachine("vm-99999", service._stub).name)
