//! The command as its users meet it: exit status and one clear sentence for whatever can go wrong.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn jindou() -> Command {
    Command::new(env!("CARGO_BIN_EXE_jindou"))
}

fn ask(store: &Path, query: &str, more: &[&str]) -> Output {
    jindou()
        .args(["query", "--store"])
        .arg(store)
        .arg(query)
        .args(more)
        .output()
        .unwrap()
}

fn err(o: &Output) -> String {
    String::from_utf8_lossy(&o.stderr).into_owned()
}

fn out(o: &Output) -> String {
    String::from_utf8_lossy(&o.stdout).into_owned()
}

/// Fails with status `code` and one line that holds all `words`.
fn fails(o: &Output, code: i32, words: &[&str]) {
    let e = err(o);
    assert_eq!(o.status.code(), Some(code), "{e}");
    for w in words {
        assert!(e.contains(w), "no '{w}' in: {e}");
    }
    assert!(e.starts_with("jindou: "), "{e}");
    assert!(!e.contains("panicked"), "{e}");
}

fn sentence(o: &Output, words: &[&str]) {
    fails(o, 1, words);
    assert_eq!(err(o).trim_end().lines().count(), 1, "{}", err(o));
}

fn load(folder: &Path, file: &str, text: &str, more: &[&str]) -> (PathBuf, Output) {
    let path = folder.join(file);
    fs::write(&path, text).unwrap();
    let store = folder.join("store");
    let o = jindou()
        .args(["load", "--quiet", "--store"])
        .arg(&store)
        .arg(&path)
        .args(more)
        .output()
        .unwrap();
    (store, o)
}

fn small(folder: &Path) -> PathBuf {
    let mut text =
        String::from("@prefix : <http://e/> .\n:a :p :b ; :q \"x\\ty\"@en . :b :p :c .\n");
    for i in 0..400 {
        text.push_str(&format!(":s{i} :n {i} .\n"));
    }
    let (store, o) = load(folder, "data.ttl", &text, &[]);
    assert!(o.status.success(), "{}", err(&o));
    store
}

#[test]
fn a_load_and_its_answers() {
    let t = tempfile::tempdir().unwrap();
    let store = small(t.path());
    let q = "PREFIX : <http://e/> SELECT ?s ?o { ?s :p ?o } ORDER BY ?s";
    let o = ask(&store, q, &["--format", "tsv"]);
    assert_eq!(
        out(&o),
        "?s\t?o\n<http://e/a>\t<http://e/b>\n<http://e/b>\t<http://e/c>\n"
    );
    let o = ask(&store, q, &["--format", "csv"]);
    assert_eq!(
        out(&o),
        "s,o\r\nhttp://e/a,http://e/b\r\nhttp://e/b,http://e/c\r\n"
    );
    let o = ask(&store, "ASK { ?s <http://e/p> ?o }", &["--format", "json"]);
    assert!(out(&o).contains("true"));
    let o = ask(
        &store,
        "CONSTRUCT { ?o ?p ?s } WHERE { ?s ?p ?o FILTER(isIRI(?o)) }",
        &["--format", "nt"],
    );
    assert_eq!(out(&o).lines().count(), 2);
    let o = ask(&store, q, &["--explain"]);
    assert!(o.status.success() && !out(&o).contains("spareval"));
    let o = ask(&store, "SELECT * { ?a <http://e/p>* ?b }", &["--explain"]);
    assert!(out(&o).contains("native"), "{}", out(&o));
    let o = jindou()
        .args(["check", "--store"])
        .arg(&store)
        .output()
        .unwrap();
    assert!(o.status.success() && out(&o).contains("no damage"));
    let o = jindou()
        .args(["info", "--store"])
        .arg(&store)
        .output()
        .unwrap();
    assert!(o.status.success() && out(&o).contains("403"), "{}", out(&o));
}

