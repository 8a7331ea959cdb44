"""Adds the program pleach to a wheel.

Without the environment variable ``PLEACH_WHEEL_PROGRAM``, the wheel is pure Python and uses an installed program. With
the path of the program in it, as ``scripts/build-wheel`` sets it, the wheel is for this platform and installs a command
``pleach``.
"""

from __future__ import annotations

import os
import platform
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProgramHook(BuildHookInterface[Any]):
    """Hook of hatchling for the target ``wheel``."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the program, the command that starts it, and the platform's tag."""
        program = os.environ.get("PLEACH_WHEEL_PROGRAM")
        if not program or version == "editable":
            return
        if not os.access(program, os.X_OK) or not os.path.isfile(program):
            raise FileNotFoundError(f"PLEACH_WHEEL_PROGRAM={program}: no such program; the path of pleach is needed")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-linux_{platform.machine()}"
        build_data["force_include"][program] = "pleach_studies/_bin/pleach"
        build_data["shared_scripts"][os.path.join(self.root, "command", "pleach")] = "pleach"
