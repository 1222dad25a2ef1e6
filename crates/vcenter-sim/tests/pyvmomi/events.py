# What has happened, asked for once and followed.

events = content.eventManager
template = vm("debian12")
