# What the scripts share. It stands in front of each of them; `connect` is the harness's.

import atexit
import sys

from pyVim.connect import Disconnect
from pyVim.task import WaitForTask
from pyVmomi import vim, vmodl

service = connect(sys.argv[1])
atexit.register(Disconnect, service)
content = service.content


def find(kind, name):
    """The one object of a kind and name."""
    view = content.viewManager.CreateContainerView(content.rootFolder, [kind], True)
    found = [entity for entity in view.view if entity.name == name]
    view.Destroy()
    assert len(found) == 1, f"{len(found)} of {name}"
    return found[0]


def vm(name):
    return find(vim.VirtualMachine, name)


def watching(kind, paths, container=None):
    """A filter specification for all objects of a kind below a container, and the view that it goes through."""
    view = content.viewManager.CreateContainerView(container or content.rootFolder, [kind], True)
    pc = vmodl.query.PropertyCollector
    through = pc.TraversalSpec(name="view", path="view", skip=False, type=type(view))
    objects = [pc.ObjectSpec(obj=view, skip=True, selectSet=[through])]
    return pc.FilterSpec(objectSet=objects, propSet=[pc.PropertySpec(type=kind, pathSet=paths)]), view


def events_of(entity):
    """All events about one object, oldest first."""
    by_entity = vim.event.EventFilterSpec.ByEntity(entity=entity, recursion="self")
    found = content.eventManager.QueryEvents(vim.event.EventFilterSpec(entity=by_entity))
    return sorted(found, key=lambda event: event.key)
