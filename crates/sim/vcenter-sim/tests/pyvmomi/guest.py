# Programs and files inside a guest.

import ssl
import urllib.request

machine = vm("DC0_H0_VM0")
guest = content.guestOperationsManager
processes, files = guest.processManager, guest.fileManager
auth = vim.vm.guest.NamePasswordAuthentication(username="ci", password="secret", interactiveSession=False)
guest.authManager.ValidateCredentialsInGuest(machine, auth)


def start(path, arguments, **more):
    spec = vim.vm.guest.ProcessManager.ProgramSpec(programPath=path, arguments=arguments, **more)
    return processes.StartProgramInGuest(machine, auth, spec)


def ended(pid):
    """What a program came to; it is listed with its exit code after its end."""
    while True:
        [process] = processes.ListProcessesInGuest(machine, auth, [pid])
        if process.endTime:
            return process


done = ended(start("/bin/bash", "-c 'exit 3'"))
print("exit", done.exitCode, done.owner, done.startTime <= done.endTime, "bash" in done.cmdLine)
print("success", ended(start("/bin/true", "")).exitCode)
pid = start("/bin/sleep", "600")
[running] = processes.ListProcessesInGuest(machine, auth, [pid])
print("running", running.endTime, running.exitCode)
processes.TerminateProcessInGuest(machine, auth, pid)
print("terminated", ended(pid).exitCode != 0)
print("environment", *processes.ReadEnvironmentVariableInGuest(machine, auth, ["HOME"]))


def transfer(method, url, body=None):
    # The address carries the port; only the host is for the client to fill in.
    url = url.replace("://*", f"://{service._stub.host.rsplit(':', 1)[0]}")
    request = urllib.request.Request(url, data=body, method=method)
    insecure = ssl._create_unverified_context() if url.startswith("https") else None
    with urllib.request.urlopen(request, context=insecure) as answer:
        return answer.read()


body = bytes(range(256)) * 1000
mode = vim.vm.guest.FileManager.PosixFileAttributes(permissions=0o755)
files.MakeDirectoryInGuest(machine, auth, "/home/ci/in", True)
url = files.InitiateFileTransferToGuest(machine, auth, "/home/ci/in/run.sh", mode, len(body), False)
transfer("PUT", url, body)
back = files.InitiateFileTransferFromGuest(machine, auth, "/home/ci/in/run.sh")
print("transfer", back.size, transfer("GET", back.url) == body)
listed = files.ListFilesInGuest(machine, auth, "/home/ci/in")
print("listed", *((each.path, each.type, each.size, oct(each.attributes.permissions or 0)) for each in listed.files if each.type == "file"))
try:
    files.InitiateFileTransferToGuest(machine, auth, "/home/ci/in/run.sh", mode, 1, False)
except vim.fault.FileAlreadyExists as fault:
    print("taken", fault.file)
files.DeleteFileInGuest(machine, auth, "/home/ci/in/run.sh")
try:
    files.InitiateFileTransferFromGuest(machine, auth, "/home/ci/in/run.sh")
except vim.fault.FileNotFound as fault:
    print("deleted", fault.file)

# A script that was sent runs, with the environment it was given.
script = b'echo "for $JOB" > /home/ci/out\nexit 4\n'
transfer("PUT", files.InitiateFileTransferToGuest(machine, auth, "/home/ci/job.sh", mode, len(script), True), script)
print("script", ended(start("/bin/bash", "/home/ci/job.sh", envVariables=["JOB=42"], workingDirectory="/home/ci")).exitCode)
print("output", transfer("GET", files.InitiateFileTransferFromGuest(machine, auth, "/home/ci/out").url))

for step, attempt in {
    "bad login": lambda: guest.authManager.ValidateCredentialsInGuest(
        machine, vim.vm.guest.NamePasswordAuthentication(username="ci", password="", interactiveSession=False)
    ),
    "no such process": lambda: processes.TerminateProcessInGuest(machine, auth, 999999),
}.items():
    try:
        attempt()
        print(step, "went through")
    except vim.fault.GuestOperationsFault as fault:
        print(step, type(fault).__name__.rsplit(".", 1)[1])
WaitForTask(machine.PowerOffVM_Task())
try:
    start("/bin/true", "")
except vim.fault.InvalidPowerState as fault:
    print("off", fault.existingState)
