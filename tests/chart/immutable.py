#!/usr/bin/env python3
"""Prints the fields of rendered objects that Kubernetes refuses to change, as JSON.

usage: immutable.py FILE...    YAML, any number of objects each

Keys are "KIND NAME". An upgrade of a release fails if one of these fields differs from that of the installed release.
"""
import json
import sys

import yaml

# Of a stateful set, all fields but these may not change (StatefulSet, spec).
MUTABLE_OF_STATEFUL_SET = {
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
}


def immutable(thing):
    """The fields of an object, or None if Kubernetes lets all of them change."""
    spec = thing.get("spec") or {}
    kind = thing["kind"]
    if kind == "StatefulSet":
        return {name: value for name, value in spec.items() if name not in MUTABLE_OF_STATEFUL_SET}
    if kind == "Deployment":
        return {"selector": spec["selector"]}
    if kind == "RoleBinding":
        return {"roleRef": thing["roleRef"]}
    if kind == "Service":
        return {"clusterIP": spec.get("clusterIP")}
    if kind == "Job":
        # The template of a job may not change, so each upgrade replaces the job.
        policy = (thing["metadata"].get("annotations") or {}).get("helm.sh/hook-delete-policy", "")
        return {"isReplaced": "before-hook-creation" in policy}
    return None


def main(files):
    found = {}
    for file in files:
        with open(file, encoding="utf-8") as text:
            for thing in yaml.safe_load_all(text):
                fields = immutable(thing) if thing else None
                if fields is not None:
                    found[f"{thing['kind']} {thing['metadata']['name']}"] = fields
    print(json.dumps(found, indent=1, sort_keys=True))


if __name__ == "__main__":
    main(sys.argv[1:])
