"""Runs the worker of an engine: ``python -m benchmarks.peers.workers MODULE TASK``."""

import sys
from importlib import import_module

from benchmarks.peers.worker import serve

serve(import_module(sys.argv[1]).load, sys.argv[2])
