#!/usr/bin/env python3
"""What the accelerators of this machine gain: each operation with a device variant, and a study of nuclear segmentation on cores,
on a device, and on both by each policy.

    benches/devices.py [--accelerators auto] [--workers N] [--tiles 4] [--side 4096] [--trajectories 4] [--pleach PATH] [--no-operations]

Prints the table of `cargo bench -p pleach-pathology --bench accelerators`, then seconds, tasks on devices, and the gains that the run has
measured. "Device" has one core for the tasks without a device variant, and the policy heft with gains as declared. The responses
must have equal bytes, or the exit code is 1. PoCL (`--accelerators all`) is no accelerator: its device is the processor.
"""

import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from overhead import MOAT

ROOT = pathlib.Path(__file__).resolve().parent.parent
POLICIES = ["fcfs", "heft", "pats"]


def run(pleach, folder, out, workers, *options):
    """Runs the study. Returns its seconds, its record, and a digest of its responses."""
    command = [pleach, "run", "study.toml", "--out", out, "--quiet", "--workers", str(workers), *options]
    start = time.monotonic()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - start
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr}")
    results = folder / out
    digest = hashlib.sha256((results / "responses.csv").read_bytes()).hexdigest()
    return seconds, json.loads((results / "run.json").read_text()), digest


def on_devices(record):
    """Returns the operations that ran on devices: their runs there, and their measured gains."""
    found = {}
    for operation in record["operations"]:
        device = operation.get("accelerator")
        if not device:
            continue
        on_cores = operation["runs"] - device["runs"], operation["seconds"] - device["seconds"]
        gain = on_cores[1] / on_cores[0] * device["runs"] / device["seconds"] if on_cores[0] else None
        found[operation["name"]] = (device["runs"], gain)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accelerators", default="auto", help="as in pleach run [default: auto]")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="cores [default: all]")
    parser.add_argument("--tiles", type=int, default=4)
    parser.add_argument("--side", type=int, default=4096, help="pixels of the sides of a tile [default: 4096]")
    parser.add_argument("--trajectories", type=int, default=4, help="of the MOAT study, 16 evaluations each [default: 4]")
    parser.add_argument("--pleach", default=ROOT / "target/release/pleach", type=pathlib.Path)
    parser.add_argument("--no-operations", action="store_true", help="the study only")
    args = parser.parse_args()
    if not args.no_operations:
        subprocess.run(["cargo", "bench", "--locked", "-p", "pleach-pathology", "--bench", "accelerators"], cwd=ROOT, check=True)
    pleach = args.pleach.resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tissue = [pleach, "tissue", "--out", "tiles", "--size", str(args.side), "--count", str(args.tiles)]
        subprocess.run(tissue, cwd=folder, check=True, capture_output=True)
        study = MOAT.format(name="devices", seed=7, tiles="tiles/*.png", trajectories=args.trajectories)
        (folder / "study.toml").write_text(study)
        cores = run(pleach, folder, "cores", args.workers, "--accelerators", "none")
        rows = [("cores", args.workers, "", cores)]
        devices = ["--accelerators", args.accelerators]
        rows.append(("device", 1, "heft", run(pleach, folder, "device", 1, *devices, "--schedule", "heft")))
        for policy in POLICIES:
            rows.append(("both", args.workers, policy, run(pleach, folder, policy, args.workers, *devices, "--schedule", policy)))
    print("| slots | cores | policy | seconds | times faster than cores | tasks on devices | tasks |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for slots, count, policy, (seconds, record, _) in rows:
        there = sum(runs for runs, _ in on_devices(record).values())
        tasks = record["tasks_executed"]
        print(f"| {slots} | {count} | {policy} | {seconds:.1f} | {cores[0] / seconds:.2f} | {there:,} | {tasks:,} |")
    print("\n| slots | policy | operation | runs on devices | measured gain |\n| --- | --- | --- | --- | --- |")
    for slots, _, policy, (_, record, _) in rows[1:]:
        for operation, (runs, gain) in on_devices(record).items():
            print(f"| {slots} | {policy} | {operation} | {runs} | {'' if gain is None else f'{gain:.2f}'} |")
    if any(digest != cores[2] for _, _, _, (_, _, digest) in rows):
        sys.exit("the responses differ")
    if not any(on_devices(record) for _, _, _, (_, record, _) in rows):
        sys.exit(f"no task ran on a device: --accelerators {args.accelerators} found none, or no operation gains there")


if __name__ == "__main__":
    main()
