#!/usr/bin/env python3
"""What a study on workers that the manager starts costs, and what the manager predicted.

    benches/burst.py [--pleach target/release/pleach] [--tiles 4] [--size 1024] [--trajectories 24] [--max 2] [--startup 2]

A manager with a pool of one-core processes on this machine gets the same MOAT study of synthetic tissue with other seeds, one
after the other: first with a deadline of an hour, before it has measured costs, then with deadlines that need one worker and more,
and last with one that no number of workers meets. A worker costs 36 an hour, 0.01 a second, in periods of 1 s.

The table has the predicted and the real time and cost of each study, from its first scaling decision and from the ledger, and
the responses' equality with those of `pleach run`. The exit code is 1 where they differ.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from overhead import MOAT, Cluster

POOL = """[[pool]]
name = "burst"
cores = 1
price_per_hour = 36
billing_seconds = 1
startup_seconds = {startup}
max = {max}

[pool.provision]
driver = "process"
idle_seconds = 1
options = ["--memory", "2GB", "--listen", "127.0.0.1:0"]
"""


class Pool(Cluster):
    """A manager that starts its workers itself."""

    def start(self, log, *args):
        return super().start(log, *args, *(["--pools", "pools.toml"] if args[0] == "manager" else []))

    def run_study(self, deadline):
        options = ["--deadline", f"{deadline:.0f}s"] if deadline else []
        study = self.ask("submit", "study.toml", *options).strip()
        while True:
            state = json.loads(self.ask("status", study, "--json"))["studies"][0]
            if state["state"] not in ("queued", "running") and state["cost"]["is_final"]:
                assert state["state"] == "complete" and state["failed"] == 0, state
                return study, state["cost"]
            time.sleep(0.2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pleach", default="target/release/pleach")
    parser.add_argument("--tiles", type=int, default=4)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--trajectories", type=int, default=24)
    parser.add_argument("--max", type=int, default=2)
    parser.add_argument("--startup", type=float, default=2)
    args = parser.parse_args()
    pleach = str(pathlib.Path(args.pleach).resolve())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def call(*arguments):
            return subprocess.run([pleach, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout

        call("tissue", "--out", "tiles", "--size", str(args.size), "--count", str(args.tiles), "--seed", "3")
        (folder / "pools.toml").write_text(POOL.format(startup=args.startup, max=args.max))
        cluster = Pool(pleach, folder, 0)
        try:
            print(f"{os.cpu_count()} processors, {args.tiles} tiles of {args.size}² px, {args.trajectories} trajectories\n")
            print("| deadline, s | workers started | time, s | predicted | cost | predicted | cost by predicted | responses |")
            print("| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
            alone, is_equal = None, True
            # The first study gives the manager its costs, and this table the time on one worker.
            for number, part in enumerate([None, 2.0, 1.2, 0.7, 0.01]):
                deadline = max(1.0, part * alone) if part else 3600.0
                text = MOAT.format(name="burst", seed=100 + number, tiles="tiles/*.png", trajectories=args.trajectories)
                (folder / "study.toml").write_text(text)
                study, cost = cluster.run_study(deadline)
                alone = alone or cost["seconds"]
                cluster.ask("results", study, "--out", f"paid-{number}")
                call("run", "study.toml", "--out", f"run-{number}", "--quiet")
                files = [(folder / f"{kind}-{number}/responses.csv").read_bytes() for kind in ("paid", "run")]
                is_equal &= files[0] == files[1]
                print(
                    f"| {deadline:.0f} | {cost['workers_started']} | {cost['seconds']:.1f} | {cost['predicted_seconds'] or 0:.1f} | "
                    f"{cost['cost']:.2f} | {cost['predicted_cost'] or 0:.2f} | "
                    f"{cost['cost'] / cost['predicted_cost'] if cost['predicted_cost'] else float('nan'):.2f} | "
                    f"{'equal' if files[0] == files[1] else 'differ'} |",
                    flush=True,
                )
        finally:
            cluster.end()
    sys.exit(0 if is_equal else 1)


if __name__ == "__main__":
    main()
