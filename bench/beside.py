#!/usr/bin/env python3
"""Measures a hatchery on the stand-ins: what it asks of a vCenter and of a CDS at rest and per job, and what it takes itself.

    cargo build --release -p roost
    bench/beside.py --vms 100,2000,10000                       # ours
    bench/beside.py --vms 100 --run 'my-hatchery -f {config}'  # any other that reads the same file

Prints one row for each size. Only Python's standard library is needed.
"""

import argparse
import itertools
import json
import os
import re
import signal
import ssl
import subprocess
import tempfile
import time
import urllib.request

# The stand-in makes its own certificate.
UNVERIFIED = ssl._create_unverified_context()

VSPHERE = """[hatchery.vsphere]
user = "svc"
password = "x"
endpoint = "{vcenter}"
insecure = true
datacenterString = "DC0"
networkString = "DC0_DVPG0"
finishedWorkerGracePeriod = 1
workerProvisioningPoolSize = 2

[[hatchery.vsphere.workerProvisioning]]
modelVMWare = "debian12"
number = 4

[[hatchery.vsphere.models]]
modelVMWare = "debian12"
username = "root"
password = "demo"

"""


class Process:
    """A process that ends with the measurement, and what it said."""

    def __init__(self, command, folder, ready, name):
        self.out = open(os.path.join(folder, name + ".out"), "w+")
        self.log = open(os.path.join(folder, name + ".log"), "w")
        self.child = subprocess.Popen(command, cwd=folder, stdout=self.out, stderr=self.log)
        deadline = time.monotonic() + 120
        while ready and not re.search(ready, self.said()):
            if self.child.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{command} did not say {ready!r}; see {folder}")
            time.sleep(0.1)

    def said(self):
        with open(self.out.name) as file:
            return file.read()

    def cpu_seconds(self):
        with open(f"/proc/{self.child.pid}/stat") as file:
            fields = file.read().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mb(self):
        with open(f"/proc/{self.child.pid}/status") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1)) / 1024

    def end(self):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGINT)
            try:
                self.child.wait(60)
            except subprocess.TimeoutExpired:
                self.child.kill()


