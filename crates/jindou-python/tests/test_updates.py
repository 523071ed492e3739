"""Updates, loads, transactions, stores on the disk."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import jindou
from conftest import EX, iri
from jindou import IRI, Literal, errors


def values(db, **options):
    return sorted(row.o.to_python() for row in db.query("SELECT ?o { ?s ?p ?o }", **options))


def test_single_quads(db):
    quad = (iri("a"), iri("p"), 1)
    assert db.add(quad).added == 1 and db.add(quad).added == 0
    assert db.add_all([quad, (*quad, iri("g")), jindou.Quad(iri("b"), iri("p"), Literal(2))]).added == 2
    assert len(db) == 3 and quad in db
    assert db.remove(quad).removed == 1 and quad not in db
    assert db.remove_all([quad, (*quad, iri("g"))]).removed == 1
    assert values(db) == [2]
    # A generator that fails half way adds nothing.
    with pytest.raises(ZeroDivisionError):
        db.add_all((iri("a"), iri("p"), 1 // (i - 3)) for i in range(5) if i != 4)
    with pytest.raises(TypeError):
        db.add_all([quad, (1, 2)])
    assert values(db) == [2]


def test_prefixes(db):
    data = "@prefix acme: <http://acme.example/> . acme:mars a acme:Planet ; acme:moons 2 ."
    db.load(text=data, format="ttl")
    prefixes = db.prefixes()
    assert prefixes["acme"] == "http://acme.example/" and prefixes.origin("acme") == "data"
    assert dict(prefixes.items()) == prefixes.asdict() and "acme" in list(prefixes)
    question = "ASK { acme:mars acme:moons ?n }"
    bound = "SELECT ?m { ?m acme:moons ?n }"
    assert db.query(question) is True and len(db.query(bound, {"n": 2})) == 1
    with pytest.raises(errors.SparqlSyntaxError):
        db.query(question, store_prefixes=False)
    turtle = db.serialize("CONSTRUCT WHERE { ?s acme:moons ?o }", "turtle").decode()
    assert "@prefix acme:" in turtle and "acme:mars acme:moons 2" in turtle
    prefixes["acme"] = "http://other.example/"
    assert prefixes["acme"] == "http://other.example/" and prefixes.origin("acme") == "set"
    assert db.query(question) is False and len(db.query(bound, {"n": 2})) == 0
    del prefixes["acme"]
    assert prefixes.get("acme") == "http://acme.example/" and db.query(question) is True
    size = len(prefixes)
    del prefixes["acme"]
    assert len(prefixes) == size - 1 and "acme" not in prefixes and prefixes.get("acme") is None
    for missing in ("acme", "foaf"):
        with pytest.raises(KeyError):
            prefixes[missing]
        with pytest.raises(KeyError):
            del prefixes[missing]
    for name, value in (("1x", "http://e/"), ("x", "nowhere")):
        with pytest.raises(errors.Error):
            prefixes[name] = value


def test_transactions(db):
    db.add((iri("a"), iri("p"), 0))
    with db.transaction() as tx:
        tx.update(f"INSERT DATA {{ <{EX}a> <{EX}p> 1 }}")
        tx.add((iri("a"), iri("p"), 2))
        tx.remove((iri("a"), iri("p"), 0))
        tx.load(text=f"<{EX}a> <{EX}p> 3 .", format="turtle")
        with pytest.raises(errors.SparqlSyntaxError):
            tx.update("INSERT nonsense")
        with pytest.raises(errors.ConflictError):
            tx.update(f"INSERT DATA {{ <{EX}a> <{EX}p> 4 GRAPH <g:g> {{ <a:a> <a:a> 5 }} }} ; CREATE GRAPH <g:g>")
        assert sorted(r.o.to_python() for r in tx.query("SELECT ?o { ?s ?p ?o }")) == [1, 2, 3]
        assert tx.query("ASK { ?s ?p ?o }", {"o": 4}) is False
        assert values(db) == [0]
    assert values(db) == [1, 2, 3] and not tx.is_open and db.snapshot == 2
    with pytest.raises(errors.TransactionError):
        tx.commit()


def test_transactions_rolled_back(db):
    db.add((iri("a"), iri("p"), 0))
    with pytest.raises(ZeroDivisionError):
        with db.transaction() as tx:
            tx.update("CLEAR ALL")
            1 // 0
    tx = db.transaction()
    tx.update("CLEAR ALL")
    tx.rollback()
    # A transaction that is dropped without commit changes nothing.
    db.transaction().update("CLEAR ALL")
    assert values(db) == [0] and db.snapshot == 1
    assert db.update("CLEAR ALL").removed == 1


def test_an_update_beside_ones_own_transaction_is_refused(db):
    with db.transaction() as tx:
        for call in (lambda: db.update("CLEAR ALL"), db.transaction, lambda: db.add((iri("a"), iri("p"), 0)), db.merge):
            with pytest.raises(errors.TransactionError):
                call()
        done = []
        thread = threading.Thread(target=lambda: done.append(db.update("INSERT DATA { <a:a> <a:a> 1 }")))
        thread.start()
        time.sleep(0.2)
        assert done == []
        tx.add((iri("a"), iri("p"), 0))
    thread.join(10)
    assert done and values(db) == [0, 1]


def test_waiting_for_a_transaction_can_be_interrupted(db):
    opened, done = threading.Event(), threading.Event()

    def hold():
        with db.transaction():
            opened.set()
            done.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    opened.wait()
    try:
        with pytest.raises(errors.QueryTimeoutError):
            db.update("CLEAR ALL", timeout=0.1)
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            db.transaction()
        timer.join()
    finally:
        done.set()
        thread.join()
    assert db.update("INSERT DATA { <a:a> <a:a> 1 }").added == 1


def test_stores(tmp_path):
    nt = tmp_path / "data.nt"
    nt.write_text("".join(f"<{EX}v{i}> <{EX}p> \"{i}\" .\n" for i in range(20_000)))
    store = tmp_path / "my.store"
    seen = []
    report = jindou.load(store, nt, progress=seen.append)
    assert report.quads == 20_000 and report.seconds > 0 and "reading" in report.phases
    assert seen[-1].done and seen[-1].quads == 20_000 and seen[-1].fraction == 1.0
    with pytest.raises(errors.StoreExistsError) as e:
        jindou.load(store, nt)
    assert isinstance(e.value, FileExistsError)
    with pytest.raises(errors.NoStoreError) as e:
        jindou.open(tmp_path / "none")
    assert isinstance(e.value, FileNotFoundError) and str(tmp_path) in str(e.value)
    with jindou.open(store) as db:
        assert len(db) == 20_000 and db.path == store and db.writable
        with db.transaction() as tx:
            tx.update(f"INSERT DATA {{ <{EX}a> <{EX}p> 1 }}")
            tx.update(f"INSERT DATA {{ <{EX}a> <{EX}p> 2 }}")
        # Another process can read the store but not change it.
        code = f"import jindou; db = jindou.open({str(store)!r}); print(len(db), db.writable)"
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        assert out.split() == ["20002", "False"]
        with pytest.raises(errors.InUseError) as e:
            jindou.open(store, read_only=False)
        assert e.value.kind == "in-use" and str(e.value.filename) == str(store)
    for verify in ("off", "background", "eager"):
        with jindou.open(store, verify=verify, read_only=True) as db:
            assert len(db) == 20_002 and not db.writable
            with pytest.raises(errors.ReadOnlyError):
                db.update("CLEAR ALL")
    with jindou.open(store) as db:
        assert db.merge() == 2
        assert len(db) == 20_002
    assert jindou.load(store, nt, replace=True).quads == 20_000
    with pytest.raises(ValueError):
        jindou.open(store, verify="perhaps")


def test_damage_is_found_on_opening(tmp_path):
    nt = tmp_path / "data.nt"
    nt.write_text("".join(f"<{EX}v{i}> <{EX}p> \"text {i}\" .\n" for i in range(2_000)))
    store = tmp_path / "my.store"
    jindou.load(store, nt)
    (strings,) = store.rglob("strings*")
    damaged = bytearray(strings.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    strings.write_bytes(damaged)
    with pytest.raises(errors.DamagedError) as e:
        jindou.open(store)
    assert isinstance(e.value, errors.StoreError) and "strings" in str(e.value.filename)
    # A damaged store can still be opened without verification, to rescue what is left.
    jindou.open(store, verify="off").close()


def test_loading(tmp_path, db):
    import gzip

    (tmp_path / "a.ttl").write_text("@prefix ex: <http://example.org/> . ex:a ex:p 1 .")
    with gzip.open(tmp_path / "b.nt.gz", "wt") as f:
        f.write(f"<{EX}a> <{EX}p> \"2\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n")
    assert db.load(tmp_path / "a.ttl", str(tmp_path / "b.nt.gz")).added == 2
    assert db.load([tmp_path / "a.ttl"], graph=iri("g")).added == 1
    assert db.load(text=b"_:x <p> 3 . _:y <p> 3 .", format="text/turtle", base=EX).added == 2
    assert db.load(text="_:x <p> 3 .", format="ttl", base=EX).added == 1, "blank nodes of a document are its own"
    assert values(db) == [1, 2, 3, 3, 3]
    with pytest.raises(errors.RdfSyntaxError):
        db.load(text="nonsense", format="turtle")
    report = jindou.load(tmp_path / "s", text=f"<{EX}a> <{EX}p> <{EX}b> .\nnonsense\n", format="nt", lenient=True)
    assert report.quads == 1 and report.skipped == 1 and "<text>:2" in report.skipped_first[0]
    with pytest.raises(errors.RdfSyntaxError, match="the store was left as it was"):
        jindou.load(tmp_path / "s", text="a,b\n1,2\n", format="nt", lenient=True, replace=True)
    assert len(jindou.open(tmp_path / "s")) == 1
    with pytest.raises(errors.FileError) as e:
        db.load(tmp_path / "none.nt")
    assert isinstance(e.value, OSError)
    (tmp_path / "mystery").write_text("")
    with pytest.raises(errors.UnknownFormatError):
        db.load(tmp_path / "mystery")
    for bad in ({}, {"text": "x"}, {"text": "x", "format": "parchment"}, {"text": "", "format": "nt", "colour": 1}):
        with pytest.raises((TypeError, ValueError)):
            db.load(**bad)


def test_loads_end_when_they_are_told(tmp_path, db):
    nt = tmp_path / "data.nt"
    nt.write_text("".join(f"<{EX}v{i}> <{EX}p{i % 50}> \"{i} {'x' * 60}\" .\n" for i in range(600_000)))

    class Enough(Exception):
        pass

    def enough(progress):
        raise Enough

    for load in (lambda **k: jindou.load(tmp_path / "s", nt, **k), lambda **k: db.load(nt, **k)):
        with pytest.raises(Enough):
            load(progress=enough)
        token = jindou.CancelToken()
        token.cancel()
        with pytest.raises(errors.CancelledError):
            load(cancel=token)
    assert not (tmp_path / "s").exists() and len(db) == 0


def test_progress_on_standard_error(tmp_path, capfd):
    jindou.load(tmp_path / "s", text="<a:a> <a:a> <a:a> .", format="nt", progress=True)
    assert "loaded 1 quads" in capfd.readouterr().err


def test_documents_of_LOAD(tmp_path, db):
    (tmp_path / "a.ttl").write_text("<a:a> <a:a> 1 .")
    load = f"LOAD <file://{tmp_path}/a.ttl>"
    with pytest.raises(errors.DocumentError):
        db.update(load)
    assert db.update(load, load_from=tmp_path).added == 1
    (tmp_path / "inside").mkdir()
    with pytest.raises(errors.DocumentError):
        db.update(load, load_from=tmp_path / "inside")


def test_a_store_begins_empty(tmp_path):
    new = tmp_path / "new.store"
    with pytest.raises(errors.NoStoreError):
        jindou.open(new)
    with jindou.open(new, create=True) as db:
        assert len(db) == 0
        db.add((iri("a"), iri("p"), 1))
    with jindou.open(new, create=True) as db:
        assert len(db) == 1
    other = tmp_path / "other.store"
    assert jindou.load(other, lenient=True).quads == 0
    assert len(jindou.open(other, read_only=True)) == 0
    with pytest.raises(ValueError):
        jindou.open(tmp_path / "third", create=True, read_only=True)
    (tmp_path / "file").write_text("not a store")
    with pytest.raises(errors.NotAStoreError):
        jindou.open(tmp_path / "file", create=True)
    with pytest.raises(TypeError):
        jindou.open(other).load()
    assert sorted(os.listdir(tmp_path)) == ["file", "new.store", "other.store"]
