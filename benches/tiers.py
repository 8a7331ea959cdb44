#!/usr/bin/env python3
"""One study with all of it in memory, and within a quarter of that: with nothing below memory, a folder on the disk, another
file system, and a bucket of a server that speaks S3 (moto_server or s3s-fs, if one is on the PATH). Whole processes in turn; the responses have to be the same.

    benches/tiers.py [--rounds 2] [--size 2048] [--tiles 2] [--pleach PATH] [--other /dev/shm]
"""

import argparse
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request

STUDY = """[study]
name = "tiers"
workflow = "nuclei"
seed = 7
[input]
tiles = ["tiles/tissue_*.png"]
normalize = true
reference = "defaults"
[method]
kind = "moat"
trajectories = 4
levels = 20
[response]
metric = "dice"
"""

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


def serve(folder):
    """A server with a bucket "studies", or none."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    endpoint = f"http://127.0.0.1:{port}"
    if s3s := shutil.which("s3s-fs"):
        (folder / "objects" / "studies").mkdir(parents=True)
        keys = ["--access-key", "test", "--secret-key", "test"]
        command = [s3s, "--host", "127.0.0.1", "--port", port, *keys, str(folder / "objects")]
    elif moto := shutil.which("moto_server"):
        command = [moto, "-H", "127.0.0.1", "-p", port]
    else:
        return None, None
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", int(port))).close()
            break
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    if "moto" in command[0]:
        key = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
        create = urllib.request.Request(f"{endpoint}/studies", method="PUT", headers={"Authorization": key})
        urllib.request.urlopen(create).close()
    return server, endpoint


def run(pleach, folder, out, *options):
    """Seconds and run.json of one process."""
    shutil.rmtree(folder / out, ignore_errors=True)
    begun = time.monotonic()
    command = [pleach, "run", "study.toml", "--out", out, "--quiet", "--workers", "2", *options]
    subprocess.run(command, cwd=folder, check=True, env=os.environ | CREDENTIALS)
    seconds = time.monotonic() - begun
    return seconds, json.loads((folder / out / "run.json").read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--tiles", type=int, default=2)
    parser.add_argument("--pleach", default="target/release/pleach")
    parser.add_argument("--other", default="/dev/shm", help="a folder on another file system")
    args = parser.parse_args()
    pleach = str(pathlib.Path(args.pleach).resolve())
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory(dir=args.other) as other:
        folder = pathlib.Path(place)
        made = ["--size", str(args.size), "--count", str(args.tiles), "--seed", "3"]
        subprocess.run([pleach, "tissue", "--out", str(folder / "tiles"), *made], check=True, stdout=subprocess.DEVNULL)
        (folder / "study.toml").write_text(STUDY)
        (folder / "ssd").mkdir()
        server, endpoint = serve(folder)
        try:
            _, record = run(pleach, folder, "first", "--memory", "8GB")
            expected = (folder / "first" / "responses.csv").read_bytes()
            every = record["peak_bytes_admitted"]
            quarter = ["--memory", str(every // 4)]
            ways = {
                "all in memory": ["--memory", "8GB"],
                "a quarter, nothing below": quarter,
                "a quarter, folder": [*quarter, "--ssd", "ssd"],
                "a quarter, other file system": [*quarter, "--lustre", other],
            }
            if endpoint:
                bucket = f'[[tier]]\nkind = "s3"\nbucket = "studies"\nendpoint = "{endpoint}"\ncapacity = "8GB"\n'
                (folder / "tiers.toml").write_text(bucket)
                ways["a quarter, bucket"] = [*quarter, "--tiers", "tiers.toml"]
            print(f"{every / 1e6:.0f} MB with all in memory, {every // 4 / 1e6:.0f} MB are a quarter")
            for number in range(args.rounds):
                for name, options in ways.items():
                    seconds, record = run(pleach, folder, "out", *options)
                    same = (folder / "out" / "responses.csv").read_bytes() == expected
                    storage = record.get("storage") or {}
                    moved = {what: storage.get(what, {}).get("regions", 0) for what in ("demoted", "promoted")}
                    print(
                        f"round {number + 1}  {name:30} {seconds:6.1f} s  {record['tasks_executed']:5} tasks"
                        f"  {record['peak_bytes_admitted'] / 1e6:6.0f} MB held"
                        f"  {moved['demoted']:4} down {moved['promoted']:4} up  {'same' if same else 'DIFFERENT'}",
                        flush=True,
                    )
                    if not same:
                        raise SystemExit(1)
        finally:
            if server:
                server.terminate()
                server.wait(10)


if __name__ == "__main__":
    main()
