"""Kernel quality from machine code, without a card: `inspect.py ARCH USAGE SASS`, called by inspect.sh.

Reads what `cuobjdump --dump-resource-usage` and `cuobjdump -sass` print for one architecture; prints a line for each kernel:

  registers  of a thread
  shared     bytes of a block, with what the driver keeps of it from Hopper on
  spilled    bytes of a thread's stack
  occupancy  resident threads in per cent of the most that a multiprocessor holds
  random     most loads without order that are under way together
  blocks     the same, of 16 bytes: rank blocks of bitmaps
  together   loads without order, as the code has them, of which at least four are issued before one is used
  alone      the others: loops over long tables, which are the same for all threads, and searches for a block's bounds
  ordered    most loads in order that are under way together

Under way together: issued by one thread before the first use of any, inside one straight stretch of code, without a branch or a
label. What is under way across branches is not counted, so the true figure is no smaller.
"""

import re
import sys

THREADS = 256
# Loads under way together that look-ups must have.
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
    """Resident warps over the most that a multiprocessor holds, in per cent."""
    regs, smem, threads, blocks = LIMITS[arch]
    # Registers are given out to a warp, 256 at a time.
    a_warp = -(-registers * 32 // 256) * 256
    # Ampere keeps as much of each block's as later chips do, but does not tell.
    reserved = 1024 if 80 <= arch < 90 else 0
    fit = [threads // THREADS, blocks, regs // a_warp // (THREADS // 32), smem // (shared + reserved or 1)]
    return 100 * min(fit) * THREADS // threads


def stretches(lines):
    """Straight stretches of a function's instructions."""
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
    """Opcode, registers written, registers read."""
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
    """Loads without order that come with at least LEAST, those that come with fewer, and the most loads under way together: without
    order, those of 16 bytes among them, in order."""
    most, together, alone = {"random": 0, "blocks": 0, "ordered": 0}, 0, 0
    for stretch in stretches(lines):
        pending = {"random": [], "ordered": []}
        group = 0
        for text in stretch + [None]:
            opcode, written, read = operands(text) if text else ("", set(), set())
            for kind, loads in pending.items():
                used = text is None or any(d & (read | written) for d in loads)
                if used and kind == "random":
                    # The first use ends a group: what is loaded after it may depend on it.
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
    """Prints the table of one architecture."""
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
