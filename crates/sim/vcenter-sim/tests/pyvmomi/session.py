# Logging in, being thrown out, and what is told about it.

from pyVim.connect import SmartConnect

print("user", content.sessionManager.currentSession.userName)
print("listed", len(content.sessionManager.sessionList))
other = connect(sys.argv[1])
mine = content.sessionManager.currentSession.key
theirs = other.content.sessionManager.currentSession.key
print("two", mine != theirs, len(content.sessionManager.sessionList))
content.sessionManager.TerminateSession([theirs])
try:
    other.CurrentTime()
except vim.fault.NotAuthenticated as fault:
    print("thrown out", fault.privilegeId, bool(fault.msg))
try:
    content.sessionManager.TerminateSession([mine])
except vmodl.fault.InvalidArgument as fault:
    print("not oneself", fault.invalidProperty)
print("active", content.sessionManager.SessionIsActive(mine, content.sessionManager.currentSession.userName))
print("left", len(content.sessionManager.sessionList))
try:
    connect(sys.argv[2])
except vim.fault.InvalidLogin as fault:
    print("wrong password", bool(fault.msg))

# What lives in a session ends with it, also for the one who had it.
view = content.viewManager.CreateContainerView(content.rootFolder, [vim.Folder], True)
content.sessionManager.Logout()
try:
    view.view
except vim.fault.NotAuthenticated as fault:
    print("logged out")
