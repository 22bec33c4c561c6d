"""Zig's clang with the option -march=armv8.2-a+FEATURES, which Zig has under another name.

python zig_compiler.py ZIG c++ ARGUMENTS...
"""

import os
import sys

MARCH, MCPU = "-march=armv8.2-a+", "-mcpu=generic+v8_2a+"

zig, *words = sys.argv[1:]
arguments = [MCPU + word[len(MARCH) :] if word.startswith(MARCH) else word for word in words]
os.execv(zig, [zig, *arguments])
