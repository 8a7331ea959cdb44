"""Tests of the figures of papers 000, 001, 003 and 004: python3 -m unittest -v test_studies, in this folder."""

import math
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
import indices
import memory
import memory_model
import registration
import reuse
import reuse_designs as designs
import reuse_planned
import reuse_studies as studies
import scaling
from frame import Context, StepFailed

# A program with the answers of `pleach run`.
PROGRAM = """#!/bin/sh
[ "$1" = run ] || {{ echo "unknown: $1" >&2; exit 2; }}
while [ "$1" != --out ]; do shift; done
mkdir -p "$2"
printf 'evaluation,tile,dice\\n1,a,{dice}\\n' > "$2/responses.csv"
cat > "$2/run.json" <<'END'
{{"planning_seconds": 0.5, "execution_seconds": 2, "evaluations": 16, "tasks_executed": 70, "tasks_reused": {{"tree": 49}},
 "operations": [{{"name": "nuclei.background", "runs": 56, "seconds": 1.5}}, {{"name": "compare.masks", "runs": 14, "seconds": 0.1}}],
 "peak_bytes_admitted": 5, "peak_rss_bytes": 7}}
END
"""


class Designs(unittest.TestCase):
    """The reuse of the designs is that of crates/reuse/benches/papers (benches/RESULTS.md), to the last digit."""

    def test_reuse_of_moat_by_bucket_size(self):
        instances = memory_model.keys(designs.moat(640))
        found = [round(100 * memory_model.reuse(memory_model.rtma(instances, size)), 2) for size in (2, 5, 8)]
        self.assertEqual(found, [22.86, 31.07, 32.90])

    def test_maximum_reuse_of_vbd_by_sampler(self):
        found = []
        for sampler in ("mc", "lhs", "halton"):
            instances = memory_model.keys(designs.vbd(sampler, 200))
            found.append(round(100 * memory_model.reuse([instances]), 2))
        self.assertEqual(found, [36.46, 36.46, 36.36])

    def test_sets_change_one_parameter_at_a_time_in_a_trajectory(self):
        sets = designs.moat(32)
        for first in (0, 16):
            for before, after in zip(sets[first : first + 15], sets[first + 1 : first + 16]):
                self.assertLessEqual(sum(before[name] != after[name] for name in designs.NAMES), 1)

    def test_radical_inverse(self):
        self.assertEqual([designs.radical_inverse(n, 2) for n in (1, 2, 3, 4)], [0.5, 0.25, 0.75, 0.125])