#[test]
fn a_constant_pattern_that_is_none_is_said_behind_the_answer() {
    let t = tempfile::tempdir().unwrap();
    let store = small(t.path());
    let q = "SELECT * {\n ?s ?p ?o FILTER(REGEX(STR(?o), 'a(b')) }";
    let o = ask(&store, q, &[]);
    assert!(o.status.success(), "{}", err(&o));
    assert_eq!(out(&o).lines().count(), 1, "{}", out(&o));
    let said = "line 2, column 18: REGEX: character 2 of the pattern";
    assert!(err(&o).contains(said), "{}", err(&o));
    let o = ask(&store, q, &["--explain"]);
    assert!(out(&o).contains(&format!("remark: {said}")), "{}", out(&o));
    let o = ask(&store, &q.replace("a(b", "a(b)"), &[]);
    assert!(o.status.success() && err(&o).is_empty(), "{}", err(&o));
}

#[test]
fn a_bad_query_gets_line_and_column() {
    let t = tempfile::tempdir().unwrap();
    let store = small(t.path());
    let o = ask(&store, "SELECT ?s\nWHERE { ?s ?p }", &[]);
    fails(&o, 1, &["not valid SPARQL", "line 2, column 15"]);
    let text = "SELECT * { ?s foaf:name ?o }";
    assert!(ask(&store, text, &[]).status.success());
    let o = ask(&store, text, &["--no-prefixes"]);
    fails(&o, 1, &["line 1, column 15", "did you mean PREFIX foaf:"]);
    let o = ask(&store, "CLEAR ALL", &[]);
    fails(&o, 1, &["this is an update", "jindou update"]);
    let file = t.path().join("missing.rq");
    let o = jindou()
        .args(["query", "--store"])
        .arg(&store)
        .arg("-f")
        .arg(&file)
        .output()
        .unwrap();
    sentence(&o, &["missing.rq"]);
}

#[test]
fn bad_data_is_located_and_leaves_nothing() {
    let t = tempfile::tempdir().unwrap();
    let bad = "<http://e/a> <http://e/p> \"x\" .\n<http://e/a> <http://e/p> oops .\n";
    let (store, o) = load(t.path(), "bad.nt", bad, &[]);
    fails(&o, 1, &["bad.nt:2:27", "oops"]);
    assert!(!store.exists());
    let left: Vec<_> = fs::read_dir(t.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(left, ["bad.nt"], "something was left");
    let (store, o) = load(t.path(), "bad.nt", bad, &["--lenient"]);
    assert!(o.status.success(), "{}", err(&o));
    assert!(err(&o).contains("skipped 1"), "{}", err(&o));
    assert!(store.exists());
    // Over an existing store only on demand, and a failed load leaves the old one.
    let (_, o) = load(
        t.path(),
        "good.nt",
        "<http://e/b> <http://e/p> \"y\" .\n",
        &[],
    );
    sentence(&o, &["--replace"]);
    let (_, o) = load(t.path(), "bad.nt", bad, &["--replace"]);
    fails(&o, 1, &["bad.nt:2:27"]);
    let all = "SELECT ?s { ?s ?p ?o }";
    assert_eq!(
        out(&ask(&store, all, &[])).lines().nth(1),
        Some("<http://e/a>")
    );
    // A document in another format than its name says must not empty the store.
    let (_, o) = load(
        t.path(),
        "csv.nt",
        "a,b\n1,2\n",
        &["--replace", "--lenient"],
    );
    fails(
        &o,
        1,
        &["csv.nt", "no statement is valid", "the store was left"],
    );
    assert_eq!(
        out(&ask(&store, all, &[])).lines().nth(1),
        Some("<http://e/a>")
    );
    let (_, o) = load(
        t.path(),
        "good.nt",
        "<http://e/b> <http://e/p> \"y\" .\n",
        &["--replace"],
    );
    assert!(o.status.success(), "{}", err(&o));
    assert_eq!(
        out(&ask(&store, all, &[])).lines().nth(1),
        Some("<http://e/b>")
    );
    let (_, o) = load(t.path(), "data.xyz", "", &[]);
    sentence(&o, &["data.xyz"]);
    let o = jindou()
        .args(["load", "--store"])
        .arg(t.path().join("new"))
        .arg(t.path().join("nowhere.nt"))
        .output()
        .unwrap();
    sentence(&o, &["nowhere.nt"]);
}

#[test]
fn what_is_no_store_is_said_in_one_sentence() {
    let t = tempfile::tempdir().unwrap();
    let q = "ASK {}";
    sentence(&ask(&t.path().join("nowhere"), q, &[]), &["nowhere"]);
    let foreign = t.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("letter.txt"), "dear").unwrap();
    sentence(&ask(&foreign, q, &[]), &["foreign"]);
    // A folder that is not a store is never replaced.
    fs::write(t.path().join("a.nt"), "<http://e/b> <http://e/p> \"y\" .\n").unwrap();
    let o = jindou()
        .args(["load", "--quiet", "--replace", "--store"])
        .arg(&foreign)
        .arg(t.path().join("a.nt"))
        .output()
        .unwrap();
    sentence(&o, &["foreign"]);
    assert!(foreign.join("letter.txt").exists());

    let store = small(t.path());
    let names: Vec<PathBuf> = fs::read_dir(&store)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "jd"))
        .collect();
    assert!(names.len() > 3);
    for path in names {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name == "checksums.jd" {
            continue;
        }
        let good = fs::read(&path).unwrap();
        fs::write(&path, &good[..good.len() / 2]).unwrap();
        sentence(&ask(&store, q, &[]), &[&name]);
        fs::remove_file(&path).unwrap();
        sentence(&ask(&store, q, &[]), &[&name]);
        fs::write(&path, &good).unwrap();
    }
    assert!(ask(&store, q, &[]).status.success());
}

