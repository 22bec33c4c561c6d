"""The parser of benchmarks/mobile_isa on compiler output recorded with Mesa 26.2."""

from __future__ import annotations

import pytest

from benchmarks.mobile_isa import document, judge, machine_code
from benchmarks.mobile_isa.compiler import GPUS
from benchmarks.mobile_isa.programs import Program, in_halves
from benchmarks.mobile_isa.work import work

# Three words a texel, a hundred texels; the part before "Native code" is of the first compilation.
ADRENO = """\
Native code for unnamed CL shader  with blake3 00:
cbits.b hr9.x, hr9.x
end
; CL prog 24/1: 64 instr, 33 nops, 31 non-nops, 7 mov, 0 cov, 96 dwords
; CL prog 24/1: 0 last-baryf, 0 last-helper, 0 half, 5 full, 12 constlen
; CL prog 24/1: 16 max_waves, 1 double_threadsize
Native code for unnamed CL shader  with blake3 77190b7b8ff3082b8ad8e93c6b740c8f:
; num_ubos:           0
@in(r48.x)	in0 (wrmask=0x7)
shps #l3
getone #l3
(sy)(ss)shpe
l3:
mov.u32u32 r2.x, 0
(nop3) madsh.m16 r1.z, c2.x, r1.z, r0.w
l10:
(rpt2)nop
(nop3) add.u r2.w, r2.x, 1
(nop1) cmps.s.ge p0.x, r2.w, 100
isam.1d (u32)(xyz)r3.x, r2.x, s#0, t#0
(sy)(rpt1)shr.b hr7.z, (r)r3.x, 16
cbits.b hr6.x, hr6.x
(rpt1)cbits.b hr7.z, (r)hr7.z
stp.u32 p[r0.x], r1.x, 1
br p0.x, #l27
mov.u32u32 r2.x, r2.w
jump #l10
l27:
(jp)(rpt5)nop
stg.a.u32 g[r1.x+(r2.y<<2)], r2.z, 1
end
nop
; CL: outputs:
; CL prog 25/1: 56 instr, 27 nops, 29 non-nops, 7 mov, 0 cov, 68 dwords
; CL prog 25/1: 0 last-baryf, 0 last-helper, 0 half, 5 full, 8 constlen
; CL prog 25/1: 30 cat0, 7 cat1, 15 cat2, 2 cat3, 0 cat4, 1 cat5, 1 cat6, 0 cat7
; CL prog 25/1: 10 max_waves, 1 double_threadsize
"""

BIFROST = """\

block0 {
id(0) nbb
	*         r0 = MOV.i32 t
	+         r1 = MOV.i32 fau.x

} -> block1

block1 {
id(0) wait(0 ) nbb
	* NOP
	+         r6 = LOAD.i32.tl fau.x, fau.y, byte_offset:0

	*         r1 = FMA.f32 r5, r9, r1
	+ NOP
	*         _.h00 = LSHIFT_OR.i32 t, t1.neg, t.b0
	+         BRANCHZ.i16.eq t.h00, fau.y -> block4
0 4000000000000001

} -> block1 block4  from block0 block1

block4 {
id(0) nbb
	* NOP
	+         STORE.i128 r1:r2:r3:r4, r5, t1, byte_offset:0
1c00000004

} from block1

clause_0:
{
    *FMA.f32 r0:t0, r1, r2, r3
    +NOP t1
}
MESA_SHADER_KERNEL shader: 8 instrs, 5 tuples, 4 clauses, 2.000000 cycles, 0.125000 arith, \
0.000000 t, 2.000000 ldst, 0.000000 v, 0 preloads, 1 threads, 624 code size, 1 loops, \
3:4 spills:fills, 10 spill cost, 33 registers used, 4 uniforms used
"""

VALHALL = """\

block0 {
        r10 = IADD_IMM.i32 u256, index:0
} -> block2  from block0

block2 {
        r16:r17 = SHADDX.s64 r20:r21^, r18:r19^, shift:0
        r16:r17:r18:r19 = LOAD.i128.flow1 r16^, r17^, byte_offset:0
        r28 = LSHIFT_XOR.i32 r16, r24, u256.b0
        r28 = POPCOUNT.i32 r28^
        BRANCHZ.i16.flow10.ne r18^.h00, u256 -> block2
} -> block2 block3  from block0 block2

block3 {
        STORE.i32.flow10 r0, r2^, r3^, byte_offset:0
        NOP.flow15
} from block2

   POPCOUNT.i32 r3, r3^
MESA_SHADER_KERNEL shader: 8 instrs, 2.000000 cycles, 0.000000 fma, 0.078125 cvt, 0.125000 sfu, \
0.125000 alu, 0.000000 v, 0.000000 t, 2.000000 ls, 2176 code size, 2 threads, 1 loops, \
0:0 spills:fills, 0 spill cost, 17 registers used, 34 uniforms used
"""


def test_adreno_statistics_are_those_of_the_last_compilation() -> None:
    code = machine_code.parse("adreno", ADRENO)
    numbers = {"instructions": 29, "registers": 5, "occupancy": 10, "spills": 0, "fills": 0}
    assert code.statistics == numbers | {"scratch": 1}


