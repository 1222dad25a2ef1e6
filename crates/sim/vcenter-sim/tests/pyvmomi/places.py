# Hosts, clusters, datacenters, vApps, switches, roles: what is made, changed and refused.

from pyVmomi.VmomiSupport import GetWsdlName


def refused(step, attempt, *fields):
    try:
        attempt()
        print(step, "went through")
    except vmodl.MethodFault as fault:
        print(step, GetWsdlName(type(fault)), *[getattr(fault, name) for name in fields])


root = content.rootFolder
datacenter = root.CreateDatacenter("DC9")
print("datacenter", datacenter.name, datacenter.vmFolder.name, sorted(datacenter.hostFolder.childType))
spec = vim.cluster.ConfigSpecEx(
    drsConfig=vim.cluster.DrsConfigInfo(enabled=True, defaultVmBehavior="fullyAutomated"),
    dasConfig=vim.cluster.DasConfigInfo(enabled=True, admissionControlEnabled=False),
)
edge = datacenter.hostFolder.CreateClusterEx("edge", spec)
print("cluster", edge.name, edge.configurationEx.drsConfig.enabled, edge.configurationEx.dasConfig.enabled)
connect_spec = vim.host.ConnectSpec(hostName="10.0.0.42", userName="root", password="x", force=True)
task = edge.AddHost_Task(connect_spec, True)
WaitForTask(task)
host = task.info.result
print("host", host.name, host.runtime.connectionState, host.parent.name)
WaitForTask(host.EnterMaintenanceMode_Task(0))
print("maintenance", host.runtime.inMaintenanceMode)
WaitForTask(host.Destroy_Task())
print("hosts left", len(edge.host))
WaitForTask(datacenter.Destroy_Task())
print("datacenters", [each.name for each in root.childEntity])

# Rules and groups of a cluster.
cluster = find(vim.ClusterComputeResource, "DC0_C0")
one, two = vm("DC0_C0_RP0_VM0"), vm("DC0_C0_RP0_VM1")
apart = vim.cluster.AntiAffinityRuleSpec(name="apart", enabled=True, vm=[one, two])
group = vim.cluster.VmGroup(name="web", vm=[one])
change = vim.cluster.ConfigSpecEx(
    rulesSpec=[vim.cluster.RuleSpec(operation="add", info=apart)],
    groupSpec=[vim.cluster.GroupSpec(operation="add", info=group)],
)
WaitForTask(cluster.ReconfigureComputeResource_Task(change, True))
config = cluster.configurationEx
print("rule", GetWsdlName(type(config.rule[0])), config.rule[0].name, [each.name for each in config.rule[0].vm])
print("group", GetWsdlName(type(config.group[0])), config.group[0].name, [each.name for each in config.group[0].vm])

# A host that is cut off takes its VMs along, one in maintenance gives them away.
lone, machine = find(vim.HostSystem, "DC0_H0"), vm("DC0_H0_VM0")
WaitForTask(lone.DisconnectHost_Task())
print("cut off", lone.runtime.connectionState, machine.runtime.connectionState)
refused("off while cut off", lambda: WaitForTask(machine.PowerOffVM_Task()))
WaitForTask(lone.ReconnectHost_Task())
print("back", lone.runtime.connectionState, machine.runtime.connectionState)
before = one.runtime.host
WaitForTask(before.EnterMaintenanceMode_Task(0))
print("moved", one.runtime.host != before, one.runtime.connectionState)
WaitForTask(before.ExitMaintenanceMode_Task(0))