#[test]
fn a_newer_format_is_told_from_damage() {
    let t = tempfile::tempdir().unwrap();
    let store = small(t.path());
    let path = store.join("manifest.jd");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("jindou-store 1\n"), "{text}");
    fs::write(&path, text.replacen("jindou-store 1", "jindou-store 99", 1)).unwrap();
    sentence(&ask(&store, "ASK {}", &[]), &["version 99", "newer"]);
    // A changed byte of the first line is damage.
    for damaged in ["jindou-store 3", "jindou-stOre 1", "jindou-store !"] {
        fs::write(&path, text.replacen("jindou-store 1", damaged, 1)).unwrap();
        sentence(&ask(&store, "ASK {}", &[]), &["manifest.jd", "damaged"]);
    }
}

#[test]
fn check_names_the_damaged_file() {
    let t = tempfile::tempdir().unwrap();
    let store = small(t.path());
    let path = store.join("segments-in.jd");
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let o = jindou()
        .args(["check", "--store"])
        .arg(&store)
        .output()
        .unwrap();
    assert_eq!(o.status.code(), Some(2));
    assert!(out(&o).contains("segments-in.jd"), "{}", out(&o));
}

#[test]
fn merging_folds_the_log_into_the_store() {
    let t = tempfile::tempdir().unwrap();
    let store = small(t.path());
    let run = |command: &str, more: &[&str]| {
        let o = jindou()
            .args([command, "--store"])
            .arg(&store)
            .args(more)
            .output();
        let o = o.unwrap();
        assert_eq!(o.status.code(), Some(0), "{command}: {}", err(&o));
        out(&o)
    };
    let insert = "INSERT DATA { <http://e/a> <http://e/late> \"late\" }";
    run("update", &[insert]);
    assert!(run("info", &[]).contains("in the log      1 transaction, part of all counts here"));
    assert!(run("merge", &[]).starts_with("merged snapshot 1: 1 edit, 1 predicate with 2 edges"));
    assert!(run("merge", &[]).contains("nothing to merge"));
    assert!(
        run("info", &[]).contains("merged          changes up to snapshot 1, in 1 generation\n")
    );
    assert!(!run("info", &[]).contains("in the log"));
    assert!(run("check", &[]).contains("no damage found"));
    assert!(run("query", &["SELECT ?o { <http://e/a> <http://e/late> ?o }"]).contains("late"));
    // Damage to a merged file is found as any other is.
    let path = store.join("g1-segments-out.jd");
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let o = jindou()
        .args(["check", "--store"])
        .arg(&store)
        .output()
        .unwrap();
    assert_eq!(o.status.code(), Some(2));
    assert!(out(&o).contains("g1-segments-out.jd"), "{}", out(&o));
    // A store that was merged is replaced as any other is.
    let data = t.path().join("other.nt");
    fs::write(&data, "<http://e/a> <http://e/p> <http://e/b> .\n").unwrap();
    let o = jindou()
        .args(["load", "--replace", "--quiet", "--store"])
        .arg(&store)
        .arg(&data)
        .output();
    assert_eq!(o.unwrap().status.code(), Some(0));
    assert!(!path.exists());
}