def test_adreno_loop_runs_as_often_as_its_popcounts_say() -> None:
    code = machine_code.parse("adreno", ADRENO)
    ((first, last),) = code.loops
    assert code.instructions[first].names == ("nop",)
    assert code.instructions[last].names == ("jump",)
    assert machine_code.trip_counts(code, (10, 10), ("cbits", 300)) == (100,)
    assert machine_code.trip_counts(code, (10, 10), ("cbits", 7)) is None
    # Outside of the loop 3 instructions, inside 12, repeats included; nops wait and do not issue.
    assert code.executed([1])["issue"] == 3 + 12
    assert code.executed([100])["issue"] == 3 + 1200


def test_bifrost_messages_are_no_arithmetic_and_spills_are_seen() -> None:
    code = machine_code.parse("bifrost", BIFROST)
    one = code.statistics
    assert (one["instructions"], one["registers"], one["occupancy"]) == (5, 33, 1)
    assert (one["spills"], one["fills"], one["scratch"]) == (3, 4, 1)
    assert len(code.instructions) == 5
    assert code.executed([1]) == {"arith": 0.125, "ldst": 2, "texture": 0}
    assert code.executed([9])["arith"] == (1 + 9 * 2) / 24


def test_valhall_units_add_up_to_mesas_own_cycles() -> None:
    code = machine_code.parse("valhall", VALHALL)
    assert len(code.instructions) == code.statistics["instructions"]
    cycles = {"fma": 0, "cvt": 0.078125, "sfu": 0.125, "ldst": 2, "texture": 0}
    assert code.executed([1]) == cycles
    assert machine_code.trip_counts(code, (3, 3, 4), ("POPCOUNT", 36)) == (36,)


def test_loops_without_the_anchor_run_idle_times() -> None:
    code = machine_code.parse("valhall", VALHALL)
    assert machine_code.trip_counts(code, (9,), ("FMA", 1), idle=3) is None
    assert machine_code.trip_counts(code, (9,), ("POPCOUNT", 9), idle=3) == (9,)
    assert machine_code.trip_counts(code, (), ("POPCOUNT", 9)) is None


def test_output_without_code_is_an_error() -> None:
    for core in machine_code.RATES:
        with pytest.raises(ValueError, match="printed no"):
            machine_code.parse(core, "clBuildProgram: out of registers\n")


def test_cases_have_what_the_runtime_takes_on_a_gpu_that_is_not_here() -> None:
    found = judge.cases(GPUS["adreno-730"])
    chosen = {case.layer: case.choice for case in found if case.role == "chosen"}
    assert chosen["u8 3x3 3-64@224"].kernel == "conv2d_u8_pairs"
    tile = dict(chosen["3x3 64@56"].parameters)
    assert (tile["TILE_PIXELS"], tile["TILE_FILTERS"], tile["COUNT"]) == (1, 16, 1)
    assert "pad f32 64@56" not in chosen


def test_half_arithmetic_is_tried_where_weights_permit_it_and_is_not_chosen() -> None:
    """docs/studies/adreno.md says why not."""
    for name in ("adreno-730", "mali-g610"):
        halves = [
            case for case in judge.cases(GPUS[name]) if ("ARITHMETIC", 1) in case.choice.parameters
        ]
        assert {case.layer for case in halves} == {"f16 3x3 64@56", "f16 dense 512-1000"}
        assert not any(case.role for case in halves)


def test_a_program_in_halves_differs_by_its_defines() -> None:
    text = "#define INPUT_HALF 0\n#define VALUES_HALF 0\n#define ARITHMETIC 0\n#define OTHER 0\n"
    stored = "#define INPUT_HALF 1\n#define VALUES_HALF 1\n#define ARITHMETIC 0\n#define OTHER 0\n"
    assert in_halves(text, False) == stored
    assert in_halves(text, True) == stored.replace("ARITHMETIC 0", "ARITHMETIC 1")


@pytest.mark.parametrize(
    ("gpus", "count", "cheapest", "equal"),
    [("adreno", 6, (1.05, 1.24), (1.05, 1.18)), ("mali", 4, (0.84, 0.98), (0.84, 0.95))],
)
def test_images_cost_as_the_study_says(
    gpus: str, count: int, cheapest: tuple[float, float], equal: tuple[float, float]
) -> None:
    """docs/studies/adreno.md, in the table that it points to: all six shapes."""
    _, _, images = document.section().partition("## Images")
    rows = [line.split(" | ") for line in images.splitlines() if line.startswith(f"| {gpus}")]
    assert len({row[0] for row in rows}) == count
    assert len({row[1] for row in rows}) == 6 and len(rows) == 6 * count
    for column, expected in ((9, cheapest), (10, equal)):
        ratios = [float(row[column]) for row in rows if row[column] != "-"]
        assert (min(ratios), max(ratios)) == expected


def test_work_is_counted_in_loads_as_short_as_a_pixel() -> None:
    head = "#define IN_WORDS 2\n#define KERNEL_H 1\n#define KERNEL_W 1\n#define GROUP_SIZE 64\n"
    program = Program(
        "bconv2d_split", f"{head}#define TILE_FILTERS 4\n#define VECTOR_WORDS 4\n//\n"
    )
    assert program.parameters == {"TILE_FILTERS": 4, "VECTOR_WORDS": 2, "GROUP_SIZE": 64}
    task = work(program.kernel, program.defines)
    assert task is not None and task.per_item == 8
