#!/usr/bin/env python3
"""What a schedule policy gains on workers with accelerators: the pipeline example of Region Templates as stand-ins that wait, on a
manager and worker processes with emulated devices. True gains are hidden: workers learn them from measured runs.

    benches/accelerators.py [--instances 300] [--cores 16] [--devices 1] [--workers 1] [--scale 0.2] [--error 0.5] [--pleach PATH]

Prints, for gains declared exactly and wrong by --error (those below the median too high, the others too low), the seconds of each
policy and of the cores alone, the lower bound of both kinds of slots together, and the tasks on accelerators by stand-in. Then pats
once more with the gains of the first execution, and the predictions of `pleach plan` and `pleach simulate` from its measured times.
Times of an emulated device are waits: they say what a policy does, not what a device gains.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

from overhead import Cluster

# Seconds on a core, and the gain that the operation declares.
KERNELS = {
    "rbc": (0.3941, 13.2),
    "open": (0.1522, 9.2),
    "recon": (1.7483, 5.5),
    "area": (0.1295, 4.6),
    "distance": (1.5873, 6.9),
    "components": (0.3555, 5.7),
    "deconvolution": (1.0969, 14.0),
    "statistics": (0.1517, 16.9),
    "gradient": (1.7231, 17.8),
    "sobel": (0.2942, 16.4),
}
READS = {
    "rbc": "begun", "open": "rbc", "recon": "open", "area": "recon", "distance": "area", "components": "distance",
    "deconvolution": "begun", "statistics": "components", "gradient": "joined", "sobel": "joined",
}  # fmt: skip
POLICIES = ["fcfs", "heft", "pats"]


class Nodes(Cluster):
    """Workers with accelerators."""

    def __init__(self, pleach, folder, workers, options):
        self.settle(pleach, folder, workers)
        log = folder / "manager.log"
        log.write_text("")
        state = tempfile.mkdtemp(dir=folder)
        self.manager = self.start(
            log, "manager", "--state", state, "--certs", "ca/boss", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"
        )
        while "workers connect to" not in log.read_text():
            time.sleep(0.05)
        line = next(line for line in log.read_text().splitlines() if "workers connect to" in line)
        listen, http = line.split("connect to ")[1].split(", clients to ")
        self.http = http
        for number in range(workers):
            self.start(
                folder / f"w{number}.log", "worker", "--manager", listen, "--certs", f"ca/w{number}",
                "--listen", "127.0.0.1:0", *options,
            )  # fmt: skip
        while log.read_text().count("joined with") < workers:
            time.sleep(0.05)


def true_gains(error):
    """The gains that a device has, if the declared ones are wrong by this share."""
    median = sorted(gain for _, gain in KERNELS.values())[len(KERNELS) // 2]
    wrong = lambda gain: 1 + error if gain < median else 1 - error
    return {name: gain / wrong(gain) for name, (_, gain) in KERNELS.items()}


def write_study(folder, instances, scale, gains):
    fixed = lambda name, argument, kind, value: {"name": name, "argument": argument, "type": kind, "fixed": value}
    varied = lambda name: {"name": name, "argument": name, "type": "integer", "default": 0, "range": [0, 100_000], "step": 1}
    task = lambda name, operation, parameters, reads, writes: {
        "task": name, "description": name, "operation": f"emulation.{operation}", "version": 1,
        "parameters": parameters, "reads": reads, "writes": [writes],
    }  # fmt: skip
    begin = [varied("execution"), fixed("job", "job", "integer", 0), fixed("delay", "seconds", "real", 0.0)]
    tasks = [task("begin", "queue", begin, [], "begun")]
    for name, read in READS.items():
        if name == "gradient":
            tasks.append(task("join", "after", [], ["components", "deconvolution"], "joined"))
        parameters = [
            fixed(f"{name} execution", "execution", "integer", 0),
            fixed(f"{name} seconds", "seconds", "real", KERNELS[name][0] * scale),
            fixed(f"{name} gain", "gain", "real", gains[name]),
        ]
        tasks.append(task(name, name, parameters, [read], name))
    tasks.append(task("ends 1", "after", [], ["statistics", "gradient"], "end 1"))
    tasks.append(task("ends 2", "after", [], ["end 1", "sobel"], "end 2"))
    tasks.append(task("end", "end", [fixed("end execution", "execution", "integer", 0), varied("jobs")], ["end 2"], "table"))
    stage = {"stage": "pipeline", "description": "Stand-ins", "inputs": [], "outputs": [{"region": "table", "type": "table"}]}
    (folder / "pipeline.json").write_text(json.dumps(stage | {"tasks": tasks}))
    response = {"region": "table", "metrics": [{"metric": "jobs", "over_tiles": "sum"}]}
    workflow = {"workflow": "pipeline", "description": "Stand-ins", "inputs": [], "stages": [{"descriptor": "pipeline.json"}]}
    (folder / "workflow.json").write_text(json.dumps(workflow | {"response": response}))
    (folder / "sets.csv").write_text("execution,jobs\n" + "".join(f"{n},{n}\n" for n in range(instances)))
    (folder / "study.toml").write_text(
        '[study]\nname = "pipeline"\nworkflow = "workflow.json"\nseed = 1\n[input]\ntiles = ["tiles/tissue_01.png"]\n'
        '[method]\nkind = "table"\nfile = "sets.csv"\n[response]\nmetric = "jobs"\n'
    )


def bound(args, gains):
    """Seconds of both kinds of slots together: the tasks of greatest gain on accelerators, as many as take the same time."""
    cores, devices = args.cores * args.workers, args.devices * args.workers
    work = [(gains[name], args.instances * seconds * args.scale) for name, (seconds, _) in KERNELS.items()]
    on_cores, on_devices = sum(seconds for _, seconds in work), 0.0
    for gain, seconds in sorted(work, reverse=True):
        if not devices:
            break
        # Share x of this operation: (on_devices + x s / g) / devices = (on_cores - x s) / cores.
        share = (on_cores / cores - on_devices / devices) / (seconds / cores + seconds / gain / devices)
        share = min(1.0, max(0.0, share))
        on_cores, on_devices = on_cores - share * seconds, on_devices + share * seconds / gain
    return max(on_cores / cores, on_devices / devices if devices else 0.0)


def predictions(args, folder, run):
    """Seconds that plan and simulate predict from the times of a run."""
    cores = args.cores * args.workers
    plan = [args.pleach, "plan", "study.toml", "--json", "--reuse", "tree", "--run", run, "--workers", str(cores)]
    plan += ["--accelerators", str(args.devices * args.workers)]
    planned = json.loads(subprocess.run(plan, cwd=folder, check=True, capture_output=True).stdout)
    (folder / "burst.toml").write_text(
        f'[study]\nfile = "study.toml"\nrun = "{run}"\nreuse = "tree"\n'
        f"[base]\nnodes = {args.workers}\ncores = {args.cores}\naccelerators = {args.devices}\n"
        '[[pool]]\nname = "cloud"\ncores = 1\nprice_per_hour = 1\nstartup_seconds = 60\nmax = 1\n[[policy]]\nkind = "fixed"\n'
    )
    simulate = [args.pleach, "simulate", "burst.toml", "--json"]
    simulated = json.loads(subprocess.run(simulate, cwd=folder, check=True, capture_output=True).stdout)
    return planned["plans"][0]["predicted_makespan_seconds"], simulated["policies"][0]["makespan_seconds"]


def measure(args, folder, options, executions=1):
    """Seconds of the last of some executions, the runs by operation, and the run.json. The first one learns gains."""
    cluster = Nodes(args.pleach, folder, args.workers, ["--cores", str(args.cores), *options])
    try:
        seconds = [cluster.run("--reuse", "tree").wall[1] for _ in range(executions)][-1]
        number = json.loads(cluster.ask("status", "--json"))["studies"][-1]["id"]
        out = tempfile.mkdtemp(dir=folder)
        cluster.ask("results", number, "--out", out)
        run = pathlib.Path(out) / "run.json"
        operations = json.loads(run.read_text())["operations"]
    finally:
        cluster.end()
    return seconds, {operation["name"].removeprefix("emulation."): operation for operation in operations}, run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=300)
    parser.add_argument("--cores", type=int, default=16, help="cores of each worker [default: 16]")
    parser.add_argument("--devices", type=int, default=1, help="emulated devices of each worker [default: 1]")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--scale", type=float, default=0.2, help="share of the seconds of the example [default: 0.2]")
    parser.add_argument("--error", type=float, default=0.5, help="error of the declared gains [default: 0.5]")
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=POLICIES, help="pats last [default: all]")
    parser.add_argument("--pleach", default="target/release/pleach")
    args = parser.parse_args()
    args.pleach = str(pathlib.Path(args.pleach).resolve())
    devices = "emulate:" + ",".join(["1x"] * args.devices)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tissue = [args.pleach, "tissue", "--out", "tiles", "--size", "64", "--count", "1"]
        subprocess.run(tissue, cwd=folder, check=True, capture_output=True)
        for error in [0.0, args.error]:
            gains = true_gains(error)
            write_study(folder, args.instances, args.scale, gains)
            alone, _, _ = measure(args, folder, ["--accelerators", "none"])
            lowest = bound(args, gains)
            print(f"declared gains wrong by {error:.0%}: cores alone {alone:.1f} s, bound {lowest:.1f} s", flush=True)
            times = {}
            for policy in args.policies:
                options = ["--accelerators", devices, "--schedule", policy, "--device-check", "0"]
                times[policy], runs, run = measure(args, folder, options)
                shares = [
                    f"{name} {runs[name].get('accelerator', {}).get('runs', 0)}/{runs[name]['runs']}" for name in KERNELS
                ]
                print(f"  {policy} (emulated devices): {times[policy]:.1f} s; on accelerators: {', '.join(shares)}", flush=True)
            if "pats" not in times:
                continue
            ratios = [f"{policy}/pats {times[policy] / times['pats']:.2f}" for policy in times if policy != "pats"]
            ratios += [f"cores/pats {alone / times['pats']:.2f}", f"pats/bound {times['pats'] / lowest:.2f}"]
            print(f"  {', '.join(ratios)}")
            options = ["--accelerators", devices, "--device-check", "0"]
            learned, _, run = measure(args, folder, options, executions=2)
            planned, simulated = predictions(args, folder, run)
            of = lambda seconds: f"{seconds:.1f} s, {seconds / learned:.2f} of measured"
            print(f"  pats again, with learned gains: {learned:.1f} s, {learned / lowest:.2f} of the bound")
            print(f"  predicted: plan {of(planned)}; simulate {of(simulated)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
