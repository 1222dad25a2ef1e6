# All VMs through a container view, page by page.

spec, view = watching(vim.VirtualMachine, ["name", "runtime.powerState", "guest.ipAddress"])
collector = content.propertyCollector
page = collector.RetrievePropertiesEx([spec], vmodl.query.PropertyCollector.RetrieveOptions())
pages, vms = [], {}
while page:
    pages.append(len(page.objects))
    for found in page.objects:
        vms[found.obj] = {each.name: each.val for each in found.propSet}
    page = collector.ContinueRetrievePropertiesEx(page.token) if page.token else None

print("pages", *pages)
print("vms", len(vms), "in the view", len(view.view))
print("names", len({vm["name"] for vm in vms.values()}))
print("power", *sorted({vm["runtime.powerState"] for vm in vms.values()}))
print("addresses", len({vm["guest.ipAddress"] for vm in vms.values()}))

# A page may be asked to be smaller, never larger.
for asked in 7, 1000:
    page = collector.RetrievePropertiesEx([spec], vmodl.query.PropertyCollector.RetrieveOptions(maxObjects=asked))
    print("asked", asked, "got", len(page.objects), "more" if page.token else "all")
    collector.CancelRetrievePropertiesEx(page.token)
view.Destroy()
try:
    view.view
except vmodl.fault.ManagedObjectNotFound as fault:
    print("gone", fault.obj == view)
