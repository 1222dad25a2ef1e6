# Ways to a VM and its disks, and what is known of both.

import base64
import http.client
import re
from urllib.parse import unquote, urlsplit

from pyVmomi.VmomiSupport import GetWsdlName


def refused(step, attempt, *fields):
    try:
        attempt()
        print(step, "went through")
    except vmodl.MethodFault as fault:
        print(step, GetWsdlName(type(fault)), *[getattr(fault, name) for name in fields])


server = urlsplit(sys.argv[1])


def ask(method, path, body=None, login=True):
    connection = http.client.HTTPConnection(server.hostname, server.port)
    user = f"{unquote(server.username)}:{unquote(server.password)}"
    headers = {"Authorization": "Basic " + base64.b64encode(user.encode()).decode()} if login else {}
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


# Files with a login and nothing else; an unknown place hears a client out before it says so.
file = "/folder/note.txt?dcPath=DC0&dsName=LocalDS_0"
print("basic", ask("PUT", file, b"hello")[0], ask("GET", file)[1], ask("GET", file, login=False)[0])
print("nowhere", ask("POST", "/no/such/place", b"x" * (8 << 20))[0])
print("nobody", ask("PUT", file, b"x" * (8 << 20), login=False)[0])
for place in (
    "/nfc/none/disk.vmdk",
    "/nfc/none",
    "/cls/data/none/disk.vmdk",
    "/cls/data/none",
    "/guestFile?id=1&token=none",
    "/folder/no/folder/x.iso?dcPath=DC0&dsName=LocalDS_0",
    "/folder/x.iso?dcPath=DC0&dsName=none",
):
    print("heard out", place, ask("PUT", place, b"x" * (8 << 20))[0])

# What a VM is: all filled in, and what nobody has modelled is unset.
machine = vm("DC0_H0_VM0")
print("capability", machine.capability.snapshotOperationsSupported, machine.capability.bootOptionsSupported)
print("layout", list(machine.layout.configFile), [re.sub(r".*/", "", name) for disk in machine.layout.disk for name in disk.diskFile])
print("layoutEx", sorted({each.type for each in machine.layoutEx.file}))
print("storage", machine.storage.perDatastoreUsage[0].datastore.name, machine.storage.perDatastoreUsage[0].committed > 0)
print("unset", machine.config.ftInfo, machine.runtime.question, len(machine.triggeredAlarmState))
print("devices", *sorted(f"{each.deviceInfo.label}: {each.deviceInfo.summary}" for each in machine.config.hardware.device), sep="\n  ")

# Managers that are not modelled exist.
print("managers", content.alarmManager is not None, content.scheduledTaskManager is not None)
refused("an alarm", lambda: content.alarmManager.GetAlarm(None))
refused("a view of no entity", lambda: content.viewManager.CreateContainerView(content.rootFolder, [vim.Task], True))

