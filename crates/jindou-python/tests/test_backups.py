"""Backups, restored stores, checks; a read-only handle that is refreshed."""

import datetime as dt

import pytest

import jindou
from conftest import iri
from jindou import errors


def test_backups_and_restores(tmp_path):
    store, folder = tmp_path / "store", tmp_path / "deep" / "backups"
    with pytest.raises(errors.UsageError):
        jindou.backups(folder)
    with jindou.open(store, create=True) as db:
        db.add((iri("a"), iri("p"), 1))
        first = db.backup(folder)
        between = dt.datetime.now(dt.timezone.utc)
        db.add((iri("a"), iri("p"), 2))
        second = db.backup(folder)
        assert second.snapshot == db.snapshot > first.snapshot and second.new_files > 0 and second.seconds > 0
        assert [b.name for b in jindou.backups(folder)] == [first.name, second.name]
        assert abs(first.time - between) < dt.timedelta(hours=1) and first.first_time <= first.time
    newest = jindou.restore(folder, tmp_path / "newest")
    assert newest.backup == second.name and newest.quads == 2 and newest.warnings == []
    assert len(jindou.open(tmp_path / "newest")) == 2
    for number, keywords in enumerate([{"backup": first.name}, {"snapshot": first.snapshot}, {"at": between}, {"at": between.isoformat()}]):
        assert jindou.restore(folder, tmp_path / str(number), **keywords).quads == 1, keywords
    with pytest.raises(errors.ConflictError):
        jindou.restore(folder, tmp_path / "newest")
    with pytest.raises(TypeError):
        jindou.restore(folder, tmp_path / "x", snapshot=1, at=between)
    # A store that is open elsewhere is backed up by copying its files; older backups are removed.
    with jindou.open(store) as db, jindou.open(store, read_only=True) as reader:
        db.add((iri("a"), iri("p"), 3))
        third = reader.backup(folder, keep=1)
        assert third.removed == 2 and [b.name for b in jindou.backups(folder)] == [third.name]
        with pytest.raises(errors.UsageError):
            db.backup(folder, keep=0)
    with pytest.raises(errors.UsageError):
        jindou.memory().backup(folder)
    next(folder.glob("backup-*")).write_bytes(b"nonsense")
    (damaged,) = jindou.backups(folder)
    assert isinstance(damaged, errors.DamagedError)


def test_checks(tmp_path):
    store = tmp_path / "store"
    jindou.load(store, text="<a:a> <a:p> <a:b> .", format="turtle")
    report = jindou.check(store)
    assert report and report.files > 0 and report.bytes > 0 and report.damages == []
    (file,) = store.rglob("strings.jd")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    report = jindou.check(store)
    assert not report and any("strings.jd" in damage for damage in report.damages)
    with pytest.raises(errors.NoStoreError):
        jindou.check(tmp_path / "none")


def test_a_reader_is_refreshed(tmp_path):
    store = tmp_path / "store"
    with jindou.open(store, create=True) as db, jindou.open(store, read_only=True) as reader:
        assert len(reader) == 0 and reader.refresh() is False
        for number in range(3):
            db.add((iri("a"), iri("p"), number))
            assert len(reader) == number
            assert reader.refresh() is True and len(reader) == number + 1
            assert reader.refresh() is False
        kept = reader.query("SELECT ?o { ?s ?p ?o }")
        db.merge()
        db.update("DELETE WHERE { ?s ?p 0 }")
        assert reader.refresh() is True and len(reader) == 2 and len(kept) == 3
        with pytest.raises(errors.UsageError, match="always up to date"):
            db.refresh()
    with pytest.raises(errors.UsageError):
        jindou.memory().refresh()