#[test]
fn check_reads_the_log_of_updates() {
    let t = tempfile::tempdir().unwrap();
    let store = small(t.path());
    let check = || {
        let o = jindou().args(["check", "--store"]).arg(&store).output();
        let o = o.unwrap();
        (o.status.code(), out(&o))
    };
    let before = check();
    assert_eq!(before.0, Some(0), "{}", before.1);
    let insert = "INSERT DATA { <http://e/a> <http://e/late> \"a long enough text to hit\" }";
    let o = jindou()
        .args(["update", "--store"])
        .arg(&store)
        .arg(insert)
        .output()
        .unwrap();
    assert_eq!(o.status.code(), Some(0));
    let sound = check();
    assert!(sound.0 == Some(0) && sound.1 != before.1, "{}", sound.1);
    let mut logs: Vec<_> = fs::read_dir(store.join("log"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    logs.sort();
    let text = b"long enough";
    let (path, mut bytes, at) = logs
        .iter()
        .find_map(|p| {
            let bytes = fs::read(p).unwrap();
            let at = bytes.windows(text.len()).position(|w| w == text)?;
            Some((p, bytes, at))
        })
        .unwrap();
    bytes[at] ^= 1;
    fs::write(path, &bytes).unwrap();
    let damaged = check();
    let name = path.file_name().unwrap().to_str().unwrap();
    assert_eq!(damaged.0, Some(2), "{}", damaged.1);
    assert!(damaged.1.contains(name), "{}", damaged.1);
    // It is refused, not served without what it has lost.
    let o = ask(&store, "ASK {}", &[]);
    assert_eq!(o.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&o.stderr).contains(name));
}

const CROSS: &str =
    "PREFIX : <http://e/> SELECT * { ?a :n ?b . ?c :n ?d . ?e :n ?f . ?g :n ?h . ?i :n ?j }";

#[test]
fn time_memory_and_a_closed_pipe() {
    let t = tempfile::tempdir().unwrap();
    let store = small(t.path());
    let o = ask(
        &store,
        &CROSS
            .replace("SELECT *", "SELECT (COUNT(*) AS ?z)")
            .replace("?j }", "?j FILTER(?b + ?d + ?f + ?h + ?j < 0) }"),
        &["--timeout", "100ms"],
    );
    fails(&o, 124, &["time limit", "--timeout"]);
    let o = ask(
        &store,
        &CROSS.replace("SELECT *", "SELECT DISTINCT *"),
        &["--memory", "16M"],
    );
    fails(&o, 1, &["memory limit", "--memory"]);
    // `jindou query … | head -1`: the reader leaves, the command ends well and soon.
    let mut child = jindou()
        .args(["query", "--format", "tsv", "--store"])
        .arg(&store)
        .arg(CROSS)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut some = [0; 100];
    let mut pipe = child.stdout.take().unwrap();
    pipe.read_exact(&mut some).unwrap();
    drop(pipe);
    let o = child.wait_with_output().unwrap();
    assert!(o.status.success(), "{}", err(&o));
    assert!(o.stderr.is_empty(), "{}", err(&o));
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_ends_a_query_with_its_own_status() {
    let t = tempfile::tempdir().unwrap();
    let store = small(t.path());
    let queries = [
        CROSS.to_owned(),
        CROSS.replace("?j }", "?j BIND(STR(?a) AS ?k) FILTER(?k = \"\") }"),
    ];
    for query in queries {
        let child = jindou()
            .args(["query", "--store"])
            .arg(&store)
            .arg(query)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(400));
        let id = child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-INT", &id])
                .status()
                .unwrap()
                .success()
        );
        let o = child.wait_with_output().unwrap();
        fails(&o, 130, &["cancelled"]);
    }
}

#[test]
fn two_writers_of_one_store() {
    let t = tempfile::tempdir().unwrap();
    let store = t.path().join("store");
    // The first writer waits for standard input and holds the place meanwhile.
    let mut first = jindou()
        .args(["load", "--quiet", "--format", "nt", "--store"])
        .arg(&store)
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    fs::write(t.path().join("a.nt"), "<http://e/b> <http://e/p> \"y\" .\n").unwrap();
    let o = jindou()
        .args(["load", "--quiet", "--store"])
        .arg(&store)
        .arg(t.path().join("a.nt"))
        .output()
        .unwrap();
    let text = err(&o);
    drop(first.stdin.take());
    let done = first.wait().unwrap();
    sentence(&o, &["store"]);
    assert!(
        text.contains("another") || text.contains("in use"),
        "{text}"
    );
    assert!(done.success());
}

