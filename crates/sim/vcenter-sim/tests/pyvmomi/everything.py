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
kinds = {type(entity): entity for entity in view.view}
for entity in kinds.values():
    for prop in entity._GetPropertyList():
        try:
            getattr(entity, prop.name)
        except vmodl.fault.MethodNotFound:
            pass  # newer than the API version of this server
        except vmodl.query.InvalidProperty:
            print("cannot read", type(entity).__name__, prop.name)