# vApps.
app = find(vim.VirtualApp, "DC0_C0_APP0")
print("app", GetWsdlName(type(app.summary)), app.summary.vAppState, app.parent.name, app.parentFolder.name)
print("its VMs", [each.name for each in app.vm], app.vm[0].parentVApp == app, app.vm[0].resourcePool == app)
print("order", [(each.key.name, each.startOrder) for each in app.vAppConfig.entityConfig])
WaitForTask(app.PowerOffVApp_Task(False))
print("stopped", app.summary.vAppState, {each.runtime.powerState for each in app.vm})
refused("stopped twice", lambda: WaitForTask(app.PowerOffVApp_Task(False)), "existingState")
WaitForTask(app.PowerOnVApp_Task())
print("started", app.summary.vAppState, {each.runtime.powerState for each in app.vm})
refused("destroyed while on", lambda: WaitForTask(app.Destroy_Task()), "existingState")
product = vim.vApp.ProductSpec(operation="add", info=vim.vApp.ProductInfo(key=0, name="Shop", vendor="Example"))
allocation = vim.ResourceAllocationInfo(
    reservation=0, limit=-1, expandableReservation=True, shares=vim.SharesInfo(level="normal", shares=4000)
)
resources = vim.ResourceConfigSpec(cpuAllocation=allocation, memoryAllocation=allocation)
shop = cluster.resourcePool.CreateVApp("shop", resources, vim.vApp.VAppConfigSpec(product=[product], annotation="mine"))
print("made", shop.summary.product.name, shop.vAppConfig.annotation, shop.parentFolder.name)
files = vim.vm.FileInfo(vmPathName="[LocalDS_0]")
task = shop.CreateChildVM_Task(vim.vm.ConfigSpec(name="till", files=files, numCPUs=1, memoryMB=64))
WaitForTask(task)
print("child", task.info.result.name, task.info.result.parentVApp.name)
refused("same name", lambda: cluster.resourcePool.CreateVApp("shop", resources, vim.vApp.VAppConfigSpec()), "name")
shop.UpdateVAppConfig(vim.vApp.VAppConfigSpec(annotation="yours"))
print("changed", shop.vAppConfig.annotation, shop.summary.product.name)
WaitForTask(shop.Rename_Task("store"))
print("renamed", content.searchIndex.FindByInventoryPath("DC0/host/DC0_C0/Resources/store/till").name)
WaitForTask(shop.Destroy_Task())
print("gone", content.searchIndex.FindByInventoryPath("DC0/host/DC0_C0/Resources/store"), content.searchIndex.FindByInventoryPath("DC0/vm/till"))

# A switch of its own and a port group on it.
networks = find(vim.Datacenter, "DC0").networkFolder
task = networks.CreateDVS_Task(
    vim.DistributedVirtualSwitch.CreateSpec(configSpec=vim.dvs.VmwareDistributedVirtualSwitch.ConfigSpec(name="DVS1", maxMtu=9000))
)
WaitForTask(task)
switch = task.info.result
vlan = vim.dvs.VmwareDistributedVirtualSwitch.VlanIdSpec(vlanId=7, inherited=False)
ports = vim.dvs.VmwareDistributedVirtualSwitch.VmwarePortConfigPolicy(vlan=vlan)
blue = vim.dvs.DistributedVirtualPortgroup.ConfigSpec(name="blue", type="earlyBinding", numPorts=16, defaultPortConfig=ports)
WaitForTask(switch.AddDVPortgroup_Task([blue]))
blue = find(vim.dvs.DistributedVirtualPortgroup, "blue")
print("switch", switch.config.maxMtu, blue.config.numPorts, blue.config.defaultPortConfig.vlan.vlanId)
WaitForTask(switch.Destroy_Task())
print("networks", sorted(each.name for each in networks.childEntity if not each.name.startswith("DVS0-")))

# A role denies what it does not grant, to whom it is given and where.
roles = content.authorizationManager
watcher = roles.AddAuthorizationRole("watcher", ["System.Read", "VirtualMachine.Interact.PowerOff", "Authorization.ModifyPermissions"])
me = content.sessionManager.currentSession.userName
roles.SetEntityPermissions(root, [vim.AuthorizationManager.Permission(principal=me, group=False, roleId=-1, propagate=True)])
roles.SetEntityPermissions(machine, [vim.AuthorizationManager.Permission(principal=me, group=False, roleId=watcher, propagate=True)])
WaitForTask(machine.PowerOffVM_Task())
refused("not granted", lambda: machine.PowerOnVM_Task(), "privilegeId")
roles.RemoveEntityPermission(machine, me, False)
WaitForTask(machine.PowerOnVM_Task())
print("granted again", machine.runtime.powerState)
refused("the administrator's role", lambda: roles.RemoveAuthorizationRole(-1, False))
