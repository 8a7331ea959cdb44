#!/usr/bin/env python3
"""How well a simulated makespan foretells the real one, on clusters of one-core workers on loopback.

    benches/calibration.py [--pleach target/release/pleach] [--studies moat vbd …] [--workers 1 2 4] [--rounds 3] [--reuse value]

Each study of synthetic tissue runs in several rounds, by a manager with 1, 2 and more worker processes, which share results over
QUIC. Before and after each of them, it runs by `pleach run --workers 1`. With the costs in the run.json of both, `pleach simulate`
predicts the time on these workers; beyond the processors of this machine they share them. The prediction is the mean of the two,
because the speed of a virtual machine changes within seconds, by up to a third. The table has medians of the rounds: of the
measured and predicted times, and of what each prediction is off by.

The exit code is 1 where the predictions for 1 or 2 workers are off by more than a tenth and the machine has two processors.
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


# Keys of a prediction.
PREDICTED = ("makespan_seconds", "executed_tasks")


def predicted(pleach, folder, name, workers, reuse):
    text = burst_file(f"{name}/run.json", 1, reuse).replace("nodes = 1", f"nodes = {workers}\nprocessors = {os.cpu_count()}")
    (folder / "burst.toml").write_text(text)
    call = [pleach, "simulate", "burst.toml", "--json"]
    done = subprocess.run(call, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(call)}: {done.stderr}")
    return json.loads(done.stdout)["policies"][0]


def spread(numbers, form):
    """The median, and in brackets the least and the greatest number."""
    return f"{statistics.median(numbers):{form}} ({min(numbers):{form}} to {max(numbers):{form}})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pleach", default="target/release/pleach")
    parser.add_argument("--simulator", help="another build of pleach for the predictions")
    parser.add_argument("--studies", nargs="+", choices=STUDIES, default=list(STUDIES))
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--reuse", choices=["tree", "dataflow", "value"], default="value")
    args = parser.parse_args()
    args.pleach = str(pathlib.Path(args.pleach).resolve())
    simulator = str(pathlib.Path(args.simulator or args.pleach).resolve())
    print(f"{os.cpu_count()} processors, {args.rounds} rounds, --reuse {args.reuse}\n")
    print("| study | evaluations | workers | measured, s | predicted, s | off by, % | tasks | predicted |")
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
            rounds = {workers: [] for workers in args.workers}

            def measure_costs(out):
                call("run", "study.toml", "--out", out, "--workers", "1", "--reuse", args.reuse, "--quiet", "--overwrite")
                return out

            before, after = f"{name}-before", f"{name}-after"
            measure_costs(before)
            for _ in range(args.rounds):
                for workers, pairs in rounds.items():
                    run, *_ = one(args, folder, workers, args.reuse)
                    measure_costs(after)
                    both = [predicted(simulator, folder, out, workers, args.reuse) for out in (before, after)]
                    pairs.append((run, {key: statistics.mean(it[key] for it in both) for key in PREDICTED}))
                    before, after = after, before
            for workers, pairs in rounds.items():
                # What is simulated is the execution: neither planning nor the report.
                seconds = [run["execution_seconds"] for run, _ in pairs]
                foretold = [prediction["makespan_seconds"] for _, prediction in pairs]
                off = [100 * (after / before - 1) for before, after in zip(seconds, foretold)]
                tasks = statistics.median(run["tasks_executed"] for run, _ in pairs)
                foretold_tasks = statistics.median(prediction["executed_tasks"] for _, prediction in pairs)
                print(
                    f"| {name} | {pairs[0][0]['evaluations']} | {workers} | {spread(seconds, '.1f')} | {spread(foretold, '.1f')} | "
                    f"{spread(off, '+.1f')} | {tasks:.0f} | {foretold_tasks:.0f} |",
                    flush=True,
                )
                if workers <= 2 and abs(statistics.median(off)) > 10:
                    is_good = False
    sys.exit(0 if is_good or (os.cpu_count() or 1) < 2 else 1)


if __name__ == "__main__":
    main()
