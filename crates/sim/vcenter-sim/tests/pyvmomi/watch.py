# One WaitForUpdatesEx loop over all VMs, through the life of one of them.

pc = vmodl.query.PropertyCollector
spec, view = watching(
    vim.VirtualMachine,
    ["name", "runtime.powerState", "config.annotation", "summary.config.numCpu", "guest.guestOperationsReady", "snapshot"],
)
collector = content.propertyCollector.CreatePropertyCollector()
collector.CreateFilter(spec, True)
version, versions, known, told = "", [], {}, []


def follow(is_so, what):
    """Takes updates in until the mirror is as wanted."""
    global version
    for _ in range(100):
        if is_so():
            return
        update = collector.WaitForUpdatesEx(version, pc.WaitOptions(maxWaitSeconds=10))
        assert update, f"no update: {what}"
        version = update.version
        versions.append(version)
        for change in update.filterSet[0].objectSet:
            told.append(change.kind)
            if change.kind == "leave":
                del known[change.obj]
                continue
            mirror = known.setdefault(change.obj, {})
            for each in change.changeSet:
                assert each.op == "assign", each
                mirror[each.name] = each.val
    raise AssertionError(what)


follow(lambda: len(known) == 5, "the first sync")
print("first sync", len(known), set(told))
del told[:]

folder = find(vim.Datacenter, "DC0").vmFolder
pool = find(vim.ClusterComputeResource, "DC0_C0").resourcePool
# What boots is the image in its drive.
drive = vim.vm.device.VirtualCdrom(
    key=-1,
    controllerKey=200,
    backing=vim.vm.device.VirtualCdrom.IsoBackingInfo(fileName="[LocalDS_0] boot.iso"),
    connectable=vim.vm.device.VirtualDevice.ConnectInfo(startConnected=True, connected=True, allowGuestControl=True),
)
config = vim.vm.ConfigSpec(
    deviceChange=[vim.vm.device.VirtualDeviceSpec(operation="add", device=drive)],
    name="new", memoryMB=64, numCPUs=1, files=vim.vm.FileInfo(vmPathName="[LocalDS_0]"))
task = folder.CreateVM_Task(config, pool)
follow(lambda: any(vm.get("name") == "new" for vm in known.values()), "the VM enters")
WaitForTask(task)
new = task.info.result
print("created", known[new]["runtime.powerState"], told)
del told[:]


def step(what, task, **wanted):
    wanted = {name.replace("__", "."): value for name, value in wanted.items()}
    follow(lambda: all(known[new].get(name) == value for name, value in wanted.items()), what)
    if task:
        WaitForTask(task)
    print(what, *wanted.values(), set(told))
    del told[:]


step("renamed", new.Rename_Task("newer"), name="newer")
step("annotated", new.ReconfigVM_Task(vim.vm.ConfigSpec(annotation="mine", numCPUs=2)), config__annotation="mine", summary__config__numCpu=2)
step("powered on", new.PowerOnVM_Task(), runtime__powerState="poweredOn")
step("ready", None, guest__guestOperationsReady=True)
task = new.CreateSnapshot_Task("base", None, False, False)
follow(lambda: known[new].get("snapshot"), "the snapshot")
WaitForTask(task)
print("snapshot", known[new]["snapshot"].rootSnapshotList[0].name)
del told[:]
step("powered off", new.PowerOffVM_Task(), runtime__powerState="poweredOff")
follow(lambda: not known[new].get("guest.guestOperationsReady"), "the guest is gone")
task = new.Destroy_Task()
follow(lambda: new not in known, "the VM leaves")
WaitForTask(task)
print("destroyed", told)

print("versions differ", len(set(versions)) == len(versions))
try:
    collector.WaitForUpdatesEx("no such version", pc.WaitOptions(maxWaitSeconds=1))
except vmodl.query.InvalidCollectorVersion:
    print("an invented version is refused")
print("nothing new", collector.WaitForUpdatesEx(version, pc.WaitOptions(maxWaitSeconds=0)))
collector.Destroy()
view.Destroy()
