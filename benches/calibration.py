#!/usr/bin/env python3
"""How well a simulated makespan foretells the real one, on clusters of one-core workers on loopback.

    benches/calibration.py [--pleach target/release/pleach] [--studies moat vbd …] [--workers 1 2 4] [--rounds 3] [--reuse value]

Each study of synthetic tissue runs in several rounds: by `pleach run --workers 1`, and by a manager with 1, 2 and more worker
processes, which share results over QUIC. With the run.json of the median `pleach run`, `pleach simulate` predicts the time on
these workers; beyond the processors of this machine they share them. The median of the rounds is compared with it.

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

from sharing import one

sys.path.append(str(pathlib.Path(__file__).parent / "papers"))
from burst_file import burst_file  # noqa: E402

STUDY = """[study]
name = "{name}"
workflow = "nuclei"
seed = 500
[input]
tiles = ["tiles-{tiles}/*.png"]
normalize = true
reference = "defaults"
[method]
{method}
[response]
metric = "dice"
"""

# Name: number and side of the tiles, and the method.
STUDIES = {
    "moat": (4, 1024, 'kind = "moat"\ntrajectories = 10\nlevels = 20'),
    "moat-one-tile": (1, 1024, 'kind = "moat"\ntrajectories = 40\nlevels = 20'),
    "vbd": (4, 512, 'kind = "vbd"\nsamples = 32'),
    "correlation": (2, 1024, 'kind = "correlation"\nsampler = "lhs"\nsamples = 160'),
    "small-tiles": (16, 256, 'kind = "moat"\ntrajectories = 24\nlevels = 20'),
}


def predicted(pleach, folder, name, workers, reuse):
    text = burst_file(f"{name}/run.json", 1, reuse).replace("nodes = 1", f"nodes = {workers}\nprocessors = {os.cpu_count()}")
    (folder / "burst.toml").write_text(text)
    call = [pleach, "simulate", "burst.toml", "--json"]
    done = subprocess.run(call, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(call)}: {done.stderr}")
    return json.loads(done.stdout)["policies"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pleach", default="target/release/pleach")
    parser.add_argument("--studies", nargs="+", choices=STUDIES, default=list(STUDIES))
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--reuse", choices=["tree", "dataflow", "value"], default="value")
    args = parser.parse_args()
    args.pleach = str(pathlib.Path(args.pleach).resolve())
    print(f"{os.cpu_count()} processors, {args.rounds} rounds, --reuse {args.reuse}\n")
    print("| study | evaluations | workers | measured, s | predicted, s | off by | tasks | predicted |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    is_good = True
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)

        def call(*arguments):
            done = subprocess.run([args.pleach, *arguments], cwd=folder, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"pleach {' '.join(arguments)}: {done.stderr}")

        for name in args.studies:
            tiles, side, method = STUDIES[name]
            call("tissue", "--out", f"tiles-{name}", "--size", str(side), "--count", str(tiles), "--seed", "3")
            (folder / "study.toml").write_text(STUDY.format(name=name, tiles=name, method=method))
            measured, alone = {workers: [] for workers in args.workers}, {}
            for number in range(args.rounds):
                out = f"{name}-{number}"
                call("run", "study.toml", "--out", out, "--workers", "1", "--reuse", args.reuse, "--quiet")
                alone[out] = json.loads((folder / out / "run.json").read_text())["execution_seconds"]
                for workers, runs in measured.items():
                    run, *_ = one(args, folder, workers, args.reuse)
                    # What is simulated is the execution: neither planning nor the report.
                    runs.append((run["execution_seconds"], run["tasks_executed"]))
            typical = sorted(alone, key=alone.get)[len(alone) // 2]
            for workers, runs in measured.items():
                prediction = predicted(args.pleach, folder, typical, workers, args.reuse)
                seconds, tasks = zip(*runs)
                median, foretold = statistics.median(seconds), prediction["makespan_seconds"]
                off = foretold / median - 1
                spread = f"{median:.1f} ({min(seconds):.1f} to {max(seconds):.1f})"
                print(
                    f"| {name} | {run['evaluations']} | {workers} | {spread} | {foretold:.1f} | {100 * off:+.1f} % | "
                    f"{statistics.median(tasks):.0f} | {prediction['executed_tasks']} |",
                    flush=True,
                )
                if workers <= 2 and abs(off) > 0.1:
                    is_good = False
    sys.exit(0 if is_good or (os.cpu_count() or 1) < 2 else 1)


if __name__ == "__main__":
    main()
