#!/usr/bin/env python3
"""Counts the tasks that one-core workers execute for one study, by strategy and number of workers: each worker should
find the tasks of neighboring buckets in its own result cache. Manager and workers are processes on loopback.

    benches/ranges.py TILE.png [--workers 1 2 4 8] [--reuse value] [--trajectories 20] [--strategies trtma ranges]
        [--pleach PATH]

Tasks do not depend on the speed of the machine, except for those that cost less than a look-up. `share` is the range of
task-seconds of workers, of an even share.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import urllib.request

from overhead import MOAT, Cluster


class Metered(Cluster):
    """Workers that request one bucket ahead, as by default, and expose their metrics."""

    window = 1
    memory = "1GB"

    def start(self, log, *args):
        more = ["--metrics", "127.0.0.1:0"] if args[0] == "worker" else []
        return super().start(log, *args, *more)


def task_seconds(log: pathlib.Path) -> float:
    """Returns the seconds of a worker's tasks."""
    found = re.search(r"(http://[^\s]+/metrics)", log.read_text())
    if not found:
        return float("nan")
    lines = urllib.request.urlopen(found[1]).read().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("pleach_task_duration_seconds_sum"))


def measure(pleach: str, folder: pathlib.Path, workers: int, options: list[str]) -> tuple[int, list[float], str]:
    """Runs the study. Returns the tasks executed, the task-seconds of each worker and the digest of the responses."""
    cluster = Metered(pleach, folder, workers)
    try:
        cluster.run(*options)
        state = json.loads(cluster.ask("status", "--json"))["studies"][-1]
        out = tempfile.mkdtemp(dir=folder)
        shutil.rmtree(out)
        cluster.call("results", str(state["id"]), "--out", out, "--manager", cluster.http, "--certs", "ca/me")
        record = json.loads((pathlib.Path(out) / "run.json").read_text())
        digest = hashlib.sha256((pathlib.Path(out) / "responses.csv").read_bytes()).hexdigest()
        seconds = [task_seconds(folder / f"w{number}.log") for number in range(workers)]
        return record["tasks_executed"], seconds, digest
    finally:
        cluster.end()


def main() -> None:
    """Runs all strategies on all numbers of workers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tile", help="file, or pattern of files")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--reuse", default="value")
    parser.add_argument("--trajectories", type=int, default=20)
    parser.add_argument("--pleach", default=str(pathlib.Path(__file__).parent.parent / "target/release/pleach"))
    parser.add_argument("--strategies", nargs="+", default=["trtma", "ranges"])
    args = parser.parse_args()
    digests = set()
    print("| strategy | workers | tasks executed | of one worker | share |\n| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        text = MOAT.format(name="ranges", seed=7, tiles=os.path.abspath(args.tile), trajectories=args.trajectories)
        (folder / "study.toml").write_text(text)
        for strategy in args.strategies:
            of_one = None
            for workers in args.workers:
                options = ["--strategy", strategy, "--reuse", args.reuse]
                tasks, seconds, digest = measure(args.pleach, folder, workers, options)
                digests.add(digest)
                of_one = of_one or tasks
                even = sum(seconds) / workers
                share = f"{min(seconds) / even:.2f}-{max(seconds) / even:.2f}" if even > 0 else "-"
                print(f"| {strategy} | {workers} | {tasks} | {tasks / of_one:.3f} | {share} |", flush=True)
    print(f"\n{len(digests)} distinct responses.csv")
    subprocess.run(["true"], check=len(digests) != 1)


if __name__ == "__main__":
    main()
