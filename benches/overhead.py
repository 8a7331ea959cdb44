#!/usr/bin/env python3
"""What pleach itself takes for a stage instance: a study of a workflow that computes nothing, on a manager and worker
processes over QUIC on loopback, certificates at both ends, every response on disk before its worker may forget it.

    benches/overhead.py [--instances 100000] [--workers 2 8] [--bucket 100] [--pleach PATH] [--peers]

Prints wall and manager microseconds a stage instance (a bucket each), and a task within buckets, from the first grant to the
last report; those of planning and of the results are beside. With --peers the same
number of empty tasks on Dask distributed and Ray, where they are installed: said, where not.
"""

import argparse
import http.client
import json
import os
import pathlib
import ssl
import subprocess
import sys
import tempfile
import time
import typing

TICKS = os.sysconf("SC_CLK_TCK")

# Study file of other benches as well.
MOAT = """[study]
name = "{name}"
workflow = "nuclei"
seed = {seed}
[input]
tiles = ["{tiles}"]
normalize = true
reference = "defaults"
[method]
kind = "moat"
trajectories = {trajectories}
levels = 20
[response]
metric = "dice"
"""


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def peak_megabytes(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1000


class Times(typing.NamedTuple):
    """Of planning, of the execution, and of the results."""

    wall: list
    cpu: list


class Client:
    """A connection to the manager's HTTP interface, with a client's certificate."""

    def __init__(self, cluster):
        context = ssl.create_default_context(cafile=cluster.folder / "ca/me/node.pem")
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.load_cert_chain(cluster.folder / "ca/me/node.pem", cluster.folder / "ca/me/node-key.pem")
        self.connection = http.client.HTTPSConnection(cluster.http.removeprefix("https://"), context=context, timeout=120)

    def get(self, path):
        try:
            self.connection.request("GET", path)
            answer = self.connection.getresponse()
        except http.client.RemoteDisconnected:  # the manager closes idle connections
            self.connection.close()
            self.connection.request("GET", path)
            answer = self.connection.getresponse()
        body = answer.read()
        assert answer.status == 200, (path, answer.status, body[:200])
        return body


class Cluster:
    """A manager and workers of one slot each, which ask for so many buckets ahead."""

    window = 128
    memory = "500MB"

    def settle(self, pleach, folder, workers):
        """A folder with the certificates that everybody needs."""
        self.pleach, self.folder, self.processes = pleach, folder, []
        if not (folder / "ca").exists():
            self.call("certs", "init", "--dir", "ca")
        for name, role in [("boss", "manager"), ("me", "client")] + [(f"w{n}", "worker") for n in range(workers)]:
            if not (folder / "ca" / name).exists():
                self.call("certs", "issue", "--dir", "ca", "--name", name, "--role", role)

    def __init__(self, pleach, folder, workers):
        self.settle(pleach, folder, workers)
        log = folder / f"manager-{workers}.log"
        state = tempfile.mkdtemp(dir=folder)
        self.manager = self.start(
            log, "manager", "--state", state, "--certs", "ca/boss", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"
        )
        while "workers connect to" not in log.read_text():
            time.sleep(0.05)
        line = next(line for line in log.read_text().splitlines() if "workers connect to" in line)
        listen, http = line.split("connect to ")[1].split(", clients to ")
        self.listen, self.http = listen, http
        for number in range(workers):
            self.start(
                folder / f"w{number}.log", "worker", "--manager", listen, "--certs", f"ca/w{number}", "--cores", "1",
                "--memory", self.memory, "--listen", "127.0.0.1:0", "--prefetch-buckets", str(self.window),
            )
        while log.read_text().count("joined with") < workers:
            time.sleep(0.05)

    def start(self, log, *args):
        process = subprocess.Popen([self.pleach, *args], cwd=self.folder, stdout=open(log, "w"))
        self.processes.append(process)
        return process

    def call(self, *args):
        answer = subprocess.run([self.pleach, *args], cwd=self.folder, check=True, capture_output=True, text=True)
        return answer.stdout

    def ask(self, *args):
        return self.call(*args, "--manager", self.http, "--certs", "ca/me")

    def run(self, *options):
        """Seconds of a study, and processor seconds of the manager: for planning, for the execution, and for the results."""
        clock = lambda: (time.monotonic(), cpu_seconds(self.manager.pid))
        times = [clock()]
        study = self.ask("submit", "study.toml", *options).strip()
        client = Client(self)
        # A connection of its own, because each call of the program takes the manager a handshake.
        state = lambda: json.loads(client.get(f"/api/v1/studies/{study}"))
        while (now := state())["state"] in ("queued", "running"):
            # Tasks remain from the end of the planning to the last report.
            if now["remaining_tasks"] > 0 and len(times) == 1 or now["remaining_tasks"] == 0 and len(times) == 2:
                times.append(clock())
            time.sleep(0.05)
        assert now["state"] == "complete" and now["failed"] == 0, now
        times += [clock()] * (4 - len(times))
        walls, cpus = zip(*times)
        return Times([b - a for a, b in zip(walls, walls[1:])], [b - a for a, b in zip(cpus, cpus[1:])])

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()


def study(folder, instances):
    (folder / "study.toml").write_text(
        '[study]\nname = "noop"\nworkflow = "noop"\nseed = 1\n[input]\ntiles = ["tiles/tissue_01.png"]\n'
        '[method]\nkind = "table"\nfile = "samples.csv"\n[response]\nmetric = "n"\n'
    )
    (folder / "samples.csv").write_text("n\n" + "".join(f"{n}\n" for n in range(instances)))


def ours(args, folder):
    subprocess.run(
        [args.pleach, "tissue", "--out", "tiles", "--size", "64", "--count", "1"], cwd=folder, check=True, capture_output=True
    )
    study(folder, args.instances)
    for workers in args.workers:
        for name, options in [
            ("stage instance", ["--strategy", "stage"]),
            (f"task in buckets of {args.bucket}", ["--strategy", "naive", "--max-bucket-size", str(args.bucket)]),
        ]:
            cluster = Cluster(args.pleach, folder, workers)
            try:
                times = cluster.run(*options)
                peak = max(peak_megabytes(process.pid) for process in cluster.processes[1:]), peak_megabytes(cluster.manager.pid)
            finally:
                cluster.end()
            each = 1e6 / args.instances
            wall, cpu = ([part * each for part in parts] for parts in times)
            print(
                f"{workers} workers, a {name}: {wall[1]:.1f} us wall, {cpu[1]:.1f} us of manager processor "
                f"(planning {wall[0]:.1f} and {cpu[0]:.1f}, results {wall[2]:.1f} and {cpu[2]:.1f}; "
                f"at most {peak[1]:.0f} MB in the manager, {peak[0]:.0f} MB in a worker)",
                flush=True,
            )


def dask(instances, workers):
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        print("LEFT OUT: Dask distributed is not installed (pip install distributed)")
        return
    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        client.gather(client.map(lambda n: n, range(100), pure=False))
        start = time.monotonic()
        client.gather(client.map(lambda n: n, range(instances), pure=False))
        print(f"{workers} workers, Dask: {(time.monotonic() - start) * 1e6 / instances:.1f} us wall a task", flush=True)


def ray_(instances, workers):
    try:
        import ray
    except ImportError:
        print("LEFT OUT: Ray is not installed (pip install ray)")
        return
    ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
    echo = ray.remote(lambda n: n)
    ray.get([echo.remote(n) for n in range(100)])
    start = time.monotonic()
    ray.get([echo.remote(n) for n in range(instances)])
    print(f"{workers} workers, Ray: {(time.monotonic() - start) * 1e6 / instances:.1f} us wall a task", flush=True)
    ray.shutdown()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=100_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 8])
    parser.add_argument("--bucket", type=int, default=100)
    parser.add_argument("--pleach", default="target/release/pleach")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--peer-instances", type=int, default=5_000)
    args = parser.parse_args()
    args.pleach = str(pathlib.Path(args.pleach).resolve())
    with tempfile.TemporaryDirectory() as folder:
        ours(args, pathlib.Path(folder))
    if args.peers:
        for workers in args.workers:
            dask(args.peer_instances, workers)
            ray_(args.peer_instances, workers)


if __name__ == "__main__":
    sys.exit(main())
