# Plain attribute reads: each is one property of one object, typed by pyVmomi's own schema.

about = content.about
print("about", about.apiType, about.productLineId, about.version)
print("session", content.sessionManager.currentSession.userName)
print("time", service.CurrentTime().tzinfo is not None)

vm = vm("DC0_C0_RP0_VM0")
print("vm", vm.summary.config.numCpu, vm.summary.config.memorySizeMB, vm.summary.config.vmPathName)
print("runtime", vm.runtime.powerState, vm.runtime.connectionState, vm.runtime.host.name.startswith("DC0_C0_H"))
print("guest", vm.guest.toolsRunningStatus, vm.guest.guestOperationsReady, vm.guest.guestState)
print("address", vm.guest.ipAddress == vm.summary.guest.ipAddress == vm.guest.net[0].ipAddress[0])
print("pool", vm.resourcePool.name, vm.resourcePool.owner.name)
print("places", vm.parent.name, [store.name for store in vm.datastore], [network.name for network in vm.network])
print("unset", vm.snapshot, vm.config.managedBy, vm.runtime.question)
for device in vm.config.hardware.device:
    if isinstance(device, (vim.vm.device.VirtualDisk, vim.vm.device.VirtualEthernetCard, vim.vm.device.VirtualCdrom)):
        print("device", device.key, type(device).__name__.rsplit(".", 1)[1], device.deviceInfo.label)
disk = next(each for each in vm.config.hardware.device if isinstance(each, vim.vm.device.VirtualDisk))
print("disk", disk.capacityInKB, disk.backing.thinProvisioned, disk.backing.datastore.name)

cluster = find(vim.ClusterComputeResource, "DC0_C0")
pool = cluster.resourcePool
print("cluster", cluster.summary.numHosts, len(cluster.host), cluster.summary.effectiveCpu > 0)
print("pool", 0 < pool.runtime.cpu.unreservedForVm <= pool.runtime.cpu.maxUsage, pool.runtime.memory.overallUsage)
print("limits", pool.config.cpuAllocation.limit > 0, pool.config.cpuAllocation.shares.level)
host = cluster.host[0]
print("host", host.summary.hardware.numCpuCores, host.runtime.connectionState, host.summary.config.product.productLineId)
store = find(vim.Datastore, "LocalDS_0")
print("store", store.summary.type, store.summary.accessible, store.summary.freeSpace < store.summary.capacity)
group = find(vim.dvs.DistributedVirtualPortgroup, "DC0_DVPG0")
print("network", group.config.distributedVirtualSwitch.name, group.key == group.config.key)
template = find(vim.VirtualMachine, "debian12")
print("template", template.config.template, template.resourcePool, template.snapshot.rootSnapshotList[0].name)
print("by path", content.searchIndex.FindByInventoryPath("DC0/vm/debian12") == template)
print("by uuid", content.searchIndex.FindByUuid(None, vm.config.uuid, True, False) == vm)
print("by address", content.searchIndex.FindByIp(None, vm.guest.ipAddress, True) == vm)
