"""Compiles a kernel's text to Vulkan's SPIR-V: python3.11 clspv_compiler.py TEXT MODULE."""

import sys
from pathlib import Path

import pyclspv

# The compiler does not end over some pointers that a loop moves.
text = "#define PLACES_ARE_INDICES\n" + Path(sys.argv[1]).read_text(encoding="utf-8")
Path(sys.argv[2]).write_bytes(pyclspv.compile(text))
