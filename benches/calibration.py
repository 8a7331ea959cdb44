#!/usr/bin/env python3
"""How well a simulated makespan foretells the real one, on local workers of one core each.

    benches/calibration.py [--pleach target/release/pleach] [--size 1024] [--tiles 4] [--trajectories 4] [--rounds 3] [--reuse tree]

A MOAT study of synthetic tissue runs on 1, 2 and 4 workers of one core (`pleach run --workers N --reuse SCOPE`, tasks on one
thread each), several times in turn. From the run.json of the first run on one worker, `pleach simulate` predicts what 1, 2
and 4 take. The median of the rounds is compared with the prediction. Beyond the processors of the machine, workers wait for
each other: those rows are for information.

The exit code is 1 where a prediction for 1 or 2 workers is off by more than a tenth and the machine has two processors.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from overhead import MOAT

sys.path.append(str(pathlib.Path(__file__).parent / "papers"))
from burst_file import burst_file  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pleach", default="target/release/pleach")
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--tiles", type=int, default=4)
    parser.add_argument("--trajectories", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--reuse", choices=["tree", "dataflow"], default="tree")
    args = parser.parse_args()
    pleach = str(pathlib.Path(args.pleach).resolve())
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)

        def call(*arguments):
            done = subprocess.run([pleach, *arguments], cwd=folder, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"pleach {' '.join(arguments)}: {done.stderr}")
            return done.stdout

        call("tissue", "--out", "tiles", "--size", str(args.size), "--count", str(args.tiles), "--seed", "3")
        (folder / "study.toml").write_text(MOAT.format(name="calibration", seed=500, tiles="tiles/*.png", trajectories=args.trajectories))
        measured = {workers: [] for workers in (1, 2, 4)}
        for number in range(args.rounds):
            for workers in measured:
                out = f"run-{workers}-{number}"
                options = ["--workers", str(workers), "--reuse", args.reuse, "--active-paths", "1", "--quiet"]
                call("run", "study.toml", "--out", out, *options)
                run = json.loads((folder / out / "run.json").read_text())
                # What is simulated is the execution: neither planning nor the report.
                measured[workers].append(run["execution_seconds"])
        print(f"{os.cpu_count()} processors, {args.rounds} rounds, {args.tiles} tiles of {args.size}² px, ", end="")
        print(f"{run['evaluations']} evaluations, --reuse {args.reuse}")
        print("\n| workers | measured, s | predicted, s | off by |\n| --- | --- | --- | --- |")
        is_good = True
        for workers, seconds in measured.items():
            (folder / "burst.toml").write_text(burst_file("run-1-0/run.json", workers, args.reuse))
            document = json.loads(call("simulate", "burst.toml", "--json"))
            predicted = document["policies"][0]["makespan_seconds"]
            median = statistics.median(seconds)
            off = predicted / median - 1
            spread = f"{median:.1f} ({min(seconds):.1f} to {max(seconds):.1f})"
            print(f"| {workers} | {spread} | {predicted:.1f} | {100 * off:+.1f} % |")
            if workers <= 2 and abs(off) > 0.1:
                is_good = False
    sys.exit(0 if is_good or (os.cpu_count() or 1) < 2 else 1)


if __name__ == "__main__":
    main()
