# A clone of a template with all that the hatchery asks for, and what becomes of it.

template = vm("debian12")
datacenter = find(vim.Datacenter, "DC0")
cluster = find(vim.ClusterComputeResource, "DC0_C0")
store = find(vim.Datastore, "LocalDS_0")
group = find(vim.dvs.DistributedVirtualPortgroup, "DC0_DVPG0")

card = next(each for each in template.config.hardware.device if isinstance(each, vim.vm.device.VirtualEthernetCard))
port = vim.dvs.PortConnection(
    portgroupKey=group.key, switchUuid=group.config.distributedVirtualSwitch.uuid
)
card.backing = vim.vm.device.VirtualEthernetCard.DistributedVirtualPortBackingInfo(port=port)
edit = vim.vm.device.VirtualDeviceSpec(operation="edit", device=card)
custom = vim.vm.customization
identity = custom.LinuxPrep(hostName=custom.VirtualMachineNameGenerator(), domain="local", timeZone="UTC", hwClockUTC=True)
adapter = custom.IPSettings(ip=custom.FixedIp(ipAddress="10.0.0.10"), subnetMask="255.255.255.0", gateway=["10.0.0.1"])
spec = vim.vm.CloneSpec(
    location=vim.vm.RelocateSpec(
        pool=cluster.resourcePool, datastore=store, diskMoveType="moveChildMostDiskBacking", deviceChange=[edit]
    ),
    config=vim.vm.ConfigSpec(
        annotation='{"hatchery_name":"h1"}',
        numCPUs=2,
        memoryMB=4096,
        tools=vim.vm.ToolsConfigInfo(afterPowerOn=True),
        extraConfig=[vim.option.OptionValue(key="guestinfo.hatchery", value="h1")],
    ),
    customization=custom.Specification(
        identity=identity,
        globalIPSettings=custom.GlobalIPSettings(dnsServerList=["10.0.0.2"]),
        nicSettingMap=[custom.AdapterMapping(adapter=adapter)],
    ),
    powerOn=True,
    template=False,
)
task = template.CloneVM_Task(datacenter.vmFolder, "worker-1", spec)
seen = []
WaitForTask(task, onProgressUpdate=lambda task, progress: seen.append(progress))
info = task.info
worker = info.result
print("task", info.state, info.descriptionId, info.entityName, type(info.reason).__name__.rsplit(".", 1)[1])
print("times", info.queueTime <= info.startTime <= info.completeTime)
print("result", type(worker).__name__, worker.name)
print("config", worker.config.annotation, worker.config.hardware.numCPU, worker.config.hardware.memoryMB)
print("extra", {each.key: each.value for each in worker.config.extraConfig}["guestinfo.hatchery"])
print("power", worker.runtime.powerState, worker.resourcePool.owner.name)
disk = next(each for each in worker.config.hardware.device if isinstance(each, vim.vm.device.VirtualDisk))
print("linked", disk.backing.parent.fileName.startswith("[LocalDS_0] debian12/"))
nic = next(each for each in worker.config.hardware.device if isinstance(each, vim.vm.device.VirtualEthernetCard))
print("card", type(nic) == type(card), nic.backing.port.portgroupKey == group.key, nic.macAddress != card.macAddress)

# The address comes when customization is through.
collector = content.propertyCollector
pc = vmodl.query.PropertyCollector
filter = collector.CreateFilter(
    pc.FilterSpec(
        objectSet=[pc.ObjectSpec(obj=worker)],
        propSet=[pc.PropertySpec(type=vim.VirtualMachine, pathSet=["guest.ipAddress"])],
    ),
    False,
)
version = ""
while worker.guest.ipAddress != "10.0.0.10":
    update = collector.WaitForUpdatesEx(version, pc.WaitOptions(maxWaitSeconds=10))
    assert update, "no address"
    version = update.version
filter.Destroy()
print("address", worker.guest.ipAddress, worker.guest.net[0].ipAddress[0], worker.guest.hostName)

classes = [type(event).__name__.rsplit(".", 1)[1] for event in events_of(worker)]
print("events", *[name for name in classes if not name.startswith(("TaskEvent", "VmUuid", "VmInstanceUuid"))])