# A VM without a system says nothing about a guest; what is not there yet can be connected.
datacenter, pool = find(vim.Datacenter, "DC0"), find(vim.ClusterComputeResource, "DC0_C0").resourcePool
serial = vim.vm.device.VirtualSerialPort(
    key=-1,
    yieldOnPoll=True,
    backing=vim.vm.device.VirtualSerialPort.FileBackingInfo(fileName="[LocalDS_0] empty/serial.log"),
    connectable=vim.vm.device.VirtualDevice.ConnectInfo(startConnected=True, allowGuestControl=True, connected=False),
)
drive = vim.vm.device.VirtualCdrom(
    key=-2,
    controllerKey=200,
    backing=vim.vm.device.VirtualCdrom.IsoBackingInfo(fileName="[LocalDS_0] iso/later.iso"),
    connectable=vim.vm.device.VirtualDevice.ConnectInfo(startConnected=True, allowGuestControl=True, connected=False),
)
add = [vim.vm.device.VirtualDeviceSpec(operation="add", device=each) for each in (serial, drive)]
spec = vim.vm.ConfigSpec(
    name="empty", files=vim.vm.FileInfo(vmPathName="[LocalDS_0]"), numCPUs=1, memoryMB=64, deviceChange=add
)
task = datacenter.vmFolder.CreateVM_Task(spec, pool)
WaitForTask(task)
empty = task.info.result
WaitForTask(empty.PowerOnVM_Task())
connected = [
    (GetWsdlName(type(each)), each.connectable.connected)
    for each in empty.config.hardware.device
    if each.connectable and GetWsdlName(type(each)) in ("VirtualSerialPort", "VirtualCdrom")
]
print("connected", connected)
WaitForTask(empty.PowerOffVM_Task())
both = [each for each in empty.config.hardware.device if GetWsdlName(type(each)) in ("VirtualSerialPort", "VirtualCdrom")]
remove = [vim.vm.device.VirtualDeviceSpec(operation="remove", device=each) for each in both]
WaitForTask(empty.ReconfigVM_Task(vim.vm.ConfigSpec(deviceChange=remove)))
device = vim.vm.device
new = [
    device.VirtualSerialPort(key=-1, yieldOnPoll=True, backing=device.VirtualSerialPort.URIBackingInfo(serviceURI="telnet://:9001", direction="server")),
    device.VirtualSerialPort(key=-2, yieldOnPoll=True, backing=device.VirtualSerialPort.FileBackingInfo(fileName="[LocalDS_0] empty/com2.log")),
    device.VirtualParallelPort(key=-3, backing=device.VirtualParallelPort.FileBackingInfo(fileName="[LocalDS_0] empty/lpt.log")),
    device.VirtualFloppy(key=-4, backing=device.VirtualFloppy.RemoteDeviceBackingInfo(deviceName="", useAutoDetect=True)),
    device.VirtualTPM(key=-5),
    device.VirtualHdAudioCard(key=-6, backing=device.VirtualSoundCard.DeviceBackingInfo(deviceName="", useAutoDetect=True)),
    device.VirtualUSBXHCIController(key=-7, busNumber=0),
    device.VirtualNVMEController(key=-8, busNumber=0),
]
before = {each.key for each in empty.config.hardware.device}
add = [device.VirtualDeviceSpec(operation="add", device=each) for each in new]
WaitForTask(empty.ReconfigVM_Task(vim.vm.ConfigSpec(deviceChange=add)))
added = [each for each in empty.config.hardware.device if each.key not in before]
print("added", *sorted(f"{each.deviceInfo.label}: {each.deviceInfo.summary}" for each in added), sep="\n  ")
first = [each for each in added if each.deviceInfo.label == "Serial port 1"]
change = [device.VirtualDeviceSpec(operation="remove", device=first[0]), device.VirtualDeviceSpec(operation="add", device=new[0])]
WaitForTask(empty.ReconfigVM_Task(vim.vm.ConfigSpec(deviceChange=change)))
ports = [each.deviceInfo.label for each in empty.config.hardware.device if isinstance(each, device.VirtualSerialPort)]
print("numbered", sorted(ports))
WaitForTask(empty.PowerOnVM_Task())
print("empty", empty.guest.toolsStatus, empty.guest.ipAddress, empty.guest.guestState)
WaitForTask(empty.PowerOffVM_Task())
WaitForTask(empty.UpgradeVM_Task())
refused("newest hardware", lambda: WaitForTask(empty.UpgradeVM_Task()))
path = empty.config.files.vmPathName
empty.UnregisterVM()
task = datacenter.vmFolder.RegisterVM_Task(path, None, False, pool)
WaitForTask(task)
print("registered", task.info.result.name)

# Guest files are fetched where the server is.
auth = vim.vm.guest.NamePasswordAuthentication(username="ci", password="ci", interactiveSession=False)
address = content.guestOperationsManager.fileManager.InitiateFileTransferToGuest(
    machine, auth, "/tmp/x", vim.vm.guest.FileManager.FileAttributes(), 1, True
)
print("address", urlsplit(address).netloc == f"*:{server.port}")

# A linked clone gets a disk of its own.
template = vm("debian12")
clone = vim.vm.CloneSpec(
    location=vim.vm.RelocateSpec(pool=pool, diskMoveType="moveChildMostDiskBacking"), powerOn=True, template=False
)
task = template.CloneVM_Task(datacenter.vmFolder, "linked", clone)
WaitForTask(task)
linked = task.info.result


def parents():
    return [each.backing.parent is not None for each in linked.config.hardware.device if isinstance(each, vim.vm.device.VirtualDisk)]