#[test]
fn a_store_is_reclustered_backed_up_and_restored() {
    let t = tempfile::tempdir().unwrap();
    let store = small(t.path());
    let run = |args: &[&str]| {
        let at = |a: &&str| t.path().join(a.trim_start_matches('@'));
        let mut command = jindou();
        for a in args {
            match a.starts_with('@') {
                true => command.arg(at(a)),
                false => command.arg(a),
            };
        }
        command.output().unwrap()
    };
    let ok = |args: &[&str]| {
        let o = run(args);
        assert!(o.status.success(), "{args:?}: {}", err(&o));
        out(&o)
    };
    let insert = |n: u32| {
        let text = format!("INSERT DATA {{ <http://e/new{n}> <http://e/n> {n} }}");
        ok(&["update", "--store", "@store", &text]);
    };
    insert(1);
    assert!(ok(&["backup", "--store", "@store", "--to", "@backups"]).contains("snapshots 0 to 1"));
    insert(2);
    let said = ok(&[
        "recluster",
        "--store",
        "@store",
        "--memory",
        "64M",
        "--quiet",
    ]);
    assert!(
        said.contains("405 quads") && said.contains("snapshot 2"),
        "{said}"
    );
    insert(3);
    ok(&["backup", "--store", "@store", "--to", "@backups"]);
    let list = ok(&["backup", "--to", "@backups", "--list"]);
    assert_eq!(list.lines().count(), 2, "{list}");
    assert!(list.contains("snapshots 2 to 3"), "{list}");
    let count = |store: &Path| {
        let o = ask(
            store,
            "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }",
            &["--format", "csv"],
        );
        out(&o).lines().nth(1).unwrap().to_owned()
    };
    assert_eq!(count(&store), "406");
    ok(&["restore", "--from", "@backups", "--store", "@newest"]);
    assert_eq!(count(&t.path().join("newest")), "406");
    ok(&["check", "--store", "@newest"]);
    ok(&[
        "restore",
        "--from",
        "@backups",
        "--store",
        "@first",
        "--snapshot",
        "1",
    ]);
    assert_eq!(count(&t.path().join("first")), "404");
    let over = run(&["restore", "--from", "@backups", "--store", "@first"]);
    sentence(&over, &["not empty"]);
    let never = [
        "restore",
        "--from",
        "@backups",
        "--store",
        "@x",
        "--at",
        "2001-01-01T00:00:00Z",
    ];
    sentence(
        &run(&never),
        &["no backup includes", "2001-01-01T00:00:00Z"],
    );
    let bad = run(&[
        "restore",
        "--from",
        "@backups",
        "--store",
        "@x",
        "--at",
        "yesterday",
    ]);
    assert_eq!(bad.status.code(), Some(2), "{}", err(&bad));
    let cloud = ["backup", "--store", "@store", "--to", "s3://bucket/place"];
    sentence(&run(&cloud), &["s3://bucket/place"]);
}