def ask(base, place, method="GET", body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(base.rstrip("/") + "/" + place, data, method=method)
    with urllib.request.urlopen(request, timeout=30, context=UNVERIFIED) as answer:
        text = answer.read()
    return json.loads(text) if text.strip() else None


def traffic(vcenter, cds):
    """Calls and bytes of everybody at the vCenter and at CDS; the long poll that is open counts when it is asked."""
    found = []
    for control in (vcenter, cds):
        tallies = [tally for routes in ask(control, "counters")["clients"].values() for tally in routes.values()]
        found.append(sum(tally["calls"] for tally in tallies))
        found.append(sum(tally["bytes_in"] + tally["bytes_out"] for tally in tallies))
    return found


def measure(args, vms):
    folder = tempfile.mkdtemp(prefix="roost-beside-")
    sim = [args.roost, "sim"]
    vcenter = Process(sim + ["vcenter", "--listen", "127.0.0.1:0", "--vms", str(vms), "--hosts", "20", "--tls", "--guests", "exec", "--pace", "quick", "--seed", "7", "--control"], folder, "Ctrl-C", "vcenter")
    cds = Process(sim + ["cds", "--listen", "127.0.0.1:0", "--seed", "7", "--control"], folder, "Ctrl-C", "cds")
    try:
        control = re.search(r"Control endpoint: (\S+)", vcenter.said()).group(1)
        jobs = re.search(r"Control endpoint: (\S+)", cds.said()).group(1)
        endpoint = re.search(r" on https://([\d.]+:\d+)/sdk", vcenter.said()).group(1)
        printed = cds.said()
        printed = printed[printed.index("[hatchery.vsphere.commonConfiguration]"):]
        # What is no TOML any more is for people.
        lines = itertools.takewhile(lambda line: not line or line[0] in "[#" or " = " in line, printed.splitlines())
        printed = "\n".join(lines) + "\n"
        printed = printed.replace("port = 8086", 'addr = "127.0.0.1"\nport = 0')
        config = os.path.join(folder, "roost.toml")
        subprocess.run(["cp", args.key, os.path.join(folder, "hatchery-key.pem")], check=True)
        with open(config, "w") as file:
            file.write(VSPHERE.format(vcenter=endpoint) + printed + "\nmaxWorker = 50\nmaxConcurrentProvisioning = 20\n")
        command = args.run.format(config=config).split() if args.run else [args.roost, "run", "-c", config]
        service = Process(command, folder, None if args.run else r"serves, http://", "service")
        try:
            # Until the spares are there and nothing is going on any more.
            time.sleep(args.settle)
            before, cpu = traffic(control, jobs), service.cpu_seconds()
            time.sleep(args.rest)
            after, cpu_after = traffic(control, jobs), service.cpu_seconds()
            minutes = args.rest / 60
            rest = [(b - a) / minutes for a, b in zip(before, after)]
            rest_cpu = (cpu_after - cpu) / minutes

            before, cpu = traffic(control, jobs), service.cpu_seconds()
            began = time.monotonic()
            for _ in range(args.jobs):
                ask(jobs, "jobs", "POST", {"protocol": "v2", "model": "DEMO/github/roost/models/debian12", "takes_ms": 200})
                time.sleep(args.every)
            while ask(jobs, "summary")["done"] < args.jobs:
                if time.monotonic() - began > args.patience:
                    raise SystemExit(f"{ask(jobs, 'summary')} after {args.patience:.0f} s; see {folder}")
                time.sleep(0.5)
            time.sleep(args.settle)
            after, cpu_after = traffic(control, jobs), service.cpu_seconds()
            each = [(b - a - r * (time.monotonic() - began) / 60) / args.jobs for a, b, r in zip(before, after, rest)]
            waited = sorted(job["waited_ms"] or 0 for job in ask(jobs, "jobs"))
            median, worst = waited[len(waited) // 2] / 1000, waited[-1] / 1000
            print(f"| {vms:,} | {rest[0]:.1f}, {rest[1] / 1000:.1f} kB | {rest[2]:.1f}, {rest[3] / 1000:.1f} kB | {rest_cpu * 1000:.0f} ms "
                  f"| {each[0]:.1f}, {each[1] / 1000:.1f} kB | {each[2]:.1f}, {each[3] / 1000:.1f} kB | {(cpu_after - cpu) / args.jobs * 1000:.0f} ms "
                  f"| {median:.1f} s, {worst:.1f} s | {service.resident_mb():.0f} MB |", flush=True)
        finally:
            service.end()
    finally:
        cds.end()
        vcenter.end()


def main():
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--roost", default=os.path.join(here, "target/release/roost"), help="the binary, for the stand-ins and for ours")
    parser.add_argument("--run", help="another hatchery's command; {config} is the file")
    parser.add_argument("--key", default=os.path.join(here, "crates/sim/cds-sim/keys/hatchery.pem"), help="the RSA key that the stand-in knows")
    parser.add_argument("--vms", default="100,2000,10000", help="sizes of the datacenter")
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--every", type=float, default=1.0, help="seconds between two jobs")
    parser.add_argument("--rest", type=float, default=120, help="seconds at rest that are measured")
    parser.add_argument("--settle", type=float, default=30, help="seconds before and after")
    parser.add_argument("--patience", type=float, default=900, help="seconds for all jobs to be done")
    args = parser.parse_args()
    print("| VMs | vCenter at rest, per minute | CDS at rest, per minute | CPU at rest, per minute | vCenter per job | CDS per job, its worker included | CPU per job | queued to taken by its worker, median and worst | resident |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for vms in args.vms.split(","):
        measure(args, int(vms))


if __name__ == "__main__":
    main()
