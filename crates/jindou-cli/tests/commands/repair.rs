//! Logs of which objects are missing or damaged: what servers and `jindou cluster repair` say, and repairs.

use super::replicas::{Server, command};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The object of a group.
fn group_in(log: &Path, number: u64) -> std::path::PathBuf {
    let groups = std::fs::read_dir(log.join("log")).unwrap();
    let end = format!("-{number:016x}.log");
    let mut paths = groups.map(|entry| entry.unwrap().path());
    let found = paths.find(|path| path.to_str().unwrap().ends_with(&end));
    found.unwrap_or_else(|| panic!("no group {number}"))
}

#[test]
fn a_log_that_lost_a_group_is_refused_and_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = folder.join("log");
    let mut one = Server::start(folder, "one");
    for n in 0..6 {
        one.insert(n);
    }
    one.kill();
    std::fs::remove_file(group_in(&log, 4)).unwrap();

    let mut two = Server::start(folder, "two");
    unready(
        &two,
        &[
            "0000000000000004.log is missing",
            "groups up to 6",
            "cluster repair",
        ],
    );
    let query = "/query?consistency=strict&query=ASK%20%7B%7D";
    let read = two.send("GET", query, &[], "");
    assert_eq!(read.status, 503, "{}", read.text());
    assert!(
        read.text().contains("group 4 of the shared log is missing"),
        "{}",
        read.text()
    );
    let written = two.update("INSERT DATA { <http://e/s> <http://e/p> 100 }", &[]);
    assert_eq!(written.status, 503, "{}", written.text());
    assert!(written.text().contains("group 4"), "{}", written.text());
    two.kill();

    let (status, _, told) = command(folder, &["restore", "--from", "log", "--store", "r"]);
    assert!(status != Some(0) && told.contains("--snapshot 3"), "{told}");
    let to_3 = [
        "restore",
        "--from",
        "log",
        "--store",
        "r",
        "--snapshot",
        "3",
    ];
    let (status, out, told) = command(folder, &to_3);
    assert!(status == Some(0) && out.contains("3 quads"), "{out}{told}");
    let (_, out, _) = command(folder, &["cluster", "status", "--log", "log"]);
    assert!(out.contains("missing: log/"), "{out}");

    let repair = ["cluster", "repair", "--log", "log"];
    let (status, out, told) = command(folder, &repair);
    assert_eq!(status, Some(1), "{out}{told}");
    let parts = [
        "0000000000000004.log is missing",
        "group 4: missing, so its updates are not known",
        "group 5: 1 updates that one wrote at 20",
        "group 6: 1 updates that one wrote at 20",
        "--give-up-after 3",
    ];
    assert!(parts.iter().all(|part| out.contains(part)), "{out}");
    let give_up = |number| {
        command(
            folder,
            &[&repair[..], &["--give-up-after", number]].concat(),
        )
    };
    let (status, _, told) = give_up("2");
    assert!(
        status != Some(0) && told.contains("--give-up-after 3"),
        "{told}"
    );
    let (status, out, told) = give_up("3");
    assert!(
        status == Some(0) && out.contains("groups 4 to 6 were given up"),
        "{out}{told}"
    );
    let (status, out, _) = command(folder, &repair);
    assert!(
        status == Some(0) && out.contains("the log is whole"),
        "{out}"
    );

    let three = Server::start(folder, "three");
    assert_eq!(three.objects("strict").0, [0, 1, 2]);
    three.insert(9);
    let one = Server::start(folder, "one");
    assert_eq!(one.objects("strict").0, [0, 1, 2, 9]);
}

#[test]
fn a_log_without_its_first_object_is_no_new_log() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut one = Server::start(folder, "one");
    one.insert(1);
    one.kill();
    let first = folder.join("log/log.json");
    let text = std::fs::read(&first).unwrap();
    std::fs::remove_file(&first).unwrap();
    for name in ["one", "two"] {
        let args = [
            "serve",
            "--port",
            "0",
            "--log",
            "log",
            "--name",
            name,
            "--store",
            name,
            "--writable",
        ];
        let (status, _, told) = command(folder, &args);
        assert!(
            status != Some(0) && told.contains("log.json is missing"),
            "{told}"
        );
    }
    let repair = ["cluster", "repair", "--log", "log"];
    let (status, out, _) = command(folder, &repair);
    assert!(
        status == Some(1) && out.contains("--write-log-json"),
        "{out}"
    );
    let (status, out, told) = command(folder, &[&repair[..], &["--write-log-json"]].concat());
    assert_eq!(status, Some(0), "{out}{told}");
    assert_eq!(std::fs::read(&first).unwrap(), text);
    assert_eq!(Server::start(folder, "two").objects("strict").0, [1]);
}

