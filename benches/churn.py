#!/usr/bin/env python3
"""Answers of the manager's HTTP interface during a study of empty stage instances, while each second a worker joins and another is killed.

    benches/churn.py [--instances 1000000] [--workers 2] [--pleach PATH]

`--workers` stay for the whole study. A client asks for the study every 5 ms over one connection. Prints the median, the 99th percentile and
the maximum of the answers during the execution, the numbers of joined and lost workers and of replans, microseconds of the manager's processor
for an instance, and its peak memory.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile
import time

from overhead import Client, Cluster, cpu_seconds, peak_megabytes, study
from replanning import Prober, shown


def total(page, name):
    lines = [line for line in page.decode().splitlines() if line.startswith(name + " ") or line.startswith(name + "{")]
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--pleach", default="target/release/pleach")
    args = parser.parse_args()
    pleach = str(pathlib.Path(args.pleach).resolve())
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        subprocess.run([pleach, "tissue", "--out", "tiles", "--size", "64", "--count", "1"], cwd=folder, check=True, capture_output=True)
        study(folder, args.instances)
        cluster = Cluster(pleach, folder, args.workers)
        client = Client(cluster)
        passing = []

        def join(number):
            name = f"passing-{number}"
            cluster.call("certs", "issue", "--dir", "ca", "--name", name, "--role", "worker")
            passing.append(cluster.start(
                folder / f"{name}.log", "worker", "--manager", cluster.listen, "--certs", f"ca/{name}", "--cores", "1",
                "--memory", cluster.memory, "--listen", "127.0.0.1:0", "--prefetch-buckets", str(cluster.window),
            ))  # fmt: skip

        try:
            id = cluster.ask("submit", "study.toml", "--strategy", "trtma", "--reuse", "tree").strip()
            state = lambda: json.loads(client.get(f"/api/v1/studies/{id}"))
            while state()["remaining_tasks"] == 0:
                time.sleep(0.05)
            prober = Prober(cluster, id)
            prober.start()
            start, cpu, number = time.monotonic(), cpu_seconds(cluster.manager.pid), 0
            while (now := state())["remaining_tasks"] > 0 and now["state"] == "running":
                join(number)
                number += 1
                # Each passing worker lives for 3 s.
                if len(passing) > 3:
                    passing.pop(0).kill()
                time.sleep(max(0.0, start + number - time.monotonic()))
            end, used = time.monotonic(), cpu_seconds(cluster.manager.pid) - cpu
            prober.ends = True
            while (now := state())["state"] == "running":
                time.sleep(0.1)
            log = (folder / f"manager-{args.workers}.log").read_text()
            assert now["state"] == "complete" and now["failed"] == 0, (now, [line for line in log.splitlines() if "failed" in line])
            metrics = client.get("/metrics")
            count = lambda name: int(total(metrics, name))
            print(f"{args.instances} instances in {end - start:.1f} s: {shown(prober.within(start, end))}")
            print(
                f"{count('pleach_worker_joins_total')} workers joined, {count('pleach_worker_leaves_total')} left, "
                f"{count('pleach_replans_total')} replans; {used * 1e6 / args.instances:.1f} us of the manager for an instance, "
                f"at most {peak_megabytes(cluster.manager.pid):.0f} MB"
            )
        finally:
            cluster.end()


if __name__ == "__main__":
    main()
