#!/usr/bin/env python3
"""What is brought from worker to worker in one study, where buckets are given by where their data is and where they are
given in the plan's order. Two workers on loopback, on generated tissue; bytes as regions take in memory.

    benches/placement.py [--rounds 3] [--size 1024] [--tiles 6] [--pleach PATH]
"""

import argparse
import pathlib
import re
import signal
import statistics
import subprocess
import tempfile

from overhead import Cluster

STUDY = """[study]
name = "placed"
workflow = "nuclei"
seed = 7
[input]
tiles = ["tiles/tissue_*.png"]
normalize = true
reference = "defaults"
[method]
kind = "moat"
trajectories = 2
levels = 20
[response]
metric = "dice"
"""

FETCHED = re.compile(r"fetched (\d+) regions \(([\d.]+) (\w+)\) from other workers")
UNITS = {"B": 1e-6, "kB": 1e-3, "MB": 1.0, "GB": 1e3}


class Placed(Cluster):
    window = 1
    placement = "data"

    def start(self, log, *args):
        more = ["--placement", self.placement] if args[0] == "manager" else []
        return super().start(log, *args, *more)


def one_round(pleach, folder, placement):
    cluster = type("Cluster", (Placed,), {"placement": placement})(pleach, folder, 2)
    try:
        seconds = sum(cluster.run().wall)
        workers = cluster.processes[1:]
        for worker in workers:
            worker.send_signal(signal.SIGTERM)
        for worker in workers:
            worker.wait(60)
        said = [FETCHED.search((folder / f"w{number}.log").read_text()) for number in range(2)]
        regions = sum(int(found[1]) for found in said)
        megabytes = sum(float(found[2]) * UNITS[found[3]] for found in said)
        return regions, megabytes, seconds
    finally:
        cluster.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--tiles", type=int, default=6)
    parser.add_argument("--pleach", default=str(pathlib.Path(__file__).parent.parent / "target/release/pleach"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tissue = ["--size", str(args.size), "--count", str(args.tiles), "--seed", "3"]
        subprocess.run([args.pleach, "tissue", "--out", "tiles", *tissue], cwd=folder, check=True, capture_output=True)
        (folder / "study.toml").write_text(STUDY)
        rounds = {"data": [], "order": []}
        for _ in range(args.rounds):
            for placement, all_of in rounds.items():
                all_of.append(one_round(args.pleach, folder, placement))
    print(f"{args.tiles} tiles of {args.size} px, 2 workers, medians of {args.rounds}")
    for placement, all_of in rounds.items():
        regions, megabytes, seconds = (statistics.median(column) for column in zip(*all_of))
        print(f"--placement {placement:5}: {regions:5.0f} regions, {megabytes:8.1f} MB brought; {seconds:6.1f} s")


if __name__ == "__main__":
    main()
