#!/usr/bin/env python3
"""Validates rendered objects against the schemas of Kubernetes and of other projects' kinds, offline.

usage: validate.py FILE...    YAML, any number of objects each; scripts/install-helm prints the folder of its python

Prints a line for each problem, then how many objects there are of each kind as JSON; exits with 1 if there are problems.
Unknown fields are problems everywhere. Kinds that are not Kubernetes' own are looked up in generated models of the
projects' definitions (cloudcoil-models-*). Nothing is asked of a cluster: names that refer to nothing are not found here.
"""
import collections
import importlib
import json
import os
import sys

import jsonschema
import kubernetes_validate
import yaml

# The oldest that Chart.yaml allows, one in between, and the newest with a schema.
VERSIONS = ("1.27", "1.32", "1.37")
OTHERS = {
    ("cert-manager.io/v1", "Certificate"): "cloudcoil.models.cert_manager.v1",
    ("cert-manager.io/v1", "Issuer"): "cloudcoil.models.cert_manager.v1",
    ("keda.sh/v1alpha1", "ScaledObject"): "cloudcoil.models.keda.v1alpha1",
    ("monitoring.coreos.com/v1", "PodMonitor"): "cloudcoil.models.prometheus_operator.v1",
    ("monitoring.coreos.com/v1", "PrometheusRule"): "cloudcoil.models.prometheus_operator.v1",
    ("monitoring.coreos.com/v1", "ServiceMonitor"): "cloudcoil.models.prometheus_operator.v1",
}


class UniqueKeys(yaml.SafeLoader):
    """YAML in which a key that is there twice is an error, not the last one's."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key, _ in node.value:
            key = self.construct_object(key, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key} is there twice", node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def strict(schema):
    """The same schema with every object closed whose fields are listed."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    # Fields that may be left out are "this or nothing" in the models; nobody writes the nothing.
    choices = [choice for choice in schema.get("anyOf", []) if choice != {"type": "null"}]
    if len(choices) == 1:
        return strict(choices[0])
    closed = {name: strict(value) for name, value in schema.items()}
    if isinstance(closed.get("properties"), dict):
        closed.setdefault("additionalProperties", False)
    return closed


def schema_of(kind):
    """The schema of another project's kind. To load its model takes seconds, so that it is kept beside this Python."""
    path = os.path.join(sys.prefix, f"{kind[1]}.schema.json")
    if not os.path.exists(path):
        schema = getattr(importlib.import_module(OTHERS[kind]), kind[1]).model_json_schema(by_alias=True)
        part = f"{path}.{os.getpid()}"
        with open(part, "w", encoding="utf-8") as file:
            json.dump(schema, file)
        os.replace(part, path)
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def problems(thing):
    kind = (thing.get("apiVersion"), thing.get("kind"))
    if kind in OTHERS:
        validator = jsonschema.Draft202012Validator(strict(schema_of(kind)))
        return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(thing)]
    found = []
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(thing, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            found.append(f"Kubernetes {version}: {'.'.join(map(str, error.path))}: {error.message}")
        except kubernetes_validate.SchemaNotFoundError as error:
            found.append(f"Kubernetes {version}: no schema: {error}")
    return found


def main(files):
    kinds, count = collections.Counter(), 0
    for file in files:
        with open(file, encoding="utf-8") as text:
            for thing in yaml.load_all(text, Loader=UniqueKeys):
                if thing is None:
                    continue
                kinds[thing.get("kind")] += 1
                for problem in problems(thing):
                    count += 1
                    print(f"{thing.get('kind')} {thing.get('metadata', {}).get('name')}: {problem}")
    print(json.dumps(dict(sorted(kinds.items()))))
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
