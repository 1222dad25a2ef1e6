# What has happened: asked for once, followed with a collector, scrolled through.

from datetime import timedelta

manager = content.eventManager
machine = vm("DC0_H0_VM0")
begin = service.CurrentTime() - timedelta(minutes=1)


def name_of(event):
    return type(event).__name__.rsplit(".", 1)[1]


collector = manager.CreateCollectorForEvents(
    vim.event.EventFilterSpec(entity=vim.event.EventFilterSpec.ByEntity(entity=content.rootFolder, recursion="all"))
)
collector.SetCollectorPageSize(3)
WaitForTask(machine.PowerOffVM_Task())
WaitForTask(machine.Rename_Task("renamed"))
WaitForTask(machine.ReconfigVM_Task(vim.vm.ConfigSpec(annotation="noted", numCPUs=2)))

story = events_of(machine)
print("story", *[name_of(event) for event in story if name_of(event) != "TaskEvent"])
print("keys rise", all(first.key < second.key for first, second in zip(story, story[1:])))
renamed = next(event for event in story if isinstance(event, vim.event.VmRenamedEvent))
print("renamed", renamed.oldName, renamed.newName, renamed.fullFormattedMessage)
print("about", renamed.vm.vm == machine, renamed.datacenter.name, renamed.host.name, renamed.userName == sys.argv[2])
print("chain", renamed.chainId in {event.key for event in story if name_of(event) == "TaskEvent"})
changed = next(event for event in story if isinstance(event, vim.event.VmReconfiguredEvent))
print("changed", changed.configSpec.annotation, changed.configSpec.numCPUs)

# By class, by a base class, by time, by count.
spec = vim.event.EventFilterSpec
only = manager.QueryEvents(spec(eventTypeId=["VmRenamedEvent", "VmPoweredOffEvent"]))
print("by class", *sorted(name_of(event) for event in only))
print("by time", len(manager.QueryEvents(spec(time=spec.ByTime(beginTime=begin), eventTypeId=["VmRenamedEvent"]))))
print("before that", len(manager.QueryEvents(spec(time=spec.ByTime(endTime=begin)))))
print("of one", len(manager.QueryEvents(spec(maxCount=1))))
below = spec.ByEntity(entity=machine.parent, recursion="children")
print("of children", len(manager.QueryEvents(spec(entity=below, eventTypeId=["VmRenamedEvent"]))))
nothing = spec.ByEntity(entity=machine.parent, recursion="self")
print("of the folder", len(manager.QueryEvents(spec(entity=nothing, eventTypeId=["VmRenamedEvent"]))))
without = manager.QueryEvents(spec(eventTypeId=["VmRenamedEvent"], disableFullMessage=True))
print("without text", without[0].fullFormattedMessage)

# The collector has its newest page, and a cursor that goes both ways.
page = collector.latestPage
print("page", len(page), page[0].key > page[-1].key)
collector.RewindCollector()
forth = []
while more := collector.ReadNextEvents(2):
    forth += [event.key for event in more]
print("forth", forth == sorted(forth), len(forth) >= len(story))
collector.ResetCollector()
back = [event.key for event in collector.ReadPreviousEvents(2)]
print("back", len(back))
print("latest", manager.latestEvent.key == max(event.key for event in manager.QueryEvents(spec())))

# A watch on the page is told of what comes.
pc = vmodl.query.PropertyCollector
watcher = content.propertyCollector.CreatePropertyCollector()
watcher.CreateFilter(
    pc.FilterSpec(
        objectSet=[pc.ObjectSpec(obj=collector)],
        propSet=[pc.PropertySpec(type=vim.event.EventHistoryCollector, pathSet=["latestPage"])],
    ),
    False,
)
update = watcher.WaitForUpdatesEx("", pc.WaitOptions(maxWaitSeconds=10))
WaitForTask(machine.PowerOnVM_Task())
seen = set()
while "VmPoweredOnEvent" not in seen and "DrsVmPoweredOnEvent" not in seen:
    update = watcher.WaitForUpdatesEx(update.version, pc.WaitOptions(maxWaitSeconds=10))
    for change in update.filterSet[0].objectSet[0].changeSet:
        seen |= {name_of(event) for event in change.val}
print("told of power")
watcher.Destroy()
collector.DestroyCollector()
print("categories", {info.key: info.category for info in manager.description.eventInfo}[vim.event.VmRenamedEvent])
