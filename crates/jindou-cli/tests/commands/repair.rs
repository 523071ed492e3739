//! Logs of which objects are missing or damaged: what servers and `jindou cluster repair` say, and repairs.

use super::replicas::{Server, assert_says};
use super::run::{eventually, flip, good, refuses, until, writes};
use jindou_testing::{copy_folder, files_below};
use std::path::{Path, PathBuf};

const REPAIR: &str = "cluster repair --log log";
const RESTORE: &str = "restore --from log --store r";

/// The object of a group.
fn group_in(log: &Path, number: u64) -> PathBuf {
    let end = format!("-{number:016x}.log");
    let mut paths = files_below(&log.join("log")).into_iter();
    let found = paths.find(|path| path.to_str().unwrap().ends_with(&end));
    found.unwrap_or_else(|| panic!("no group {number}"))
}

/// A server with this name does not start, for these reasons.
fn refuses_to_serve(folder: &Path, name: &str, parts: &[&str]) {
    let line = format!("serve --port 0 --log log --name {name} --store {name} --writable");
    refuses(folder, &line, parts);
}

#[test]
fn a_log_that_lost_a_group_is_refused_and_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut one = Server::start(folder, "one");
    for n in 0..6 {
        one.insert(n);
    }
    one.kill();
    remove(&group_in(&folder.join("log"), 4));

    let mut two = Server::start(folder, "two");
    let missing = "0000000000000004.log is missing";
    unready(&two, &[missing, "groups up to 6", "cluster repair"]);
    let query = "/query?consistency=strict&query=ASK%20%7B%7D";
    let read = two.send("GET", query, &[], "");
    assert_says(&read, 503, &["group 4 of the shared log is missing"]);
    assert_says(&two.try_insert(100), 503, &["group 4"]);
    two.kill();

    refuses(folder, RESTORE, &["--snapshot 3"]);
    writes(folder, &format!("{RESTORE} --snapshot 3"), 0, &["3 quads"]);
    writes(folder, "cluster status --log log", 0, &["missing: log/"]);

    let parts = [
        missing,
        "group 4: missing, so its updates are not known",
        "group 5: 1 updates that one wrote at 20",
        "group 6: 1 updates that one wrote at 20",
        "--give-up-after 3",
    ];
    writes(folder, REPAIR, 1, &parts);
    let give_up = |number: u64| format!("{REPAIR} --give-up-after {number}");
    refuses(folder, &give_up(2), &["--give-up-after 3"]);
    let given_up = "groups 4 to 6 were given up";
    writes(folder, &give_up(3), 0, &[given_up]);
    writes(folder, REPAIR, 0, &["the log is whole"]);

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
    remove(&first);
    for name in ["one", "two"] {
        refuses_to_serve(folder, name, &["log.json is missing"]);
    }
    writes(folder, REPAIR, 1, &["--write-log-json"]);
    writes(folder, &format!("{REPAIR} --write-log-json"), 0, &[]);
    assert_eq!(std::fs::read(&first).unwrap(), text);
    assert_eq!(Server::start(folder, "two").objects("strict").0, [1]);
}

/// A log with these objects, in a new folder.
fn copy_of(log: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy_folder(log, &folder.path().join("log"));
    folder
}

/// Waits until a server that is not ready says why: with these parts.
fn unready(server: &Server, parts: &[&str]) {
    eventually(|| {
        let ready = server.send("GET", "/ready", &[], "");
        assert_eq!(ready.status, 503, "{}", ready.text());
        match parts.iter().all(|part| ready.text().contains(part)) {
            true => Ok(()),
            false => Err(ready.text().to_owned()),
        }
    });
}

