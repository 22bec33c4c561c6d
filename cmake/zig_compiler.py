"""Zig's clang with the option -march=armv8.2-a+FEATURES, which Zig has under another name.

python zig_compiler.py c++ ARGUMENTS...
"""

import os
import sys
from pathlib import Path

import ziglang

MARCH, MCPU = "-march=armv8.2-a+", "-mcpu=generic+v8_2a+"

zig = str(Path(ziglang.__file__).parent / "zig")
arguments = [MCPU + word[len(MARCH) :] if word.startswith(MARCH) else word for word in sys.argv[1:]]
os.execv(zig, [zig, *arguments])
