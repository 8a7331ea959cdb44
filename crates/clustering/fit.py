#!/usr/bin/env python3
"""Prints src/generate/fit.rs: quantiles of the run times of each task kind over all traces of its family.

    python3 crates/clustering/fit.py TEST_DATA/workflows > crates/clustering/src/generate/fit.rs

A run time of 0 or less is an artifact of the program that made the traces, and left out. Run times that grow with the workflow or
its files are divided by their size: see SCALE.
"""
import gzip
import math
import pathlib
import sys
import xml.etree.ElementTree

LEVELS = [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0]
FAMILIES = {"Montage": ["Montage"], "CyberShake": ["CyberShake"], "Epigenomics": ["Epigenomics", "Genome"],
            "Ligo": ["Inspiral", "LIGO"], "Sipht": ["Sipht", "SIPHT"]}
# Size of a workflow for a task: counts of kinds, the number of its parents, or GB of its largest file, the reference genome.
SCALE = {
    "mConcatFit": lambda count, parents, gigabytes: count["mDiffFit"],
    "mBgModel": lambda count, parents, gigabytes: count["mProjectPP"],
    "mImgTbl": lambda count, parents, gigabytes: count["mProjectPP"],
    "mAdd": lambda count, parents, gigabytes: count["mProjectPP"],
    "mShrink": lambda count, parents, gigabytes: math.sqrt(count["mProjectPP"]),
    "mJPEG": lambda count, parents, gigabytes: math.sqrt(count["mProjectPP"]),
    "ZipPSA": lambda count, parents, gigabytes: count["PeakValCalcOkaya"],
    "ZipSeis": lambda count, parents, gigabytes: count["SeismogramSynthesis"],
    "map_chr21": lambda count, parents, gigabytes: gigabytes,
    "pileup_chr21": lambda count, parents, gigabytes: gigabytes,
    # The merge of all lanes counts as one of all chains.
    "mapMerge_chr21": lambda count, parents, gigabytes: count["map_chr21"] if "mapMerge_chr21" in parents else len(parents),
}


def tasks(path):
    """Returns the kind, run time, kinds of parents and GB of the largest file of each task of a DAX or DAG file."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    rows, edges = {}, []
    if b"<adag" in data[:2000]:
        root = xml.etree.ElementTree.fromstring(data)
        for element in root.iter():
            tag = element.tag.split("}")[1]
            if tag == "job":
                largest = max(int(uses.get("size")) for uses in element)
                rows[element.get("id")] = (element.get("name"), float(element.get("runtime")), largest / 1e9)
            elif tag == "child":
                edges += [(parent.get("ref"), element.get("ref")) for parent in element]
    else:
        for words in map(str.split, data.decode().splitlines()):
            if words[0] == "TASK":
                rows[words[1]] = (words[2].split("::")[1].rsplit(":", 1)[0], float(words[3]), None)
            elif words[0] == "EDGE":
                edges.append((words[1], words[2]))
    parents = {task: [] for task in rows}
    for parent, child in edges:
        parents[child].append(rows[parent][0])
    return [(kind, seconds, parents[task], size) for task, (kind, seconds, size) in rows.items()]


def quantile(values, level):
    """Returns a quantile of sorted values, with linear interpolation."""
    place = level * (len(values) - 1)
    low = math.floor(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)


def main():
    folder = pathlib.Path(sys.argv[1])
    # dag/Montage_25.dag is dax/Montage_25.xml once more.
    paths = sorted([*folder.glob("dax/*"), *folder.glob("dag/Sipht*")])
    print("//! Quantiles of run times in seconds of each task kind over all traces of its family, written by `fit.py`.\n")
    print("use super::draw::Quantiles;")
    for family, prefixes in FAMILIES.items():
        values = {}
        for path in (path for path in paths if path.name.startswith(tuple(prefixes))):
            rows = tasks(path)
            kinds = [row[0] for row in rows]
            count = {kind: kinds.count(kind) for kind in set(kinds)}
            for kind, seconds, parents, gigabytes in rows:
                scale = SCALE[kind](count, parents, gigabytes) if kind in SCALE else 1
                if seconds > 0:
                    values.setdefault(kind, []).append(seconds / scale)
        print()
        for kind, found in values.items():
            found.sort()
            row = ", ".join(f"{quantile(found, level):.5g}" for level in LEVELS)
            row = ", ".join(word if "." in word or "e" in word else word + ".0" for word in row.split(", "))
            name = "".join("_" + c if c.isupper() and i and not kind[i - 1].isupper() and kind[i - 1] != "_" else c
                           for i, c in enumerate(kind.removesuffix("_chr21"))).upper()
            about = f"`{kind}` of {family}" + (", divided by its size in `fit.py`" if kind in SCALE else "")
            print(f"/// {about}: {len(found)} tasks.\npub(super) const {name}: Quantiles = [{row}];")


main()