/// Groups 1 to 6 of a server that has ended, with a base of snapshot 3.
fn six_groups(folder: &Path) {
    let mut one = Server::start(folder, "one");
    for n in 0..6 {
        one.insert(n);
        if n == 2 {
            one.merge();
            let base = folder.join("log/base");
            until(|| !files_below(&base).is_empty());
        }
    }
    one.kill();
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
    files_below(&log.join(folder)).pop().unwrap()
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
    writes(whole.path(), REPAIR, 0, &["up to 6"]);
    for (what, harm, parts) in CASES {
        println!("{what}");
        let folder = copy_of(&made.path().join("log"));
        harm(&folder.path().join("log"));
        let out = writes(folder.path(), REPAIR, 1, parts);
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
    let parts = ["0000000000000005.log is damaged: ", "cluster repair"];
    unready(&two, &parts);
    assert_says(&two.try_insert(100), 503, &[]);
    let told = refuses(folder, RESTORE, &parts);
    assert!(!told.contains("try again"), "{told}");
    drop(two);

    // What cannot be read is given up as what is missing.
    let given_up = "groups 5 to 6 were given up";
    writes(
        folder,
        &format!("{REPAIR} --give-up-after 4"),
        0,
        &[given_up],
    );
    writes(folder, REPAIR, 0, &[]);
    let three = Server::start(folder, "three");
    assert_eq!(three.objects("strict").0, [0, 1, 2, 3]);
}

#[test]
fn a_base_that_lacks_a_part_is_passed_over() {
    let made = tempfile::tempdir().unwrap();
    let folder = made.path();
    six_groups(folder);
    let part = files_below(&folder.join("log/parts")).remove(1);
    let restored = |into: &str, why: &str| {
        let args = [
            "restore",
            "--from",
            "log",
            "--snapshot",
            "5",
            "--store",
            into,
        ];
        let (out, told) = super::run::said(folder, &args);
        assert!(out.contains("5 quads"), "{out}{told}");
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
    two.merge();
    until(|| files_below(&folder.join("log/base")).len() == 2);
    drop(two);
    let from_later = "Servers start from base 7 and the groups after it";
    writes(folder, REPAIR, 1, &[from_later]);
}

#[test]
fn a_log_without_the_store_that_it_began_with_says_so() {
    let made = tempfile::tempdir().unwrap();
    let folder = made.path();
    std::fs::write(folder.join("d.ttl"), "<http://e/s> <http://e/p> 7 .\n").unwrap();
    good(folder, &["load", "-q", "--store", "one", "d.ttl"]);
    let one = Server::start(folder, "one");
    let base = folder.join("log/base");
    until(|| !files_below(&base).is_empty());
    drop(one);
    for object in [
        files_below(&base).remove(0),
        files_below(&folder.join("log/parts")).remove(1),
    ] {
        let bytes = std::fs::read(&object).unwrap();
        remove(&object);
        let name = object.file_name().unwrap().to_str().unwrap();
        // It listens, and says what is missing.
        let two = Server::start(folder, "two");
        unready(&two, &[name]);
        let out = writes(folder, REPAIR, 1, &[name]);
        assert!(!out.contains("--write-log-json"), "{out}");
        let told = refuses(folder, RESTORE, &[]);
        assert!(!told.contains("try again"), "{told}");
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
    let write = format!("{REPAIR} --write-log-json");
    for damaged in ["", "{", "{\"format\":1}", &other, &zero] {
        println!("{damaged}");
        let folder = copy_of(&made.path().join("log"));
        let folder = folder.path();
        let path = folder.join("log/log.json");
        std::fs::write(&path, damaged).unwrap();
        refuses_to_serve(folder, "two", &["log.json", "cluster repair"]);
        for line in ["cluster status --log log", RESTORE] {
            refuses(folder, line, &["log.json"]);
        }
        writes(folder, REPAIR, 1, &["--write-log-json"]);
        writes(folder, &write, 0, &[]);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "{damaged}");
        writes(folder, REPAIR, 0, &[]);
        refuses(folder, &write, &["log.json is there"]);
    }
    // A later version's is left as it is.
    let folder = copy_of(&made.path().join("log"));
    std::fs::write(folder.path().join("log/log.json"), "{\"format\":2}").unwrap();
    refuses(folder.path(), &write, &["later version"]);
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
    one.terminate();
    assert!(one.0.child.wait().unwrap().success());
    let entry = std::fs::read_to_string(folder.join("log/servers/one")).unwrap();
    assert!(entry.contains("\"newest\":20"), "{entry}");
    remove(&group_in(&folder.join("log"), 20));
    for name in ["two", "one"] {
        let server = Server::start(folder, name);
        unready(&server, &["0000000000000014.log is missing"]);
        assert_says(&server.try_insert(100), 503, &[]);
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
    assert_eq!(behind.objects("strict").0, [0, 1, 2]);
    behind.merge();
    behind.kill();
    for n in 3..8 {
        one.insert(n);
    }
    one.merge();
    one.kill();
    // Whichever of the two has uploaded a base.
    let _ = std::fs::remove_dir_all(log.join("base"));
    let _ = std::fs::remove_dir_all(log.join("parts"));
    remove(&group_in(&log, 6));
    let from = |store: &str| format!("{REPAIR} --from-store {store}");
    let unread = "group 6 is the first that cannot be read";
    refuses(folder, &from("behind"), &[unread]);
    refuses(folder, &from("nowhere"), &["no such directory"]);
    let done = "the base of snapshot 8; no update was given up";
    writes(folder, &from("one"), 0, &[done]);
    writes(folder, REPAIR, 0, &["the log is whole"]);
    refuses(folder, &from("one"), &["lacks nothing"]);
    let two = Server::start(folder, "two");
    assert_eq!(two.objects("strict").0, (0..8).collect::<Vec<_>>());
    two.insert(9);
    // A base of the same snapshot that cannot be used is replaced.
    drop(two);
    cut(files_below(&log.join("base")).last().unwrap());
    remove(&group_in(&log, 7));
    writes(folder, &from("one"), 0, &[]);
    writes(folder, REPAIR, 0, &["up to 9"]);
}
