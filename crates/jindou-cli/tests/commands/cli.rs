//! Damaged files, signals, two writers, and lines that do not fit into memory.

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

/// Checks that the command failed with status `code` and one line that contains all `words`.
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
fn files_that_are_cut_or_lost_are_named() {
    let t = tempfile::tempdir().unwrap();
    let q = "ASK {}";
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
fn damage_to_a_merged_file_is_found() {
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
    run("merge", &[]);
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
    // The store is refused, since without the lost data answers would be wrong.
    let o = ask(&store, "ASK {}", &[]);
    assert_eq!(o.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&o.stderr).contains(name));
}

const CROSS: &str =
    "PREFIX : <http://e/> SELECT * { ?a :n ?b . ?c :n ?d . ?e :n ?f . ?g :n ?h . ?i :n ?j }";

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
    // The first writer waits for standard input, and holds the store's lock meanwhile.
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

/// Waits until a server has written `what` to standard error. Returns everything that it has written by then.
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
    // The server installs its signal handlers a moment after it begins to listen.
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
    // The store from before the failed load is still there.
    let o = ask(
        &store,
        "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }",
        &["--format", "csv"],
    );
    assert_eq!(out(&o), "n\r\n1\r\n");
}
