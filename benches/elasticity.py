#!/usr/bin/env python3
"""How soon a cluster takes notice: from a worker's start, and from its joining, to its first bucket; and from kill -9 of a
worker to its buckets being granted to others. On loopback, in a study of generated tissue.

    benches/elasticity.py [--rounds 5] [--pleach PATH]
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

from overhead import MOAT, Cluster


def wait(happened):
    while not happened():
        time.sleep(0.005)
    return time.monotonic()


def metric(text, name):
    lines = [line for line in text.splitlines() if line.startswith((name + " ", name + "{"))]
    assert lines, name
    return sum(float(line.split()[-1]) for line in lines)


def one_round(pleach, folder):
    cluster = Cluster(pleach, folder, 1)
    log = folder / "manager-1.log"

    def workers():
        answer = json.loads(cluster.ask("status", "--json"))
        return {worker["name"]: worker for worker in answer["workers"]}

    try:
        study = cluster.ask("submit", "study.toml").strip()
        wait(lambda: workers()["w0"]["running"] > 0)
        time.sleep(1)
        if not (folder / "ca" / "late").exists():
            cluster.call("certs", "issue", "--dir", "ca", "--name", "late", "--role", "worker")
        start = time.monotonic()
        listen = log.read_text().split("connect to ")[1].split(",")[0]
        late = cluster.start(
            folder / "late.log", "worker", "--manager", listen, "--certs", "ca/late", "--cores", "1", "--memory", "1GB",
            "--listen", "127.0.0.1:0",
        )
        joined = wait(lambda: "worker late joined with" in log.read_text())
        running = wait(lambda: workers().get("late", {}).get("running", 0) > 0)
        time.sleep(1)
        killed = time.monotonic()
        late.kill()
        lost = wait(lambda: "worker late is lost" in log.read_text())
        url = cluster.http + "/metrics"
        metrics = subprocess.run(
            ["curl", "-sk", url], check=True, capture_output=True, text=True
        ).stdout
        replans = metric(metrics, "pleach_replans_total")
        instances = metric(metrics, "pleach_replanned_instances_total")
        cluster.ask("cancel", study)
        return running - start, running - joined, lost - killed, replans, instances
    finally:
        cluster.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pleach", default="target/release/pleach")
    args = parser.parse_args()
    pleach = str(pathlib.Path(args.pleach).resolve())
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run(
            [pleach, "tissue", "--out", "tiles", "--size", "512", "--count", "2"], cwd=folder, check=True, capture_output=True
        )
        (folder / "study.toml").write_text(MOAT.format(name="elastic", seed=7, tiles="tiles/tissue_0?.png", trajectories=40))
        for _ in range(args.rounds):
            rows.append(one_round(pleach, folder))
    names = ["start to first bucket, s", "joined to first bucket, s", "kill -9 to granted anew, s", "re-plans", "instances in them"]
    for name, values in zip(names, zip(*rows)):
        print(f"{name}: median {statistics.median(values):.2f}, largest {max(values):.2f}")


if __name__ == "__main__":
    main()