const REPAIR: [&str; 4] = ["cluster", "repair", "--log", "log"];

/// A log with these objects, in a new folder.
fn copy_of(log: &Path) -> tempfile::TempDir {
    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let place = to.join(entry.file_name());
            match entry.file_type().unwrap().is_dir() {
                true => copy(&entry.path(), &place),
                false => drop(std::fs::copy(entry.path(), place).unwrap()),
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    copy(log, &folder.path().join("log"));
    folder
}

/// The files of a folder and of those in it, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort_unstable();
    found
}

/// Waits until a server that is not ready says why: with these parts.
fn unready(server: &Server, parts: &[&str]) {
    let mut told = String::new();
    let begun = Instant::now();
    while told.is_empty() || !parts.iter().all(|part| told.contains(part)) {
        assert!(begun.elapsed() < Duration::from_secs(30), "{told}");
        let ready = server.send("GET", "/ready", &[], "");
        assert_eq!(ready.status, 503, "{}", ready.text());
        told = ready.text().to_owned();
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn until(mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(30), "it never holds");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Groups 1 to 6 of a server that has ended, with a base of snapshot 3.
fn six_groups(folder: &Path) {
    let mut one = Server::start(folder, "one");
    for n in 0..6 {
        one.insert(n);
        if n == 2 {
            let merged = one.send("POST", "/admin/merge", &[], "");
            assert_eq!(merged.status, 200, "{}", merged.text());
            let base = folder.join("log/base");
            until(|| base.is_dir() && !files(&base).is_empty());
        }
    }
    one.kill();
}

fn flip(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

fn cut(path: &Path) {
    let bytes = std::fs::read(path).unwrap();
    std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
}

fn remove(path: &Path) {
    std::fs::remove_file(path).unwrap();
}

fn note(path: &Path, newest: u64) {
    let text = std::fs::read_to_string(path).unwrap();
    let (before, after) = text.split_once("\"newest\":").unwrap();
    let after = after.trim_start_matches(|c: char| c.is_ascii_digit());
    std::fs::write(path, format!("{before}\"newest\":{newest}{after}")).unwrap();
}

/// The only file in a folder of the log.
fn only_in(log: &Path, folder: &str) -> PathBuf {
    files(&log.join(folder)).pop().unwrap()
}

/// A damage to the log: its name, the function that does it, and texts that the report must contain.
type Case = (&'static str, fn(&Path), &'static [&'static str]);

const CASES: [Case; 11] = [
    (
        "group 5 with another bit",
        |log| flip(&group_in(log, 5)),
        &[
            "0000000000000005.log is damaged: ",
            "older version of the bucket's",
            "group 5: damaged, so its updates are not known",
            "--give-up-after 4",
        ],
    ),
    (
        "group 6 cut",
        |log| cut(&group_in(log, 6)),
        &["0000000000000006.log is damaged: ", "--give-up-after 5"],
    ),
    (
        "group 5 in the place of group 6",
        |log| {
            std::fs::copy(group_in(log, 5), group_in(log, 6)).unwrap();
        },
        &["0000000000000006.log is damaged: holds another number"],
    ),
    (
        "group 4 removed, 6 cut",
        |log| {
            cut(&group_in(log, 6));
            remove(&group_in(log, 4));
        },
        &[
            "0000000000000004.log is missing. ",
            "0000000000000006.log is damaged: ",
            "--give-up-after 3",
        ],
    ),
    (
        "a part removed",
        |log| remove(&only_in(log, "parts")),
        &[
            "parts/",
            " is missing, so base/",
            "Servers start from the empty store and read all groups",
            "every group up to 6 can be read",
            "--from-store DIR",
        ],
    ),
    (
        "a part cut",
        |log| cut(&only_in(log, "parts")),
        &["parts/", " bytes and not ", "--from-store DIR"],
    ),
    (
        "a document cut",
        |log| cut(&only_in(log, "base")),
        &["base/", "0000000000000003.json is damaged. "],
    ),
    (
        "a document with another bit",
        |log| flip(&only_in(log, "base")),
        &["0000000000000003.json is damaged. "],
    ),
    (
        "a base and a group before it",
        |log| {
            cut(&only_in(log, "base"));
            remove(&group_in(log, 2));
        },
        &[
            "0000000000000003.json is damaged. ",
            "0000000000000002.log is missing. ",
            "--give-up-after 1",
        ],
    ),
    (
        "a note of no number",
        |log| note(&log.join("servers/one"), u64::MAX),
        &[
            "servers/one names 18446744073709551615 as the newest group",
            "every group up to 6 can be read",
        ],
    ),
    (
        "a note of many groups",
        |log| note(&log.join("servers/one"), 1_000_000),
        &[
            "0000000000000007.log to log/",
            "00000000000f4240.log are missing. ",
            "groups 7 to 1000000: missing",
            "--give-up-after 6",
        ],
    ),
];

#[test]
fn repair_names_each_object_that_is_missing_or_damaged() {
    let made = tempfile::tempdir().unwrap();
    six_groups(made.path());
    let whole = copy_of(&made.path().join("log"));
    let (status, out, told) = command(whole.path(), &REPAIR);
    assert!(status == Some(0) && out.contains("up to 6"), "{out}{told}");
    for (what, harm, parts) in CASES {
        let folder = copy_of(&made.path().join("log"));
        harm(&folder.path().join("log"));
        let (status, out, told) = command(folder.path(), &REPAIR);
        println!("{what}: {out}");
        assert_eq!(status, Some(1), "{what}: {out}{told}");
        assert!(parts.iter().all(|part| out.contains(part)), "{what}: {out}");
        assert!(
            !out.contains("--write-log-json") && out.lines().count() < 20,
            "{what}: {out}"
        );
    }
}

#[test]
fn a_damaged_group_is_named_by_whatever_needs_it() {
    let made = tempfile::tempdir().unwrap();
    let folder = made.path();
    six_groups(folder);
    let log = folder.join("log");
    flip(&group_in(&log, 5));
    let two = Server::start(folder, "two");
    unready(
        &two,
        &["0000000000000005.log is damaged: ", "cluster repair"],
    );
    let written = two.update("INSERT DATA { <http://e/s> <http://e/p> 100 }", &[]);
    assert_eq!(written.status, 503, "{}", written.text());
    let (status, _, told) = command(folder, &["restore", "--from", "log", "--store", "r"]);
    assert!(status != Some(0) && !told.contains("try again"), "{told}");
    assert!(
        told.contains("0000000000000005.log is damaged: ") && told.contains("cluster repair"),
        "{told}"
    );
    drop(two);

    // What cannot be read is given up as what is missing.
    let (status, out, told) = command(folder, &[&REPAIR[..], &["--give-up-after", "4"]].concat());
    assert!(
        status == Some(0) && out.contains("groups 5 to 6 were given up"),
        "{out}{told}"
    );
    let (status, out, _) = command(folder, &REPAIR);
    assert_eq!(status, Some(0), "{out}");
    let three = Server::start(folder, "three");
    assert_eq!(three.objects("strict").0, [0, 1, 2, 3]);
}

#[test]
fn a_base_that_lacks_a_part_is_passed_over() {
    let made = tempfile::tempdir().unwrap();
    let folder = made.path();
    six_groups(folder);
    let part = files(&folder.join("log/parts")).remove(1);
    let restored = |into: &str, why: &str| {
        let log = ["restore", "--from", "log", "--snapshot", "5", "--store"];
        let (status, out, told) = command(folder, &[&log[..], &[into]].concat());
        assert!(status == Some(0) && out.contains("5 quads"), "{out}{told}");
        assert!(format!("{out}{told}").contains(why), "{out}{told}");
    };
    let whole = std::fs::read(&part).unwrap();
    flip(&part);
    restored("from-changed", part.file_name().unwrap().to_str().unwrap());
    std::fs::write(&part, whole).unwrap();
    remove(&part);
    restored("from-missing", "is missing, so base/");
    let two = Server::start(folder, "two");
    assert_eq!(two.objects("strict").0, [0, 1, 2, 3, 4, 5]);
    // A later base makes up for it.
    two.insert(6);
    let merged = two.send("POST", "/admin/merge", &[], "");
    assert_eq!(merged.status, 200, "{}", merged.text());
    until(|| files(&folder.join("log/base")).len() == 2);
    drop(two);
    let (_, out, _) = command(folder, &REPAIR);
    assert!(
        out.contains("Servers start from base 7 and the groups after it"),
        "{out}"
    );
}

#[test]
fn a_log_without_the_store_that_it_began_with_says_so() {
    let made = tempfile::tempdir().unwrap();
    let folder = made.path();
    std::fs::write(folder.join("d.ttl"), "<http://e/s> <http://e/p> 7 .\n").unwrap();
    let (status, _, told) = command(folder, &["load", "-q", "--store", "one", "d.ttl"]);
    assert_eq!(status, Some(0), "{told}");
    let one = Server::start(folder, "one");
    let base = folder.join("log/base");
    until(|| base.is_dir() && !files(&base).is_empty());
    drop(one);
    for object in [
        files(&base).remove(0),
        files(&folder.join("log/parts")).remove(1),
    ] {
        let bytes = std::fs::read(&object).unwrap();
        remove(&object);
        let name = object.file_name().unwrap().to_str().unwrap();
        // It listens, and says what is missing.
        let two = Server::start(folder, "two");
        unready(&two, &[name]);
        let (status, out, _) = command(folder, &REPAIR);
        assert_eq!(status, Some(1), "{out}");
        assert!(
            out.contains(name) && !out.contains("--write-log-json"),
            "{out}"
        );
        let (status, _, told) = command(folder, &["restore", "--from", "log", "--store", "r"]);
        assert!(status != Some(0) && !told.contains("try again"), "{told}");
        std::fs::write(&object, bytes).unwrap();
        // It is downloaded as soon as it is there.
        until(|| two.send("GET", "/ready", &[], "").status == 200);
        assert_eq!(two.objects("strict").0, [7]);
        drop(two);
        std::fs::remove_dir_all(folder.join("two")).unwrap();
    }
}

#[test]
fn a_damaged_log_json_is_written_again() {
    let made = tempfile::tempdir().unwrap();
    six_groups(made.path());
    let text = std::fs::read_to_string(made.path().join("log/log.json")).unwrap();
    let other = text.replace("\"epoch\":", "\"epoch\":1");
    let zero = text.replace("\"format\":1", "\"format\":0");
    assert_ne!(zero, text);
    for damaged in ["", "{", "{\"format\":1}", &other, &zero] {
        let folder = copy_of(&made.path().join("log"));
        let folder = folder.path();
        let path = folder.join("log/log.json");
        std::fs::write(&path, damaged).unwrap();
        let serve = [
            "serve",
            "--port",
            "0",
            "--log",
            "log",
            "--name",
            "two",
            "--store",
            "two",
            "--writable",
        ];
        let (status, _, told) = command(folder, &serve);
        assert!(
            status != Some(0) && told.contains("log.json") && told.contains("cluster repair"),
            "{told}"
        );
        let read: [&[&str]; 2] = [
            &["cluster", "status", "--log", "log"],
            &["restore", "--from", "log", "--store", "r"],
        ];
        for read in read {
            let (status, _, told) = command(folder, read);
            assert!(status != Some(0) && told.contains("log.json"), "{told}");
        }
        let (status, out, told) = command(folder, &REPAIR);
        assert!(
            status == Some(1) && out.contains("--write-log-json"),
            "{damaged}: {out}{told}"
        );
        let write = [&REPAIR[..], &["--write-log-json"]].concat();
        let (status, out, told) = command(folder, &write);
        assert_eq!(status, Some(0), "{damaged}: {out}{told}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "{damaged}");
        let (status, out, _) = command(folder, &REPAIR);
        assert_eq!(status, Some(0), "{out}");
        let (status, _, told) = command(folder, &write);
        assert!(
            status != Some(0) && told.contains("log.json is there"),
            "{told}"
        );
    }
    // A later version's is left as it is.
    let folder = copy_of(&made.path().join("log"));
    std::fs::write(folder.path().join("log/log.json"), "{\"format\":2}").unwrap();
    let write = [&REPAIR[..], &["--write-log-json"]].concat();
    let (status, _, told) = command(folder.path(), &write);
    assert!(
        status != Some(0) && told.contains("later version"),
        "{told}"
    );
}

/// The newest group is lost after a clean end: its note tells.
#[test]
fn the_loss_of_the_newest_group_after_a_clean_end_is_noticed() {
    let made = tempfile::tempdir().unwrap();
    let folder = made.path();
    let mut one = Server::start(folder, "one");
    for n in 0..20 {
        one.insert(n);
    }
    // SAFETY: sends a signal to a process that this test started.
    unsafe { libc::kill(one.0.child.id() as i32, libc::SIGTERM) };
    assert!(one.0.child.wait().unwrap().success());
    let entry = std::fs::read_to_string(folder.join("log/servers/one")).unwrap();
    assert!(entry.contains("\"newest\":20"), "{entry}");
    remove(&group_in(&folder.join("log"), 20));
    for name in ["two", "one"] {
        let server = Server::start(folder, name);
        unready(&server, &["0000000000000014.log is missing"]);
        let written = server.update("INSERT DATA { <http://e/s> <http://e/p> 100 }", &[]);
        assert_eq!(written.status, 503, "{name}: {}", written.text());
    }
}

/// A server's folder has what the log lost.
#[test]
fn a_log_is_repaired_from_the_store_of_a_server() {
    let made = tempfile::tempdir().unwrap();
    let folder = made.path();
    let log = folder.join("log");
    let mut one = Server::start(folder, "one");
    for n in 0..3 {
        one.insert(n);
    }
    let mut behind = Server::start(folder, "behind");
    let merge = |server: &Server| {
        let merged = server.send("POST", "/admin/merge", &[], "");
        assert_eq!(merged.status, 200, "{}", merged.text());
    };
    assert_eq!(behind.objects("strict").0, [0, 1, 2]);
    merge(&behind);
    behind.kill();
    for n in 3..8 {
        one.insert(n);
    }
    merge(&one);
    one.kill();
    // Whichever of the two has uploaded a base.
    let _ = std::fs::remove_dir_all(log.join("base"));
    let _ = std::fs::remove_dir_all(log.join("parts"));
    remove(&group_in(&log, 6));
    let from = |store: &str| command(folder, &[&REPAIR[..], &["--from-store", store]].concat());
    let (status, _, told) = from("behind");
    assert!(
        status != Some(0) && told.contains("group 6 is the first that cannot be read"),
        "{told}"
    );
    let (status, _, told) = from("nowhere");
    assert!(
        status != Some(0) && told.contains("no such directory"),
        "{told}"
    );
    let (status, out, told) = from("one");
    assert!(
        status == Some(0) && out.contains("the base of snapshot 8; no update was given up"),
        "{out}{told}"
    );
    let (status, out, _) = command(folder, &REPAIR);
    assert!(
        status == Some(0) && out.contains("the log is whole"),
        "{out}"
    );
    let (status, _, told) = from("one");
    assert!(
        status != Some(0) && told.contains("lacks nothing"),
        "{told}"
    );
    let two = Server::start(folder, "two");
    assert_eq!(two.objects("strict").0, (0..8).collect::<Vec<_>>());
    two.insert(9);
    // A base of the same snapshot that cannot be used is replaced.
    drop(two);
    cut(files(&log.join("base")).last().unwrap());
    remove(&group_in(&log, 7));
    let (status, out, told) = from("one");
    assert_eq!(status, Some(0), "{out}{told}");
    let (status, out, _) = command(folder, &REPAIR);
    assert!(status == Some(0) && out.contains("up to 9"), "{out}");
}
