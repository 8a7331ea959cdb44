#!/usr/bin/env python3
"""Answers of the manager's HTTP interface while workers join and are killed: a MOAT study of one tile of generated tissue, whose
unstarted instances are replanned at each change.

    benches/replanning.py [--evaluations 160000] [--reuse tree value] [--changes 3] [--pleach PATH]

A client asks for the study every 5 ms over one connection. Prints the median, the 99th percentile and the maximum of the answers
without a change and from each change to the end of its replan, the times from a join to the first bucket, the totals of replans, and
the peak memory of the manager.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import threading
import time

from overhead import MOAT, Client, Cluster, peak_megabytes


class Prober(threading.Thread):
    """Asks for a study every 5 ms. `times` has the start and the seconds of each answer."""

    def __init__(self, cluster, study):
        super().__init__(daemon=True)
        self.client, self.path, self.times, self.ends = Client(cluster), f"/api/v1/studies/{study}", [], False

    def run(self):
        while not self.ends:
            start = time.monotonic()
            self.client.get(self.path)
            self.times.append((start, time.monotonic() - start))
            time.sleep(0.005)

    def within(self, start, end):
        return [seconds for begin, seconds in self.times if begin <= end and begin + seconds >= start]


def shown(seconds):
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
    return f"p50 {1e3 * statistics.median(ordered):.1f}, p99 {1e3 * p99:.1f}, max {1e3 * ordered[-1]:.1f} ms of {len(ordered)}"


def wait(happened, seconds=120):
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "too late"
        time.sleep(0.005)
    return time.monotonic()


def after(happened, start, seconds=10):
    """Seconds from the start until something happens. A replan that moves no instance is not counted by the manager."""
    while not happened():
        if time.monotonic() > start + seconds:
            return "none moves instances"
        time.sleep(0.005)
    return f"{time.monotonic() - start:.2f} s"


class OnDemand(Cluster):
    """As by default: workers request few buckets ahead, so that replans find unstarted ones."""

    window = 2
    memory = "4GB"


def one(args, reuse, folder):
    cluster = OnDemand(args.pleach, folder, 1)
    try:
        client = Client(cluster)
        metric = lambda name: sum(
            float(line.split()[-1])
            for line in client.get("/metrics").decode().splitlines()
            if line.startswith((name + " ", name + "{"))
        )
        workers = lambda: {worker["name"]: worker for worker in json.loads(client.get("/api/v1/workers"))["workers"]}
        start = time.monotonic()
        study = cluster.ask("submit", "study.toml", "--reuse", reuse).strip()
        wait(lambda: workers()["w0"]["running"] > 0, 300)
        print(f"{reuse}: first bucket {time.monotonic() - start:.1f} s after the submission")
        time.sleep(3)
        prober = Prober(cluster, study)
        prober.start()
        quiet = time.monotonic()
        time.sleep(5)
        print(f"{reuse}: without a change: {shown(prober.within(quiet, time.monotonic()))}")
        log = folder / "manager-1.log"
        listen = log.read_text().split("connect to ")[1].split(",")[0]
        for number in range(args.changes):
            name = f"late{number}"
            if not (folder / "ca" / name).exists():
                cluster.call("certs", "issue", "--dir", "ca", "--name", name, "--role", "worker")
            before, begin = metric("pleach_replans_total"), time.monotonic()
            late = cluster.start(
                folder / f"{name}.log", "worker", "--manager", listen, "--certs", f"ca/{name}", "--cores", "1", "--memory",
                cluster.memory, "--listen", "127.0.0.1:0",
            )
            joined = wait(lambda: f"worker {name} joined with" in log.read_text())
            bucket = wait(lambda: workers().get(name, {}).get("running", 0) > 0)
            replanned = after(lambda: metric("pleach_replans_total") > before, joined)
            time.sleep(1)
            print(f"{reuse}: join: first bucket {bucket - joined:.2f} s after it, replan {replanned}; "
                  f"{shown(prober.within(begin, time.monotonic()))}")
            before, begin = metric("pleach_replans_total"), time.monotonic()
            late.kill()
            lost = wait(lambda: f"worker {name} is lost" in log.read_text())
            replanned = after(lambda: metric("pleach_replans_total") > before, lost)
            time.sleep(1)
            print(f"{reuse}: kill: noticed after {lost - begin:.2f} s, replan after that {replanned}; "
                  f"{shown(prober.within(begin, time.monotonic()))}")
        prober.ends = True
        prober.join()
        print(f"{reuse}: {metric('pleach_replans_total'):.0f} replans moved {metric('pleach_replanned_instances_total'):.0f} instances; "
              f"manager at most {peak_megabytes(cluster.manager.pid):.0f} MB", flush=True)
    finally:
        cluster.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evaluations", type=int, default=160_000)
    parser.add_argument("--reuse", nargs="+", default=["tree", "value"])
    parser.add_argument("--changes", type=int, default=3)
    parser.add_argument("--pleach", type=pathlib.Path, default=pathlib.Path("target/release/pleach"))
    args = parser.parse_args()
    args.pleach = args.pleach.resolve()
    for reuse in args.reuse:
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            subprocess.run(
                [args.pleach, "tissue", "--out", "tiles", "--size", "512", "--count", "1"], cwd=folder, check=True, capture_output=True
            )
            (folder / "study.toml").write_text(MOAT.format(name="replanned", seed=7, tiles="tiles/tissue_01.png", trajectories=args.evaluations // 16))
            one(args, reuse, folder)


if __name__ == "__main__":
    main()
