#!/usr/bin/env python3
"""Answers what the chart's hook asks of a cluster: creating secrets and applying them.

usage: api.py FOLDER NAMESPACE TOKEN NAME...    NAMEs are those of secrets that may be patched; prints its address

Secrets become folders with a file for each key, as a pod sees them. As in a cluster, a secret that is there is not created
again (409), and what no role allows is forbidden (403). Nothing else of a cluster is here.
"""
import base64
import http.server
import json
import os
import sys
import urllib.parse

FOLDER, NAMESPACE, TOKEN, *PATCHED = sys.argv[1:]
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"


class Api(http.server.BaseHTTPRequestHandler):
    def answer(self, code, message):
        body = json.dumps({"kind": "Status", "code": code, "message": message}).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def secret(self):
        text = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            return self.answer(401, "Unauthorized")
        secret = json.loads(text)
        if (secret["apiVersion"], secret["kind"]) != ("v1", "Secret"):
            return self.answer(422, "no secret")
        return secret

    def keep(self, secret):
        folder = os.path.join(FOLDER, secret["metadata"]["name"])
        os.makedirs(folder, exist_ok=True)
        for key, value in secret["data"].items():
            with open(os.path.join(folder, key), "wb") as file:
                file.write(base64.b64decode(value, validate=True))

    def do_POST(self):
        if (secret := self.secret()) is None:
            return
        name = secret["metadata"]["name"]
        if self.path != SECRETS or self.headers["Content-Type"] != "application/json":
            self.answer(404, self.path)
        elif os.path.exists(os.path.join(FOLDER, name)):
            self.answer(409, f'secrets "{name}" already exists')
        else:
            self.keep(secret)
            self.answer(201, "created")

    def do_PATCH(self):
        if (secret := self.secret()) is None:
            return None
        url = urllib.parse.urlparse(self.path)
        name, asked = secret["metadata"]["name"], urllib.parse.parse_qs(url.query)
        if url.path != f"{SECRETS}/{name}" or self.headers["Content-Type"] != "application/apply-patch+yaml":
            self.answer(404, self.path)
        elif name not in PATCHED:
            self.answer(403, f'secrets "{name}" is forbidden')
        elif "fieldManager" not in asked:
            self.answer(422, "fieldManager is required for apply patch")
        else:
            self.keep(secret)
            self.answer(200, "applied")
        return None

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Api)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
