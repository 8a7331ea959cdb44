"""Studies on a manager with certificates and a worker, both processes of these tests."""

import contextlib
import io
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import numpy as np

from pleach_studies import PleachError, PleachWarning, Study, Submission, find_program

try:
    PLEACH = find_program()
except FileNotFoundError as error:
    raise unittest.SkipTest(str(error)) from None

MOAT = {"kind": "moat", "trajectories": 2}


class Submissions(unittest.TestCase):
    folder: Path
    url: str
    token: str

    @classmethod
    def setUpClass(cls) -> None:
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = Path(temporary.name)
        cls.call("tissue", "--out", "tiles", "--size", "64", "--count", "2")
        cls.call("certs", "init", "--dir", "ca")
        for name, role in (("boss", "manager"), ("me", "client"), ("w0", "worker")):
            cls.call("certs", "issue", "--dir", "ca", "--name", name, "--role", role, "--out", f"ca/{name}")
        free = ["--listen", "127.0.0.1:0"]
        started = cls.start("manager", "--state", "state", "--certs", "ca/boss", *free, "--http", "127.0.0.1:0")
        assert started.stdout is not None
        for line in started.stdout:
            if found := re.search(r"workers connect to (\S+), clients to (https://\S+)", line):
                break
        else:
            raise AssertionError("the manager ended")
        listen, cls.url = found.groups()
        cls.token = (cls.folder / "state/token").read_text().strip()
        # Nothing else reads the manager's log: it must not block.
        cls.drain(started)
        worker = ["worker", "--manager", listen, "--certs", "ca/w0", *free, "--cores", "1", "--memory", "1GB"]
        cls.drain(cls.start(*worker))

    @classmethod
    def call(cls, *arguments: str) -> None:
        subprocess.run([PLEACH, *arguments], cwd=cls.folder, check=True, capture_output=True)

    @classmethod
    def start(cls, *arguments: str) -> "subprocess.Popen[str]":
        child = subprocess.Popen([PLEACH, *arguments], cwd=cls.folder, stdout=subprocess.PIPE, text=True)

        def end() -> None:
            child.kill()
            child.wait()

        cls.addClassCleanup(end)
        return child

    @classmethod
    def drain(cls, child: "subprocess.Popen[str]") -> None:
        import threading

        def read() -> None:
            assert child.stdout is not None
            with contextlib.suppress(ValueError):
                for _ in child.stdout:
                    pass
            child.stdout.close()

        reader = threading.Thread(target=read)
        reader.start()
        cls.addClassCleanup(reader.join)
        # Cleanups run in the opposite order: first the process ends, then its reader.
        cls.addClassCleanup(child.kill)

    def of(self, **fields: object) -> Study:
        usual = {"workflow": "nuclei", "tiles": self.folder / "tiles/*.png", "method": MOAT, "seed": 500}
        return Study(**{**usual, **fields})

    def test_results_are_those_of_a_run(self) -> None:
        study = self.of(name="remote", response=["dice", "nuclei"])
        submission = study.submit(self.url, ca=self.folder / "ca/ca.pem", token=self.token)
        self.assertEqual(repr(submission), f"Submission({submission.id!r}, {self.url!r})")
        results = submission.results(self.folder / "remote", timeout=120)
        local = study.run(self.folder / "local", workers=1, quiet=True)
        np.testing.assert_array_equal(results.responses, local.responses)
        for name, numbers in local.indices["nuclei"].items():
            np.testing.assert_array_equal(results.indices["nuclei"][name], numbers)
        self.assertTrue(results.report.is_file())
        status = submission.status()
        self.assertEqual((status["state"], status["name"], status["evaluations_done"]), ("complete", "remote", 32))

    def test_another_process_continues_with_the_id(self) -> None:
        submission = self.of().submit(self.url, certs=self.folder / "ca/me")
        with mock.patch.dict(os.environ, {"PLEACH_CERTS": str(self.folder / "ca"), "PLEACH_TOKEN": self.token}):
            again = Submission(submission.id, self.url)
            self.assertEqual(again.wait(120)["state"], "complete")
        self.assertEqual(again.url, self.url)

    def test_a_canceled_study_has_no_results(self) -> None:
        study = self.of(method={"kind": "moat", "trajectories": 100})
        submission = study.submit(self.url, certs=self.folder / "ca/me")
        with self.assertRaisesRegex(TimeoutError, f"study {submission.id} is .* after 0.01 s; it continues"):
            submission.wait(0.01)
        self.assertEqual(submission.cancel()["state"], "canceled")
        for call in (submission.wait, lambda: submission.results(self.folder / "canceled")):
            with self.assertRaisesRegex(PleachError, f"study {submission.id} is canceled") as caught:
                call()
            self.assertEqual(caught.exception.code, 4)
        self.assertFalse((self.folder / "canceled").exists())

    def test_failed_runs_give_a_warning(self) -> None:
        content = (self.folder / "tiles/tissue_01.png").read_bytes()
        (self.folder / "broken.png").write_bytes(content[:2000])
        tiles = [self.folder / "tiles/tissue_01.png", self.folder / "broken.png"]
        submission = self.of(tiles=tiles).submit(self.url, certs=self.folder / "ca/me")
        with self.assertWarnsRegex(PleachWarning, "32 runs failed"):
            results = submission.results(self.folder / "partly", timeout=120)
        self.assertEqual(len(results.failed), 32)

    def test_progress_is_shown_in_terminals_only(self) -> None:
        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        for quiet in (False, True):
            with contextlib.redirect_stderr(Terminal()) as shown:
                study = self.of(name="shown", method={"kind": "moat", "trajectories": 5})
                study.submit(self.url, certs=self.folder / "ca/me").wait(120, quiet=quiet)
            pattern = r"\rstudy \S+ is (queued|running): \d+/\d+ evaluations"
            self.assertEqual(bool(re.search(pattern, shown.getvalue())), not quiet, shown.getvalue())
            self.assertEqual(shown.getvalue().endswith("\r\x1b[K"), not quiet)

    def test_wrong_credentials_and_studies_have_message_and_code(self) -> None:
        ca, certs = self.folder / "ca/ca.pem", self.folder / "ca/me"
        for fields, credentials, code, message in [
            ({}, {"ca": ca, "token": "wrong"}, 2, "token"),
            ({}, {"certs": self.folder / "tiles"}, 2, "ca.pem"),
            ({"response": "beauty"}, {"certs": certs}, 2, "study.toml: .*beauty"),
        ]:
            with self.subTest(message), self.assertRaisesRegex(PleachError, message) as caught:
                self.of(**fields).submit(self.url, timeout=0.5, **credentials)
            self.assertEqual(caught.exception.code, code)
            self.assertNotIn("pleach-studies-", str(caught.exception))
        with self.assertRaisesRegex(PleachError, "cannot reach the manager") as caught:
            self.of().submit("https://127.0.0.1:9", certs=certs, timeout=0)
        self.assertEqual(caught.exception.code, 4)
        with self.assertRaises(PleachError) as caught:
            Submission("s999", self.url, certs=certs).status()
        self.assertEqual(caught.exception.code, 4)
        with mock.patch.dict(os.environ):
            for name in ("PLEACH_TOKEN", "PLEACH_CERTS"):
                os.environ.pop(name, None)
            for credentials, message in [
                ({}, "ca and certs: missing"),
                ({"ca": ca}, "token: missing"),
                ({"ca": ca, "certs": certs}, "one of ca and certs"),
            ]:
                with self.subTest(message), self.assertRaisesRegex(ValueError, message):
                    self.of().submit(self.url, **credentials)
            with self.assertRaisesRegex(FileNotFoundError, "none.pem: no such file"):
                self.of().submit(self.url, ca=self.folder / "none.pem", token="t")


if __name__ == "__main__":
    unittest.main()
