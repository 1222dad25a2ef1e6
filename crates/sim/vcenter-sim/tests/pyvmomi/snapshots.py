# A tree of snapshots, and going back in it.

machine = vm("DC0_H0_VM0")
WaitForTask(machine.PowerOffVM_Task())


def names(tree):
    return [(each.name, names(each.childSnapshotList)) for each in tree]


def reconfigure(**spec):
    WaitForTask(machine.ReconfigVM_Task(vim.vm.ConfigSpec(**spec)))


task = machine.CreateSnapshot_Task("base", "as installed", False, False)
WaitForTask(task)
base = task.info.result
print("made", type(base).__name__, machine.snapshot.currentSnapshot == base)
reconfigure(numCPUs=4)
WaitForTask(machine.CreateSnapshot_Task("tuned", None, False, False))
WaitForTask(base.RevertToSnapshot_Task())
print("reverted", machine.config.hardware.numCPU, machine.snapshot.currentSnapshot == base)
WaitForTask(machine.CreateSnapshot_Task("other", None, False, False))
tree = machine.snapshot.rootSnapshotList
print("tree", names(tree))
root = tree[0]
print("root", root.description, root.state, root.quiesced, root.vm == machine, root.createTime is not None)
print("then", root.childSnapshotList[0].snapshot.config.hardware.numCPU)
disk = next(each for each in machine.config.hardware.device if isinstance(each, vim.vm.device.VirtualDisk))
print("disk has a parent", disk.backing.parent is not None)
WaitForTask(machine.RevertToCurrentSnapshot_Task())
WaitForTask(root.snapshot.RemoveSnapshot_Task(False))
print("without root", names(machine.snapshot.rootSnapshotList))
WaitForTask(machine.RemoveAllSnapshots_Task())
print("none", machine.snapshot)
try:
    WaitForTask(base.RevertToSnapshot_Task())
except vmodl.fault.ManagedObjectNotFound as fault:
    print("gone", fault.obj == base)
