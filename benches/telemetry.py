#!/usr/bin/env python3
"""What metrics and tracing take: the study of empty stage instances of benches/overhead.py, in turns with all of it as it is by
default, scraped as Prometheus does, and with none of it.

    benches/telemetry.py [--instances 100000] [--workers 2] [--bucket 1] [--rounds 5] [--scrape 15] [--pleach PATH]

Prints, of each pair of rounds, wall and processor time of all processes with it divided by those without it, and the
median of these ratios. Which of the two comes first changes from pair to pair.
"""

import argparse
import json
import pathlib
import socket
import ssl
import statistics
import sys
import tempfile
import threading
import time
import urllib.request

import overhead


def free_ports(kind, count):
    sockets = [socket.socket(socket.AF_INET, kind) for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Cluster(overhead.Cluster):
    """One that says where it is before it starts, since one of the two says nothing at all."""

    def __init__(self, pleach, folder, workers, measured, scrape):
        self.settle(pleach, folder, workers)
        (listen,) = free_ports(socket.SOCK_DGRAM, 1)
        http, *metrics = free_ports(socket.SOCK_STREAM, 1 + workers)
        state = tempfile.mkdtemp(dir=folder)
        silent = [] if measured else ["--no-metrics"]
        self.environment = None if measured else {"PLEACH_LOG": "off"}
        self.manager = self.start(
            folder / "manager.log", "manager", "--state", state, "--certs", "ca/boss", "--listen", f"127.0.0.1:{listen}",
            "--http", f"127.0.0.1:{http}", *silent,
        )
        self.http = f"https://127.0.0.1:{http}"
        for number in range(workers):
            shown = ["--metrics", f"127.0.0.1:{metrics[number]}"] if measured else []
            self.start(
                folder / f"w{number}.log", "worker", "--manager", f"127.0.0.1:{listen}", "--certs", f"ca/w{number}",
                "--cores", "1", "--memory", "500MB", "--listen", "127.0.0.1:0", "--prefetch-buckets", str(self.window), *shown,
            )
        # Clients try again until it is there.
        while len(json.loads(self.ask("status", "--json"))["workers"]) < workers:
            time.sleep(0.05)
        self.over = threading.Event()
        if measured:
            pages = [f"{self.http}/metrics"] + [f"http://127.0.0.1:{port}/metrics" for port in metrics]
            threading.Thread(target=self.scrape, args=(pages, scrape), daemon=True).start()

    def start(self, log, *args):
        # The variable as it is here is part of what is measured.
        overhead.os.environ.pop("PLEACH_LOG", None)
        overhead.os.environ.update(self.environment or {})
        return super().start(log, *args)

    def scrape(self, pages, every):
        context = ssl._create_unverified_context()
        while not self.over.wait(every):
            for page in pages:
                urllib.request.urlopen(page, context=context if page.startswith("https") else None).read()

    def measure(self, *options):
        before = sum(overhead.cpu_seconds(process.pid) for process in self.processes)
        wall = sum(self.run(*options).wall[1:])
        return wall, sum(overhead.cpu_seconds(process.pid) for process in self.processes) - before

    def end(self):
        self.over.set()
        super().end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--bucket", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scrape", type=float, default=15)
    parser.add_argument("--pleach", default="target/release/pleach")
    args = parser.parse_args()
    args.pleach = str(pathlib.Path(args.pleach).resolve())
    options = ["--strategy", "stage"] if args.bucket == 1 else ["--strategy", "naive", "--max-bucket-size", str(args.bucket)]
    walls, cpus = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        overhead.subprocess.run(
            [args.pleach, "tissue", "--out", "tiles", "--size", "64", "--count", "1"], cwd=folder, check=True, capture_output=True
        )
        overhead.study(folder, args.instances)
        for number in range(args.rounds):
            found = {}
            for measured in [True, False] if number % 2 == 0 else [False, True]:
                cluster = Cluster(args.pleach, folder, args.workers, measured, args.scrape)
                try:
                    found[measured] = cluster.measure(*options)
                finally:
                    cluster.end()
            (wall, cpu), (bare_wall, bare_cpu) = found[True], found[False]
            walls.append(wall / bare_wall)
            cpus.append(cpu / bare_cpu)
            each = 1e6 / args.instances
            print(
                f"round {number + 1}: wall {wall * each:.1f} us with, {bare_wall * each:.1f} us without, ratio {walls[-1]:.3f}; "
                f"processor {cpu * each:.1f} us with, {bare_cpu * each:.1f} us without, ratio {cpus[-1]:.3f}",
                flush=True,
            )
    print(f"median ratio: wall {statistics.median(walls):.3f}, processor {statistics.median(cpus):.3f}")


if __name__ == "__main__":
    sys.exit(main())
