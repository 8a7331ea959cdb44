#!/usr/bin/env python3
"""Measures task caches: in a folder, in a bucket of moto, and in the same bucket behind a proxy that adds latency.

Prints look-ups of traces (hits and misses) and loads of regions as p50 / p99, the time to open a cache, and the bytes of an
entry. Then whole studies with each cache, first and again, whose responses have to be the same.

    cargo build --locked --release --bin pleach
    cargo build --locked --release --package pleach-objects --features s3 --example lookups
    benches/cache_lookups.py
"""

import argparse
import asyncio
import json
import os
import pathlib
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def pipe(reader, writer, delay):
    """Passes bytes on, each `delay` seconds late, without slowing the stream."""
    loop = asyncio.get_running_loop()
    pending = asyncio.Queue()

    async def send():
        while (item := await pending.get()) is not None:
            due, data = item
            await asyncio.sleep(max(0.0, due - loop.time()))
            writer.write(data)
            await writer.drain()
        writer.close()

    sender = asyncio.create_task(send())
    try:
        while data := await reader.read(65536):
            await pending.put((loop.time() + delay, data))
    except ConnectionError:
        pass
    await pending.put(None)
    await asyncio.gather(sender, return_exceptions=True)


def start_proxy(port, delay):
    """Starts a proxy before a local port. Its answers are `delay` seconds late. Returns its port."""
    own, ready = free_port(), threading.Event()

    async def handle(reader, writer):
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionError:
            writer.close()
            return
        await asyncio.gather(pipe(reader, far_writer, 0.0), pipe(far_reader, writer, delay), return_exceptions=True)

    async def serve():
        server = await asyncio.start_server(handle, "127.0.0.1", own)
        ready.set()
        await server.serve_forever()

    threading.Thread(target=lambda: asyncio.run(serve()), daemon=True).start()
    ready.wait()
    return own


def start_moto(folder):
    port = free_port()
    program = os.path.join(folder, "moto_server")
    server = subprocess.Popen([program, "-H", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    signature = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
    for _ in range(600):
        try:
            request = urllib.request.Request(f"http://127.0.0.1:{port}/studies", method="PUT", headers={"Authorization": signature})
            urllib.request.urlopen(request).read()
            return server, port
        except OSError:
            time.sleep(0.1)
    raise SystemExit("moto_server does not come up")


def main():
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pleach", default=str(target / "pleach"))
    parser.add_argument("--lookups", default=str(target / "examples" / "lookups"))
    parser.add_argument("--latency", type=float, default=0.2, help="seconds that the proxy adds")
    parser.add_argument("--traces", type=int, default=10_000)
    parser.add_argument("--regions", type=int, default=50)
    parser.add_argument("--trajectories", type=int, default=20)
    args = parser.parse_args()
    args.pleach, args.lookups = (str(pathlib.Path(path).resolve()) for path in (args.pleach, args.lookups))
    installed = subprocess.run([ROOT / "scripts/install-moto"], check=True, capture_output=True, text=True).stdout.strip()
    environment = {**os.environ, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}

    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        server, port = start_moto(installed)
        slow = start_proxy(port, args.latency)
        try:
            places = {
                "folder": lambda name: str(scratch / name),
                "bucket": lambda name: f"s3://studies/direct/{name}?endpoint=http://127.0.0.1:{port}",
                f"bucket, {args.latency * 1000:.0f} ms": lambda name: f"s3://studies/slow/{name}?endpoint=http://127.0.0.1:{slow}",
            }
            print("| cache | open | hit p50 / p99 | miss p50 / p99 | load p50 / p99 | bytes of a trace | of a region |")
            print("| --- | --- | --- | --- | --- | --- | --- |")
            for name, place in places.items():
                command = [args.lookups, place("lookups"), str(args.traces), str(args.regions)]
                done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
                found = json.loads(done.stdout)
                pair = lambda key, scale: " / ".join(f"{value / scale:.1f}" for value in found[key])
                print(
                    f"| {name} | {found['open_s']:.2f} s | {pair('hit_us', 1)} µs | {pair('miss_us', 1)} µs "
                    f"| {pair('load_us', 1000)} ms | {found['trace_bytes']} | {found['region_bytes']} |"
                )
            studies(args, scratch, places, environment)
        finally:
            server.kill()
            server.wait()


def studies(args, scratch, places, environment):
    run = lambda *command: subprocess.run([args.pleach, *command], check=True, cwd=scratch, env=environment)
    run("tissue", "--out", "tiles", "--size", "512", "--count", "2", "--seed", "3")
    (scratch / "study.toml").write_text(
        '[study]\nname = "caches"\nworkflow = "nuclei"\nseed = 500\n[input]\ntiles = ["tiles/*.png"]\nnormalize = true\n'
        'reference = "defaults"\n[method]\nkind = "moat"\nlevels = 20\ntrajectories = %d\n[response]\nmetric = "dice"\n'
        % args.trajectories
    )
    print("\n| cache | study | tasks executed | seconds | warnings |\n| --- | --- | --- | --- | --- |")
    expected = None
    for name, place in {"none": None, **places}.items():
        for turn in ["first", "again"] if place else ["first"]:
            out = f"{name}-{turn}".replace(" ", "-").replace(",", "")
            begun = time.monotonic()
            run("run", "study.toml", "--quiet", "--out", out, *(["--cache", place("study")] if place else []))
            seconds = time.monotonic() - begun
            record = json.loads((scratch / out / "run.json").read_text())
            responses = (scratch / out / "responses.csv").read_bytes()
            expected = expected or responses
            assert responses == expected, f"{out} has other responses"
            warnings = len(record["cache"]["warnings"]) if place else 0
            print(f"| {name} | {turn} | {record['tasks_executed']} | {seconds:.1f} | {warnings} |")


if __name__ == "__main__":
    main()
