#!/usr/bin/env python3
"""Moves large arrays from one worker to another with Dask and with pleach, in turns, and compares the speed.

    benches/peers/transfer.py [--bench PROGRAM] [--rounds R] [--arrays N] [--megabytes M]

Dask: arrays of noise lie on one worker process, and another one needs each of them; both on loopback, each with one
thread. pleach: what `cargo bench -p pleach-actors --bench transport` measures, through shared memory and over the network
(TLS); `--bench` names its program where it has been built already. Prints GB/s of each round's sides and the ratios of
the medians. Dask neither encrypts nor checks digests, pleach does. Exit code 3 when Dask is not installed.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import time

try:
    import numpy as np
    from distributed import Client, LocalCluster, wait
except ImportError as missing:
    print(f"SKIPPED: {missing}; see benches/peers/README.md for how to have it", file=sys.stderr)
    sys.exit(3)

CARGO = ["cargo", "bench", "--quiet", "-p", "pleach-actors", "--bench", "transport", "--"]
LINE = re.compile(r"regions between workers: ([\d.]+) GB/s through shared memory, ([\d.]+) GB/s over the network")


def noise(number: int, length: int) -> np.ndarray:
    """Bytes that no compression makes smaller."""
    return np.random.default_rng(number).integers(0, 256, length, dtype=np.uint8)


def dask(client: Client, arrays: int, length: int, first: int) -> float:
    """GB/s from the first worker to the second; arrays of a round are new, so that none is there already."""
    holder, other = list(client.scheduler_info()["workers"])
    held = [client.submit(noise, first + n, length, workers=[holder], pure=False) for n in range(arrays)]
    wait(held)
    start = time.perf_counter()
    sizes = [client.submit(len, array, workers=[other], allow_other_workers=False, pure=False) for array in held]
    total = sum(client.gather(sizes))
    seconds = time.perf_counter() - start
    if total != arrays * length:
        sys.exit(f"{total} bytes have arrived, {arrays * length} were sent")
    return total / seconds / 1e9


def pleach(command: list[str]) -> tuple[float, float]:
    """GB/s through shared memory and over the network."""
    done = subprocess.run([*command, "3"], capture_output=True, text=True, check=True)
    found = LINE.search(done.stdout)
    if not found:
        sys.exit(f"the benchmark does not say how fast regions move:\n{done.stdout}")
    return float(found[1]), float(found[2])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bench")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--arrays", type=int, default=12)
    parser.add_argument("--megabytes", type=int, default=48)
    arguments = parser.parse_args()
    command = [arguments.bench] if arguments.bench else CARGO
    length = arguments.megabytes << 20
    found: dict[str, list[float]] = {"Dask": [], "pleach, shared memory": [], "pleach, network": []}
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0, host="127.0.0.1"
    )
    with cluster, Client(cluster) as client:
        # The first round of both sides warms them up.
        for number in range(arguments.rounds + 1):
            sides = dask(client, arguments.arrays, length, number * arguments.arrays), *pleach(command)
            for name, rate in zip(found, sides, strict=True):
                found[name].append(rate)
            print("warm-up" if number == 0 else f"round {number}", *(f"{rate:.2f}" for rate in sides), sep="\t")
    medians = {name: statistics.median(rates[1:]) for name, rates in found.items()}
    for name, rate in medians.items():
        print(f"{name}: {rate:.2f} GB/s, {rate / medians['Dask']:.2f} times Dask's")


if __name__ == "__main__":
    main()
