# Every property of every object. pyVmomi refuses elements that its schema does not have, and types in the wrong place.

from pyVmomi.VmomiSupport import ManagedObject

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
for manager in managers:
    found = read_all(type(manager), [pc.ObjectSpec(obj=manager)])
    assert [each.obj for each in found] == [manager], manager
read_all(vim.ServiceInstance, [pc.ObjectSpec(obj=service)])

# The same one by one, as attributes, also where a value is unset.
kinds = {type(entity): entity for entity in view.view}
for entity in kinds.values():
    for prop in entity._GetPropertyList():
        try:
            getattr(entity, prop.name)
        except vmodl.fault.MethodNotFound:
            pass  # newer than the API version of this server
        except vmodl.query.InvalidProperty:
            print("cannot read", type(entity).__name__, prop.name)