/// `generate`, `bench` and `peers` are the business of a program next to this one, which gets their arguments as they are.
#[cfg(unix)]
#[test]
fn the_laboratory_is_a_program_beside_the_command() {
    let t = tempfile::tempdir().unwrap();
    let command = t.path().join("jindou");
    // Programs are written by other processes: a process that another test starts meanwhile would inherit the file open for
    // writing, and such a file cannot be run.
    let written = Command::new("cp")
        .arg(env!("CARGO_BIN_EXE_jindou"))
        .arg(&command)
        .status();
    assert!(written.unwrap().success());
    let run = |args: &[&str]| Command::new(&command).args(args).output().unwrap();

    let o = run(&["bench", "lubm", "-n", "1"]);
    assert_eq!(o.status.code(), Some(1));
    let said = String::from_utf8_lossy(&o.stderr).into_owned();
    assert!(
        said.contains("jindou-bench") && said.contains("cargo build"),
        "{said}"
    );

    let program = t.path().join("jindou-bench");
    let written = Command::new("sh")
        .arg("-c")
        .arg(r#"printf '#!/bin/sh\necho "$@"\nexit 7\n' > "$0" && chmod +x "$0""#)
        .arg(&program)
        .status();
    assert!(written.unwrap().success());
    for (asked, passed) in [
        (
            &["bench", "lubm", "-n", "1", "--help"][..],
            "lubm -n 1 --help\n",
        ),
        (&["peers", "list"], "peers list\n"),
        (
            &["generate", "lubm", "-n", "1", "--config", "c"],
            "generate lubm -n 1 --config c\n",
        ),
    ] {
        let o = run(asked);
        assert_eq!(o.status.code(), Some(7));
        assert_eq!(String::from_utf8_lossy(&o.stdout), passed);
    }
}

/// Waits until a server says something on standard error, and gives all it said by then.
fn said(errors: &mut impl Read, what: &str) -> String {
    let mut all = Vec::new();
    let mut byte = [0];
    while errors.read(&mut byte).unwrap() == 1 {
        all.push(byte[0]);
        if byte[0] == b'\n' && String::from_utf8_lossy(&all).contains(what) {
            return String::from_utf8_lossy(&all).into_owned();
        }
    }
    panic!("never '{what}' in {}", String::from_utf8_lossy(&all));
}

#[test]
fn a_hangup_makes_a_server_read_its_tokens_again() {
    use std::os::unix::fs::PermissionsExt;
    let tmp = tempfile::tempdir().unwrap();
    let store = small(tmp.path());
    let tokens = tmp.path().join("tokens");
    fs::write(&tokens, "read 0123456789abcdef\n").unwrap();
    fs::set_permissions(&tokens, PermissionsExt::from_mode(0o644)).unwrap();
    let mut server = jindou()
        .args(["serve", "--port", "0", "--host", "localhost", "--store"])
        .arg(&store)
        .arg("--token-file")
        .arg(&tokens)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = server.stderr.take().unwrap();
    said(&mut errors, "can be read by other users");
    let mut line = Vec::new();
    let mut out = server.stdout.take().unwrap();
    let mut byte = [0];
    while out.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    // It listens, and hears signals a moment later.
    let id = server.id().to_string();
    let signal = |name: &str| Command::new("kill").args([name, &id]).status().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(signal("-HUP").success());
    let text = said(&mut errors, "again");
    assert!(
        text.contains("read tokens and certificates again"),
        "{text}"
    );
    fs::write(&tokens, "nonsense\n").unwrap();
    assert!(signal("-HUP").success());
    let text = said(&mut errors, "reload failed");
    assert!(text.contains("line 1"), "{text}");
    assert!(server.try_wait().unwrap().is_none());
    assert!(signal("-TERM").success());
    assert!(server.wait().unwrap().success());
}

#[test]
fn byte_order_marks_are_passed_over() {
    let tmp = tempfile::tempdir().unwrap();
    let xml = "<?xml version=\"1.0\"?><rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:e=\"http://e/\"><rdf:Description rdf:about=\"http://e/s\"><e:p>1</e:p></rdf:Description></rdf:RDF>";
    for (name, text) in [
        ("a.nt", "<http://e/s> <http://e/p> \"1\" .\n"),
        ("a.nq", "<http://e/s> <http://e/p> \"1\" .\n"),
        ("a.ttl", "@prefix e: <http://e/> . e:s e:p \"1\" ."),
        ("a.trig", "@prefix e: <http://e/> . e:s e:p \"1\" ."),
        ("a.jsonld", "{\"@id\":\"http://e/s\",\"http://e/p\":\"1\"}"),
        ("a.rdf", xml),
    ] {
        for more in [&["--replace"][..], &["--replace", "--lenient"]] {
            let (store, o) = load(tmp.path(), name, &format!("\u{feff}{text}"), more);
            assert!(o.status.success(), "{name}: {}", err(&o));
            let query = tmp.path().join("query.rq");
            fs::write(&query, "\u{feff}ASK { <http://e/s> <http://e/p> '1' }").unwrap();
            let asked = jindou()
                .args(["query", "--store"])
                .arg(&store)
                .arg("-f")
                .arg(&query)
                .output()
                .unwrap();
            assert_eq!(out(&asked), "true\n", "{name}: {}", err(&asked));
        }
    }
}

#[test]
fn every_answer_has_a_sensible_form_in_every_format() {
    let tmp = tempfile::tempdir().unwrap();
    let (store, o) = load(tmp.path(), "a.ttl", "<http://e/s> <http://e/p> 1 .", &[]);
    assert!(o.status.success());
    let graph = "CONSTRUCT WHERE { ?s ?p ?o }";
    let line = "<http://e/s> <http://e/p> \"1\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n";
    let is = |format: &str, text: &str| {
        let o = ask(&store, graph, &["--format", format]);
        assert_eq!(out(&o), text, "{format}: {}", err(&o));
    };
    is(
        "csv",
        "subject,predicate,object\r\nhttp://e/s,http://e/p,1\r\n",
    );
    is(
        "tsv",
        "?subject\t?predicate\t?object\n<http://e/s>\t<http://e/p>\t1\n",
    );
    is("nt", line);
    is("table", line);
    // Rows were not requested.
    assert_eq!(out(&ask(&store, graph, &[])), line);
    assert!(out(&ask(&store, graph, &["--format", "json"])).contains("\"@id\""));
    assert!(out(&ask(&store, graph, &["--format", "xml"])).contains("rdf:RDF"));
    sentence(
        &ask(&store, "ASK {}", &["--format", "ttl"]),
        &["ASK returns true or false", "Turtle", "json"],
    );
    sentence(
        &ask(&store, "SELECT * { ?s ?p ?o }", &["--format", "nt"]),
        &["SELECT returns rows", "N-Triples"],
    );
}

#[test]
fn tables_have_short_names() {
    let t = tempfile::tempdir().unwrap();
    let text = "@prefix f: <http://xmlns.com/foaf/0.1/> . @prefix e: <http://e/> .\n\
                e:a f:age 7 ; f:name \"<http://e/a>\" ; f:born \"2000-01-01\"^^<http://www.w3.org/2001/XMLSchema#date> .\n";
    let (store, o) = load(t.path(), "a.ttl", text, &[]);
    assert!(o.status.success(), "{}", err(&o));
    let cells = |more: &[&str]| -> Vec<String> {
        let q = "PREFIX : <http://e/> SELECT ?s ?p ?o { ?s ?p ?o } ORDER BY ?p";
        let o = ask(&store, q, &[&["--format", "table"], more].concat());
        assert!(o.status.success(), "{}", err(&o));
        let rows = out(&o);
        let cells = rows.lines().skip(2).flat_map(|l| l.split('│'));
        cells.map(|c| c.trim().to_owned()).collect()
    };
    assert_eq!(
        cells(&[]),
        [
            ":a",
            "f:age",
            "7",
            ":a",
            "f:born",
            "\"2000-01-01\"^^xsd:date",
            ":a",
            "f:name",
            "\"<http://e/a>\""
        ]
    );
    let long = cells(&["--no-prefixes"]);
    assert_eq!(long[1], "<http://xmlns.com/foaf/0.1/age>");
    assert_eq!(
        long[5],
        "\"2000-01-01\"^^<http://www.w3.org/2001/XMLSchema#date>"
    );
    // Programs get whole IRIs.
    let o = ask(&store, "SELECT ?p { ?s ?p 7 }", &["--format", "tsv"]);
    assert_eq!(out(&o), "?p\n<http://xmlns.com/foaf/0.1/age>\n");
}

#[test]
fn a_line_that_memory_has_no_room_for_is_refused() {
    let t = tempfile::tempdir().unwrap();
    let text = format!("<http://e/a> <http://e/p> \"{}\" .\n", "x".repeat(48 << 20));
    let (_, o) = load(t.path(), "long.nt", &text, &["--memory", "2G"]);
    assert!(o.status.success(), "{}", err(&o));
    let (store, o) = load(
        t.path(),
        "longer.nt",
        &text,
        &["--memory", "128M", "--replace"],
    );
    assert!(!o.status.success());
    sentence(&o, &["longer.nt", "MiB and has not ended yet"]);
    // The store of before.
    let o = ask(
        &store,
        "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }",
        &["--format", "csv"],
    );
    assert_eq!(out(&o), "n\r\n1\r\n");
}
