"""A database that a forked process inherits: a clear error at once, in place of waiting for ever. Run in processes of their own."""

import os
import subprocess
import sys

import pytest

BEGIN = """
import os, signal, sys, jindou
from jindou import IRI, errors
db = jindou.open(sys.argv[1], create=True)
one = (IRI("a:a"), IRI("a:a"), 1)
db.add_all([(IRI(f"a:{i}"), IRI("a:p"), i) for i in range(100000)])
tx = db.transaction()
answer = db.query("SELECT * { ?a ?p ?o }")
assert next(iter(answer)) is not None
child = os.fork()
if child == 0:
    # What hangs is ended by this.
    signal.alarm(60)
"""
END = """
    sys.stdout.flush()
    CHILD_ENDS
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 if hasattr(os, "waitstatus_to_exitcode") else True
tx.add(one)
tx.commit()
assert one in db and len(list(answer)) == 100000
db.close()
print("parent")
"""
CALLS = [
    "db.query('ASK {}')",
    "db.update('INSERT DATA { <a:a> <a:a> 2 }')",
    "db.add(one)",
    "db.transaction()",
    "len(db)",
    "db.merge()",
    "db.backup('x')",
    "tx.add(one)",
    "tx.commit()",
    "list(answer)",
    "answer.arrow()",
    "bool(answer)",
]


def run(tmp_path, middle, ends="os._exit(0)"):
    program = BEGIN + middle + END.replace("CHILD_ENDS", ends)
    store = str(tmp_path / "store")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program, store], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout.endswith("parent\n"), done.stdout + done.stderr
    return done.stdout


pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")


def test_calls_in_a_fork_are_refused(tmp_path):
    calls = "".join(
        f"""
    try: {call}
    except errors.UsageError as e: assert "is a fork of it" in str(e), e
    else: raise AssertionError({call!r})
"""
        for call in CALLS
    )
    run(tmp_path, calls)


@pytest.mark.parametrize("ends", ["sys.exit(0)", "db.close(); del db, tx, answer; sys.exit(0)"])
def test_a_fork_ends(tmp_path, ends):
    run(tmp_path, "    pass\n", ends)


def test_a_fork_opens_the_store_again(tmp_path):
    out = run(
        tmp_path,
        """
    again = jindou.open(sys.argv[1], read_only=True)
    assert len(again) == 100000 and len(again.query("SELECT * { ?a ?p ?o }")) == 100000
    memory = jindou.memory()
    memory.add(one)
    print(len(memory))
""",
    )
    assert out == "1\nparent\n"
