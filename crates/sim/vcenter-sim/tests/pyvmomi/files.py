# Files of a datastore: made, uploaded, searched, read back, moved, deleted.

import ssl
import urllib.error
import urllib.request

store = find(vim.Datastore, "LocalDS_0")
datacenter = find(vim.Datacenter, "DC0")
files, browser = content.fileManager, store.browser
BODY = bytes(range(256)) * 5000


def transfer(method, path, body=None):
    """One request to the datastore's HTTP door, with the cookie of the session."""
    address = service._stub.host
    scheme = "https" if sys.argv[1].startswith("https") else "http"
    url = f"{scheme}://{address}/folder/{path}?dcPath=DC0&dsName=LocalDS_0"
    request = urllib.request.Request(url, data=body, method=method)
    request.add_header("Cookie", service._stub.cookie)
    insecure = ssl._create_unverified_context() if scheme == "https" else None
    with urllib.request.urlopen(request, context=insecure) as answer:
        return answer.status, answer.read()


def search(path, **spec):
    details = vim.host.DatastoreBrowser.FileInfo.Details(fileType=True, fileSize=True, modification=True)
    spec = vim.host.DatastoreBrowser.SearchSpec(details=details, **spec)
    task = browser.SearchDatastore_Task(path, spec)
    WaitForTask(task)
    found = task.info.result
    return sorted((type(each).__name__.rsplit(".", 1)[1], each.path, each.fileSize) for each in found.file)


files.MakeDirectory("[LocalDS_0] iso/a", datacenter, True)
files.MakeDirectory("[LocalDS_0] iso/a", datacenter, True)
print("uploaded", transfer("PUT", "iso/a/boot.iso", BODY)[0] in (200, 201))
print("found", *search("[LocalDS_0] iso/a"))
print("by pattern", *search("[LocalDS_0] iso/a", matchPattern=["*.iso"]), *search("[LocalDS_0] iso/a", matchPattern=["*.vmdk"]))
print("the same", transfer("GET", "iso/a/boot.iso")[1] == BODY)

WaitForTask(files.MoveDatastoreFile_Task("[LocalDS_0] iso/a/boot.iso", datacenter, "[LocalDS_0] iso/b.iso", datacenter, False))
print("moved", *search("[LocalDS_0] iso"))
all_below = browser.SearchDatastoreSubFolders_Task("[LocalDS_0] iso", vim.host.DatastoreBrowser.SearchSpec())
WaitForTask(all_below)
print("folders", *sorted(each.folderPath for each in all_below.info.result))

for step, attempt in {
    "made twice": lambda: files.MakeDirectory("[LocalDS_0] iso/a", datacenter, False),
    "no parent": lambda: files.MakeDirectory("[LocalDS_0] x/y", datacenter, False),
    "no such folder": lambda: search("[LocalDS_0] nowhere"),
    "no such file": lambda: WaitForTask(files.DeleteDatastoreFile_Task("[LocalDS_0] iso/a/boot.iso", datacenter)),
    "no such store": lambda: files.MakeDirectory("[elsewhere] x", datacenter, False),
}.items():
    try:
        attempt()
        print(step, "went through")
    except vim.fault.FileFault as fault:
        print(step, type(fault).__name__.rsplit(".", 1)[1], fault.file)
    except vim.fault.InvalidDatastore as fault:
        print(step, type(fault).__name__.rsplit(".", 1)[1], fault.name)
try:
    transfer("GET", "iso/a/boot.iso")
except urllib.error.HTTPError as error:
    print("download of nothing", error.code)

WaitForTask(files.DeleteDatastoreFile_Task("[LocalDS_0] iso", datacenter))
print("deleted", not any(path == "iso" for _, path, _ in search("[LocalDS_0]")))
