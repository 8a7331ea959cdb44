#!/usr/bin/env python3
"""Tasks executed by clusters of one-core workers on loopback: how much of the reuse of one worker several keep.

    benches/sharing.py [--tiles gbm40_03] [--trajectories 20] [--workers 1 2 4 8] [--reuse tree dataflow value] [--pleach PATH]

Tiles are names of PLEACH_TEST_DATA/annotated/gbm40. Prints tasks executed, their ratio to one worker, tasks whose outputs
another worker had, megabytes fetched, task-seconds, the smallest and largest share of a worker in percent of its even
share, and wall seconds, which mean little with more workers than processors. Compares the responses byte by byte.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import socket
import tempfile
import time
import urllib.request

from overhead import MOAT, Cluster

SECONDS = re.compile(r"^pleach_task_duration_seconds_sum\{.*\} (\S+)$", re.M)
FETCHED = re.compile(r"^pleach_transfer_bytes_total\{.*direction=\"in\".*\} (\S+)$", re.M)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Measured(Cluster):
    """Workers whose metrics are read at the end."""

    window = 1
    memory = "2GB"

    def start(self, log, *args):
        more = []
        if args[0] == "worker":
            port = free_port()
            self.ports = getattr(self, "ports", []) + [port]
            more = ["--metrics", f"127.0.0.1:{port}"]
        return super().start(log, *args, *more)

    def metrics(self):
        pages = []
        for port in self.ports:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
                pages.append(page.read().decode())
        return pages


def one(args, folder, workers, reuse):
    cluster = Measured(args.pleach, folder, workers)
    try:
        out = f"out-{workers}-{reuse}"
        shutil.rmtree(folder / out, ignore_errors=True)
        start = time.monotonic()
        # Waits in one process: a new one for each look would take a part of a processor.
        cluster.ask("submit", "study.toml", "--reuse", reuse, "--out", out)
        wall = time.monotonic() - start
        pages = cluster.metrics()
        seconds = [sum(float(value) for value in SECONDS.findall(page)) for page in pages]
        megabytes = sum(float(value) for page in pages for value in FETCHED.findall(page)) / 1e6
        run = json.loads((folder / out / "run.json").read_text())
        assert run["failed"] == 0, run
        responses = (folder / out / "responses.csv").read_bytes()
        return run, responses, seconds, megabytes, wall
    finally:
        cluster.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiles", nargs="+", default=["gbm40_03"])
    parser.add_argument("--trajectories", type=int, default=20)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--reuse", nargs="+", default=["tree", "dataflow", "value"])
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--pleach", default=str(root / "target/release/pleach"))
    args = parser.parse_args()
    data = pathlib.Path(os.environ.get("PLEACH_TEST_DATA", root / "../shared/data")).resolve()
    args.pleach = str(pathlib.Path(args.pleach).resolve())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tiles = '", "'.join(str(data / f"annotated/gbm40/{tile}.png") for tile in args.tiles)
        (folder / "study.toml").write_text(
            MOAT.format(name="sharing", seed=7, tiles=tiles, trajectories=args.trajectories)
        )
        print(f"{len(args.tiles)} tiles, MOAT of {args.trajectories} trajectories, workers of one core")
        print("reuse     workers  tasks  ratio  by peers  fetched MB  task-s  shares %      wall s")
        expected = None
        for reuse in args.reuse:
            first = None
            for workers in args.workers:
                run, responses, seconds, megabytes, wall = one(args, folder, workers, reuse)
                expected = expected or responses
                assert responses == expected, "the responses differ"
                tasks = run["tasks_executed"]
                first = first or tasks
                even = sum(seconds) / len(seconds)
                shares = f"{100 * min(seconds) / even:.0f} to {100 * max(seconds) / even:.0f}" if even else "-"
                print(
                    f"{reuse:9} {workers:7} {tasks:6} {tasks / first:6.3f} {run['tasks_reused'].get('peer', 0):9} "
                    f"{megabytes:11.1f} {sum(seconds):7.1f}  {shares:12} {wall:7.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