class Model(unittest.TestCase):
    def test_buckets_of_thesis_fig_3_7(self):
        keys = ["15a", "15b", "15c", "26a", "26b", "26c", "26d", "27a", "27b", "38a", "39a", "4xa"]
        names = dict(zip(keys, "abcdefghijkl"))
        for size, expected in ((3, "abc def ghi jk l"), (100, "abc defghi jk l"), (4, "defg abc hi jk l")):
            buckets = memory_model.rtma([tuple((c,) for c in key) for key in keys], size)
            found = ["".join(names["".join(c for (c,) in key)] for key in bucket) for bucket in buckets]
            self.assertEqual(sorted(found), sorted(expected.split()))

    def test_threads_wait_for_shared_tasks(self):
        total, seconds = sum(designs.SECONDS.values()), list(designs.SECONDS.values())
        sets = [designs.DEFAULTS | {"G1": value} for value in (10, 20)]  # t1 and t2 are shared
        bucket = memory_model.keys(sets)
        shared = seconds[0] + seconds[1]
        self.assertAlmostEqual(memory_model.makespan(bucket, 1), 2 * total - shared)
        self.assertAlmostEqual(memory_model.makespan(bucket, 2), total)
        self.assertAlmostEqual(memory_model.makespan(bucket, 8), total)
        self.assertAlmostEqual(memory_model.total([bucket, bucket[:1]], 2), 2 * total)

    def test_paths_of_rtma_and_rmsr(self):
        self.assertEqual(memory.variants(4), {"RTMA(4, 4)": (4, 4), "RMSR(4, 4)": (4, 1), "RMSR(4, 28)": (28, 4)})


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.program = self.folder / "program"
        self.tile = self.folder / "a.png"
        self.tile.write_bytes(b"")

    def run_study(self, dice="0.5"):
        self.program.write_text(PROGRAM.format(dice=dice))
        self.program.chmod(0o755)
        context = Context(self.program, self.folder / "results", log=lambda text: None)
        return studies.run(context, [self.tile], studies.study("tiles/*", studies.moat(16)), [], workers=2)

    def test_values_of_a_run(self):
        found = self.run_study()
        self.assertEqual(found["tasks"]["nuclei.background"], [56, 1.5])
        self.assertEqual((found["planning"], found["execution"], found["executed"]), (0.5, 2, 70))
        self.assertGreater(found["seconds"], 0)
        # 49 tasks were saved of 49 + 56, without the seven of the reference.
        self.assertAlmostEqual(reuse.reuse(found), 49 / (49 + 49))
        self.assertEqual(reuse.task_seconds([found, found]), {"normalization": 0.0, "segmentation": 3.0})
        self.assertEqual(list((self.folder / "results" / "scratch").iterdir()), [])

    def test_other_responses_are_refused(self):
        same = [self.run_study(), self.run_study()]
        studies.check(same)
        with self.assertRaises(ValueError):
            studies.check([*same, self.run_study(dice="0.6")])

    def test_a_failing_run_is_named_with_its_error(self):
        self.program.write_text("#!/bin/sh\necho wrong >&2\nexit 3\n")
        self.program.chmod(0o755)
        context = Context(self.program, self.folder / "results", log=lambda text: None)
        with self.assertRaisesRegex(StepFailed, "program run .*: wrong"):
            studies.run(context, [self.tile], "", [])

    def test_studies_have_the_papers_settings(self):
        text = studies.study("tiles/*", studies.moat(160), studies.eight())
        for line in ('base = "halton"', "trajectories = 10", "normalize = true", 'reference = "defaults"', 'metric = "dice"'):
            self.assertIn(line, text.splitlines())
        self.assertIn("[parameters.T2]\ndistribution = \"uniform\"\nrange = [2.5, 7.5]\n", text)
        self.assertIn("[parameters.G1]\nrange = [5, 80]\nstep = 1\n", text)
        self.assertIn("[parameters.Watershed]\nfixed = 8\n", text)
        self.assertNotIn("[parameters.MorphRecon]", text)


class Values(unittest.TestCase):
    def test_effects_of_a_log(self):
        names = list(indices.LOGGED)
        rows, values = [], dict.fromkeys(names, 0.0)
        for step in range(16):
            if step:
                values[names[step - 1]] = 1.0
            # The effect of the parameter at place n is n; the last one lowers the response.
            response = sum((n if n < 14 else -n) * values[name] for n, name in enumerate(names))
            rows.append([step + 1, *(values[name] for name in names), response])
        # A point of a trajectory that was not completed: it widens the ranges only.
        rows.append([17, *(4.0 for _ in names), 0.0])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log.csv"
            lines = [",".join(["evaluation", *names, "response"]), *(",".join(map(str, row)) for row in rows)]
            path.write_text("\n".join(lines) + "\n")
            found = indices.effects_of_log(path)
        self.assertEqual(found, {indices.LOGGED[name]: 4.0 * n for n, name in enumerate(names)})

    def test_chance_of_a_rank_correlation(self):
        # The critical value of tables for 8 values and 5 % is .738, by permutation. The t distribution has .037.
        self.assertEqual(indices.chance(0.738, 8), ".037")
        self.assertEqual(indices.chance(1.0, 8), "< .001")
        self.assertEqual(indices.ranks("a", [-3, 2, 1], [3, -2, 1]), ["a", 3, "1.00", "< .001"])

    def test_power_laws(self):
        self.assertAlmostEqual(reuse_planned.slope([(n, 3.0 * n**1.5) for n in (10, 100, 1000)]), 1.5)

    def test_tables_of_benches(self):
        text = "\n### Title\n\n| a | ours | b | ours |\n| --- | --- | --- | --- |\n| 1 | 2 |  | 4 |\n"
        self.assertEqual(scaling.rows(text), [{"a": "1", "ours": "2", "b": "", "ours 2": "4"}])
        with self.assertRaises(ValueError):
            scaling.rows("no table")

    def test_published_indices(self):
        self.assertEqual(set(indices.PUBLISHED), set(designs.NAMES))
        self.assertEqual(len(indices.EIGHT), 8)
        self.assertEqual([registration.MINIMAL[level] for level in range(1, 6)], [20, 28, 36, 44, 52])
        self.assertTrue(math.isclose(sum(designs.SECONDS.values()), 9.49))


if __name__ == "__main__":
    unittest.main()
