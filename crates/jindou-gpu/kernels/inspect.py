"""Properties of kernels in machine code, without a GPU: `inspect.py ARCH USAGE SASS`, called by inspect.sh.

Reads what `cuobjdump --dump-resource-usage` and `cuobjdump -sass` print for one architecture. Prints a line per kernel:

  registers  registers per thread
  shared     bytes of shared memory per block, including what the driver reserves of it from Hopper on
  spilled    bytes of stack per thread
  occupancy  resident threads in per cent of the largest number that a multiprocessor can hold
  random     largest number of random loads in flight together
  blocks     the same for loads of 16 bytes: blocks of bitmaps
  together   number of random loads in the code that are issued in groups of at least four before one of them is used
  alone      number of the other random loads: loops over long tables, which are the same for all threads, and searches for a
             block's bounds
  ordered    largest number of sequential loads in flight together

In flight together: issued by one thread before the first use of any of them, inside one straight stretch of code, without a
branch or a label. Loads in flight across branches are not counted, so the true numbers may be larger.
"""

import re
import sys

THREADS = 256
# Number of loads that lookups must have in flight together.
LEAST = 4
# Per multiprocessor: registers, shared memory in bytes (without what each block reserves), threads, blocks.
LIMITS = {
    75: (65536, 64 << 10, 1024, 16),
    80: (65536, 164 << 10, 2048, 32),
    86: (65536, 100 << 10, 1536, 16),
    89: (65536, 100 << 10, 1536, 24),
    90: (65536, 228 << 10, 2048, 32),
    100: (65536, 228 << 10, 2048, 32),
    120: (65536, 100 << 10, 1536, 24),
}

INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;\s")
GUARD = re.compile(r"^@!?U?P\d+\s+|^@!?PT\s+")
REGISTER = re.compile(r"\bR(\d+)(\.64)?")


def occupancy(arch, registers, shared):
    """Resident threads in per cent of the largest number that a multiprocessor can hold."""
    regs, smem, threads, blocks = LIMITS[arch]
    # Registers are allocated per warp, in units of 256.
    a_warp = -(-registers * 32 // 256) * 256
    # Ampere and Ada reserve as much shared memory per block as later GPUs do, but cuobjdump does not report it.
    reserved = 1024 if 80 <= arch < 90 else 0
    fit = [threads // THREADS, blocks, regs // a_warp // (THREADS // 32), smem // (shared + reserved or 1)]
    return 100 * min(fit) * THREADS // threads


def stretches(lines):
    """Yields the straight stretches of a function's instructions."""
    code, targets = [], set()
    for line in lines:
        m = INSTRUCTION.match(line)
        if m:
            code.append((int(m.group(1), 16), m.group(2)))
    for _, text in code:
        for t in re.findall(r"\b(?:BRA|BSSY|CALL)\b.*?0x([0-9a-f]+)", text):
            targets.add(int(t, 16))
    now = []
    for at, text in code:
        if at in targets and now:
            yield now
            now = []
        now.append(text)
        if re.search(r"\b(BRA|BRX|BSYNC|EXIT|CALL|RET|BAR|WARPSYNC)\b", text):
            yield now
            now = []
    if now:
        yield now


def operands(text):
    """Returns opcode, registers written, and registers read of an instruction."""
    text = GUARD.sub("", text)
    opcode, _, rest = text.partition(" ")
    parts = [p.strip() for p in rest.split(",")]
    width = 4 if ".128" in opcode else 2 if ".64" in opcode else 1
    written, read = set(), set()
    first = 0
    if not opcode.startswith(("ST", "RED", "BAR", "ISETP", "FSETP", "LOP3.LUT.P")) and parts:
        m = re.match(r"^R(\d+)", parts[0])
        if m:
            n = int(m.group(1))
            wide = width if opcode.startswith("LD") or opcode.startswith("ATOM") else 2 if "WIDE" in opcode else 1
            written = set(range(n, n + wide))
            first = 1
    for p in parts[first:]:
        for m in REGISTER.finditer(p):
            n = int(m.group(1))
            read.add(n)
            if m.group(2) or (".WIDE" in opcode and p is parts[-1]) or (opcode.startswith("ST") and width > 1):
                read.update(range(n, n + max(2, width)))
    return opcode, written, read


def in_flight(lines):
    """Returns the columns together, alone, random, blocks and ordered of the table for one kernel."""
    most, together, alone = {"random": 0, "blocks": 0, "ordered": 0}, 0, 0
    for stretch in stretches(lines):
        pending = {"random": [], "ordered": []}
        group = 0
        for text in stretch + [None]:
            opcode, written, read = operands(text) if text else ("", set(), set())
            for kind, loads in pending.items():
                used = text is None or any(d & (read | written) for d in loads)
                if used and kind == "random":
                    # The first use ends a group: later loads may depend on it.
                    together, alone = (together + group, alone) if group >= LEAST else (together, alone + group)
                    group = 0
                loads[:] = [d for d in loads if not used]
            if opcode.startswith("LDG"):
                kind = "ordered" if ".EF" in opcode else "random"
                pending[kind].append(written)
                group += kind == "random"
                most[kind] = max(most[kind], len(pending[kind]))
                if kind == "random":
                    most["blocks"] = max(most["blocks"], sum(len(d) == 4 for d in pending[kind]))
    return together, alone, most["random"], most["blocks"], most["ordered"]


def main(arch, usage, sass):
    """Prints the lines of the table for one architecture."""
    use, name = {}, None
    for line in open(usage):
        if m := re.search(r"Function (\S+):", line):
            name = m.group(1)
        elif name and (m := re.search(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)", line)):
            use[name] = tuple(map(int, m.groups()))
            name = None
    code, name = {}, None
    for line in open(sass):
        if m := re.search(r"Function : (\S+)", line):
            name = m.group(1)
            code[name] = []
        elif name:
            code[name].append(line)
    for name in sorted(code):
        registers, stack, shared, local = use[name]
        together, alone, random, blocks, ordered = in_flight(code[name])
        print(
            f"sm_{arch:<4} {name:<20} {registers:>9} {shared:>6} {stack + local:>7} {occupancy(arch, registers, shared):>9}"
            f" {random:>6} {blocks:>6} {together:>8} {alone:>5} {ordered:>7}"
        )


main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
