# Every property of every object. pyVmomi refuses elements that its schema does not have, and types in the wrong place.

import http.client
import json
from urllib.parse import urlsplit

from pyVmomi.VmomiSupport import GetWsdlName, ManagedObject

pc = vmodl.query.PropertyCollector


def read_all(kind, objects):
    spec = pc.FilterSpec(objectSet=objects, propSet=[pc.PropertySpec(type=kind, all=True, pathSet=[])])
    answer = content.propertyCollector.RetrievePropertiesEx([spec], pc.RetrieveOptions())
    found = list(answer.objects)
    while answer.token:
        answer = content.propertyCollector.ContinueRetrievePropertiesEx(answer.token)
        found += answer.objects
    for each in found:
        assert not each.missingSet, f"{each.obj}: {each.missingSet}"
        known = {prop.name for prop in each.obj._GetPropertyList()}
        unknown = {prop.name for prop in each.propSet} - known
        assert not unknown, f"{each.obj}: {unknown}"
    return found


view = content.viewManager.CreateContainerView(content.rootFolder, None, True)
through = pc.TraversalSpec(path="view", skip=False, type=type(view))
entities = read_all(vim.ManagedEntity, [pc.ObjectSpec(obj=view, skip=True, selectSet=[through])])
counts = {}
for each in entities:
    kind = type(each.obj).__name__.rsplit(".", 1)[1]
    counts[kind] = counts.get(kind, 0) + 1
print("entities", *(f"{kind}:{counts[kind]}" for kind in sorted(counts)))

managers = [each for each in vars(content).values() if isinstance(each, ManagedObject)]
print("managers", len(managers) > 15)


def references(value):
    """The objects that a value names, however deep."""
    if isinstance(value, ManagedObject):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from references(each)
    elif isinstance(value, vmodl.DynamicData):
        for prop in value._GetPropertyList():
            yield from references(getattr(value, prop.name))


# From there to whatever they name: browsers, snapshots, tasks, managers of managers.
known = {each.obj for each in entities}
waiting = [service, *managers, *references([prop.val for each in entities for prop in each.propSet])]
while waiting:
    obj = waiting.pop()
    if obj in known:
        continue
    known.add(obj)
    [found] = read_all(type(obj), [pc.ObjectSpec(obj=obj)])
    assert found.obj == obj
    waiting += references([prop.val for prop in found.propSet])
print("others", len(known) - len(entities) > len(managers))

# The same one by one, as attributes, also where a value is unset.
kinds = {type(obj): obj for obj in known}
read = 0
for obj in kinds.values():
    for prop in obj._GetPropertyList():
        try:
            getattr(obj, prop.name)
            read += 1
        except vmodl.fault.MethodNotFound:
            pass  # newer than the API version of this server
        except vmodl.query.InvalidProperty:
            print("cannot read", type(obj).__name__, prop.name)
print("attributes", read > 200)

# What a manager is asked that nobody has modelled is a fault of the schema.
server = urlsplit(sys.argv[1])


def ask(method, path, body=None):
    connection = http.client.HTTPConnection(server.hostname, server.port)
    connection.request(method, path, body, {"Cookie": service._stub.cookie, "Content-Type": "text/xml"})
    return connection.getresponse().read().decode()


served = set(json.loads(ask("GET", "/about"))["methods"])
others = (vim.ManagedEntity, vim.Task, vim.vm.Snapshot, vim.view.View, vim.host.DatastoreBrowser, vim.EnvironmentBrowser)
others += (vmodl.query.PropertyCollector, vim.alarm.Alarm)
managers = {kind: obj for kind, obj in kinds.items() if not isinstance(obj, others)}
asked = set()
for kind, obj in managers.items():
    for info in kind._GetMethodList():
        if info.wsdlName in served:
            continue
        this = f'<_this type="{GetWsdlName(kind)}">{obj._moId}</_this>'
        call = f'<{info.wsdlName} xmlns="urn:vim25">{this}</{info.wsdlName}>'
        envelope = f'<Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/"><Body>{call}</Body></Envelope>'
        if "NotSupportedFault" not in ask("POST", "/sdk", envelope):
            print("cannot ask", GetWsdlName(kind), info.wsdlName)
        asked.add(kind)
print("not modelled", len(asked) > 40, vim.host.NetworkSystem in asked, vim.vm.guest.AliasManager in asked)