print("linked", parents())
WaitForTask(linked.PromoteDisks_Task(True))
print("promoted", parents())
task = linked.InstantClone_Task(vim.vm.InstantCloneSpec(name="fork", location=vim.vm.RelocateSpec()))
WaitForTask(task)
print("fork", task.info.result.runtime.powerState)
print("ticket", len(content.sessionManager.AcquireCloneTicket()) > 10)

# Disks as files and as objects of their own.
disks = content.virtualDiskManager
blank = vim.VirtualDiskManager.FileBackedVirtualDiskSpec(diskType="thin", adapterType="lsiLogic", capacityKb=1 << 20)
WaitForTask(disks.CreateVirtualDisk_Task("[LocalDS_0] blank.vmdk", datacenter, blank))
refused("made twice", lambda: WaitForTask(disks.CreateVirtualDisk_Task("[LocalDS_0] blank.vmdk", datacenter, blank)), "file")
WaitForTask(disks.ExtendVirtualDisk_Task("[LocalDS_0] blank.vmdk", datacenter, 2 << 20))
WaitForTask(disks.CopyVirtualDisk_Task("[LocalDS_0] blank.vmdk", datacenter, "[LocalDS_0] copy.vmdk", datacenter))
WaitForTask(disks.DeleteVirtualDisk_Task("[LocalDS_0] blank.vmdk", datacenter))
print("disk", len(disks.QueryVirtualDiskUuid("[LocalDS_0] copy.vmdk", datacenter).split()) > 1)
store = find(vim.Datastore, "LocalDS_0")
objects = content.vStorageObjectManager
backing = vim.vslm.CreateSpec.DiskFileBackingSpec(datastore=store, provisioningType="thin")
task = objects.CreateDisk_Task(vim.vslm.CreateSpec(name="data", capacityInMB=10, backingSpec=backing))
WaitForTask(task)
disk = task.info.result
print("object", disk.config.name, disk.config.capacityInMB, [each.id for each in objects.ListVStorageObject(store)] == [disk.config.id.id])
WaitForTask(objects.DeleteVStorageObject_Task(disk.config.id, store))
print("objects", len(objects.ListVStorageObject(store)))

# Storage clusters recommend the member with the most room; a specification is kept by name.
pod = datacenter.datastoreFolder.CreateStoragePod("pod")
WaitForTask(pod.MoveIntoFolder_Task([find(vim.Datastore, "LocalDS_1"), find(vim.Datastore, "LocalDS_2")]))
print("pod", sorted(each.name for each in pod.childEntity), pod.summary.capacity > 0)
selection = vim.storageDrs.PodSelectionSpec(storagePod=pod)
placement = vim.storageDrs.StoragePlacementSpec(
    type="create",
    podSelectionSpec=selection,
    configSpec=vim.vm.ConfigSpec(name="placed", numCPUs=1, memoryMB=64, files=vim.vm.FileInfo(vmPathName="")),
    resourcePool=pool,
    folder=datacenter.vmFolder,
)
found = content.storageResourceManager.RecommendDatastores(placement)
print("recommended", found.recommendations[0].action[0].destination.name in ("LocalDS_1", "LocalDS_2"))
custom = vim.vm.customization
prep = custom.LinuxPrep(hostName=custom.VirtualMachineNameGenerator(), domain="local", timeZone="UTC", hwClockUTC=True)
item = vim.CustomizationSpecItem(
    info=vim.CustomizationSpecInfo(name="linux", description="", type="Linux"),
    spec=custom.Specification(identity=prep, globalIPSettings=custom.GlobalIPSettings(), nicSettingMap=[]),
)
content.customizationSpecManager.CreateCustomizationSpec(item)
print("specification", content.customizationSpecManager.DoesCustomizationSpecExist("linux"))
checker = content.vmCompatibilityChecker
task = checker.CheckVmConfig_Task(vim.vm.ConfigSpec(numCPUs=4000), linked)
WaitForTask(task)
print("checked", [GetWsdlName(type(each.fault)) if hasattr(each, "fault") else GetWsdlName(type(each)) for result in task.info.result for each in result.error])
placed = find(vim.ClusterComputeResource, "DC0_C0").PlaceVm(
    vim.cluster.PlacementSpec(placementType="create", configSpec=vim.vm.ConfigSpec(name="n", numCPUs=1, memoryMB=64, files=vim.vm.FileInfo(vmPathName="")))
)
print("placed", placed.recommendations[0].action[0].targetHost.parent.name)
