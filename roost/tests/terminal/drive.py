"""Runs a command in a pseudo terminal as a person at a keyboard would, and looks at the screen.

usage: drive.py COLUMNS LINES STEPS COMMAND...

STEPS is a JSON list, done in order:
  {"until": TEXT}   wait until TEXT is on the screen
  {"gone": TEXT}    wait until it is not
  {"type": KEYS}    type KEYS
  {"mark": FILE}    make FILE, so that somebody else knows how far this is
  {"resize": [C, L]} make the terminal so many columns and lines large
  {"signal": NAME}  send a signal, such as SIGTERM
  {"picture": ""}   keep the screen as it is

Prints a JSON object: "pictures" (each a list of lines), "code" (the exit code), "restored" (whether the terminal is
as it was), "left" (whether the other screen was left), "errors". The screen understands what a full-screen program
needs: moving the cursor, erasing, and nothing else; whatever else a program sends must not put a letter anywhere.
"""

import codecs
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
import unicodedata

PATIENCE = 60
SEQUENCE = re.compile(r"\x1b\[([?>=!]?)([0-9;:]*)([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]|\x1b[=>78cM]")


class Screen:
    def __init__(self, columns, lines):
        self.columns, self.lines = columns, lines
        self.clear()
        self.x = self.y = 0
        self.rest = ""
        self.is_other = False
        self.rang = False

    def resize(self, columns, lines):
        self.columns, self.lines = columns, lines
        self.x = self.y = 0
        self.clear()

    def clear(self):
        self.cells = [[" "] * self.columns for _ in range(self.lines)]

    def feed(self, text):
        text, self.rest = self.rest + text, ""
        at = 0
        while at < len(text):
            char = text[at]
            if char == "\x1b":
                found = SEQUENCE.match(text, at)
                if not found:
                    if len(text) - at < 64:
                        self.rest = text[at:]
                        return
                    at += 1
                    continue
                self.obey(found)
                at = found.end()
                continue
            self.put(char)
            at += 1

    def put(self, char):
        if char == "\n":
            self.y = min(self.y + 1, self.lines - 1)
        elif char == "\r":
            self.x = 0
        elif char == "\x07":
            self.rang = True
        elif char >= " ":
            width = 2 if unicodedata.east_asian_width(char) in "WF" else 1
            if unicodedata.combining(char):
                return
            if self.x + width <= self.columns:
                self.uncover(self.x)
                self.uncover(self.x + width)
                self.cells[self.y][self.x] = char
                for more in range(1, width):
                    self.cells[self.y][self.x + more] = ""
            self.x += width

    def uncover(self, x):
        """Half of a wide character is none."""
        line = self.cells[self.y]
        if 0 < x < self.columns and line[x] == "":
            line[x - 1] = line[x] = " "

    def obey(self, found):
        mark, numbers, verb = found.group(1), found.group(2), found.group(3)
        if verb is None:
            return
        numbers = [int(number or 0) for number in numbers.replace(":", ";").split(";")] if numbers else [0]
        if mark == "?" and verb in "hl" and 1049 in numbers:
            self.is_other = verb == "h"
            self.clear()
        elif verb in "Hf":
            row, column = (numbers + [0])[:2]
            self.y = min(max(row, 1), self.lines) - 1
            self.x = min(max(column, 1), self.columns) - 1
        elif verb == "J":
            if numbers[0] in (2, 3):
                self.clear()
            else:
                self.erase(self.x)
                for line in range(self.y + 1, self.lines):
                    self.cells[line] = [" "] * self.columns
        elif verb == "K":
            self.erase(self.x)
        elif verb == "C":
            self.x += max(numbers[0], 1)
        elif verb == "G":
            self.x = max(numbers[0], 1) - 1

    def erase(self, begin):
        for x in range(min(begin, self.columns), self.columns):
            self.cells[self.y][x] = " "

    def picture(self):
        return ["".join(line).rstrip() for line in self.cells]


def main():
    columns, lines, steps, command = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4:]
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    before = termios.tcgetattr(slave)
    pid = os.fork()
    if pid == 0:
        os.close(master)
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        for stream in (0, 1, 2):
            os.dup2(slave, stream)
        os.environ.update(TERM="xterm-256color")
        os.environ.pop("COLUMNS", None)
        os.environ.pop("LINES", None)
        os.execvp(command[0], command)
    screen, decode = Screen(columns, lines), codecs.getincrementaldecoder("utf-8")("replace")
    pictures, errors = [], []
    code = None

    def look(secs):
        nonlocal code
        if select.select([master], [], [], secs)[0]:
            try:
                screen.feed(decode.decode(os.read(master, 65536)))
            except OSError:
                pass
        if code is None:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)

    def look_for(secs):
        deadline = time.monotonic() + secs
        while time.monotonic() < deadline:
            look(0.02)

    def until(holds, what):
        deadline = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > deadline or (code is not None and what != "end"):
                errors.append("not seen: %s, on\n%s" % (what, "\n".join(screen.picture())))
                return False
            look(0.05)
        return True

    for step in steps:
        (verb, value), = step.items()
        if verb == "until":
            if not until(lambda: value in "\n".join(screen.picture()), value):
                break
        elif verb == "gone":
            if not until(lambda: value not in "\n".join(screen.picture()), "an end of " + value):
                break
        elif verb == "mark":
            open(value, "w").close()
        elif verb == "type":
            for key in re.findall(r"\x1b\[[A-Z0-9~]+|.", value, re.S):
                os.write(master, key.encode())
                # A lone escape is told from the beginning of a sequence by what follows it, and nobody types faster.
                look_for(0.1)
        elif verb == "resize":
            screen.resize(*value)
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", value[1], value[0], 0, 0))
        elif verb == "signal":
            os.kill(pid, getattr(signal, value))
        elif verb == "picture":
            look_for(0.4)
            pictures.append(screen.picture())
    if not errors:
        until(lambda: code is not None, "end")
    if code is None:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        code = "killed"
    look(0.1)
    restored = termios.tcgetattr(slave)[:4] == before[:4]
    print(json.dumps({
        "pictures": pictures,
        "last": screen.picture(),
        "code": code,
        "restored": restored,
        "left": not screen.is_other,
        "rang": screen.rang,
        "errors": errors,
    }))


main()
