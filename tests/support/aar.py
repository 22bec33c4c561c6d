"""The modules of packaging/aar.py."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "packaging"))
aar = importlib.import_module("aar")
builds = importlib.import_module("android_builds")
