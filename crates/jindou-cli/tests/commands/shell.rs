//! `jindou shell`, from a pipe and at a terminal (by `script`, where it is installed).

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn store(folder: &Path) {
    let mut text =
        String::from("@prefix foaf: <http://xmlns.com/foaf/0.1/> . @prefix e: <http://e/> .\n");
    for i in 0..300 {
        text.push_str(&format!("e:s{i} foaf:nick \"n{i}\" ; e:n {i} .\n"));
    }
    fs::write(folder.join("d.ttl"), text).unwrap();
    let o = jindou(folder)
        .args(["load", "-q", "--store", "s", "d.ttl"])
        .output()
        .unwrap();
    assert!(o.status.success());
}

fn jindou(folder: &Path) -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_jindou"));
    c.current_dir(folder)
        .env("HOME", folder)
        .env("XDG_STATE_HOME", folder.join("state"));
    c
}

fn shell(folder: &Path, more: &[&str], text: &str) -> Output {
    let mut child = jindou(folder)
        .args(["shell", "--store", "s", "--format", "csv"])
        .args(more)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A shell that has quit reads no further.
    let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
    child.wait_with_output().unwrap()
}

fn texts(o: &Output) -> (String, String) {
    let [out, err] = [&o.stdout, &o.stderr].map(|b| String::from_utf8_lossy(b).replace('\r', ""));
    assert!(!err.contains("panicked"), "{err}");
    (out, err)
}

#[test]
fn statements_of_a_pipe_are_run_one_after_the_other() {
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    store(at);
    let text = "# first\nSELECT ?o\n{ <http://e/s1> foaf:nick ?o }\nLIMIT 5\n\n\
                .prefix e http://e/\nSELECT ?o {\n\n e:s2 e:n ?o };\nASK { e:s3 e:n 3 }\n.format tsv\nSELECT ?o { e:s4 foaf:nick ?o }";
    let o = shell(at, &[], text);
    let (out, err) = texts(&o);
    assert!(o.status.success(), "{err}");
    assert_eq!(out, "o\nn1\no\n2\ntrue\n?o\n\"n4\"\n", "{err}");
    // A mistake does not end it, but counts.
    let o = shell(
        at,
        &[],
        "SELECT ?x {\n ?x foaf:nick }\n\nINSERT DATA { <a:b> <a:b> 1 }\n\n.fromat csv\nASK {}",
    );
    let (out, err) = texts(&o);
    assert_eq!(o.status.code(), Some(1));
    assert_eq!(out, "true\n");
    for words in ["line 2, column 15", "--write", "did you mean .format?"] {
        assert!(err.contains(words), "no '{words}' in {err}");
    }
    let o = shell(
        at,
        &["--limit", "3"],
        "SELECT ?s { ?s foaf:nick ?o } ;\n.limit off\nCONSTRUCT WHERE { ?s foaf:nick ?o };\n.timing on\nASK {};\n.quit\nASK {}",
    );
    let (out, err) = texts(&o);
    assert!(o.status.success());
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!((lines[0], lines.len()), ("s", 4 + 301 + 1), "{out}");
    assert!(
        err.contains("only the first 3 rows") && err.contains(" ms"),
        "{err}"
    );
    fs::write(
        at.join("q.rq"),
        ".prefix e http://e/\nSELECT ?o { e:s7 e:n ?o }\n",
    )
    .unwrap();
    fs::write(at.join("loop"), ".read loop\n").unwrap();
    let o = shell(
        at,
        &[],
        ".read q.rq\nASK { e:s7 e:n 7 };\n.explain SELECT * {\n ?s foaf:nick ?o }\n\n.profile ASK {};\n.read loop\n.read nowhere\n.timeout 1ns\nSELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i };\n.help",
    );
    let (out, err) = texts(&o);
    assert!(
        out.starts_with("o\n7\ntrue\n")
            && out.contains("SELECT, native")
            && out.contains(".timeout [TIME|off]"),
        "{out}"
    );
    for words in ["files .read one another", "nowhere", "time limit"] {
        assert!(err.contains(words), "no '{words}' in {err}");
    }
}

#[test]
fn nothing_is_run_when_nobody_reads_the_answers() {
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    store(at);
    let mut child = jindou(at)
        .args(["shell", "--store", "s", "--write"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let text = "ASK {};\nINSERT DATA { <http://e/late> <http://e/p> 1 };\n";
    // The shell may be gone before it has read everything.
    let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
    assert!(child.wait().unwrap().success());
    let o = shell(at, &[], "ASK { <http://e/late> ?p ?o };");
    assert_eq!(texts(&o).0, "false\n");
}

#[test]
fn updates_want_to_be_allowed() {
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    store(at);
    let text = ".prefix e http://e/\nINSERT DATA { e:new e:n 'new' };\nSELECT ?s { ?s e:n 'new' }\n\nDELETE WHERE { e:new ?p ?o }\n\nASK { e:new ?p ?o }";
    let o = shell(at, &["--write"], text);
    let (out, err) = texts(&o);
    assert!(o.status.success(), "{err}");
    assert!(
        out.contains("1 quad added")
            && out.contains("\nhttp://e/new\n")
            && out.ends_with("false\n"),
        "{out}"
    );
}

/// Runs the shell at a terminal; `talk` writes to it and waits for what it says.
fn at_terminal(folder: &Path, more: &str, talk: impl FnOnce(&mut Terminal)) -> Option<String> {
    if Command::new("script").arg("--version").output().is_err() {
        eprintln!("skipped: script (util-linux) is not installed");
        return None;
    }
    let command = format!(
        "stty rows 24 cols 100; exec {} shell --store s {more}",
        env!("CARGO_BIN_EXE_jindou")
    );
    let mut child = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .current_dir(folder)
        .env("HOME", folder)
        .env("XDG_STATE_HOME", folder.join("state"))
        .env("TERM", "xterm")
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (send, receive) = std::sync::mpsc::channel();
    let mut out = child.stdout.take().unwrap();
    std::thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(n @ 1..) = out.read(&mut piece) {
            if send.send(piece[..n].to_vec()).is_err() {
                return;
            }
        }
    });
    let mut terminal = Terminal {
        keys: child.stdin.take().unwrap(),
        said: receive,
        seen: String::new(),
        from: 0,
    };
    terminal.wait("jindou> ");
    talk(&mut terminal);
    terminal.keys("\x04");
    drop(terminal.keys);
    let status = child.wait().unwrap();
    assert!(status.success(), "{}", terminal.seen);
    Some(terminal.seen)
}

struct Terminal {
    keys: std::process::ChildStdin,
    said: std::sync::mpsc::Receiver<Vec<u8>>,
    seen: String,
    from: usize,
}

impl Terminal {
    fn keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits until it has said this since the last wait.
    fn wait(&mut self, text: &str) {
        let said = self.says(text, Duration::from_secs(60));
        assert!(said, "no '{text}' in {:?}", &self.seen[self.from..]);
    }

    /// Presses keys until it says this: an interrupt has no effect before the query runs.
    fn press_until(&mut self, keys: &str, text: &str) {
        for _ in 0..30 {
            self.keys(keys);
            if self.says(text, Duration::from_secs(2)) {
                return;
            }
        }
        panic!("no '{text}' in {:?}", &self.seen[self.from..]);
    }

    /// False if it has not said this after the limit.
    fn says(&mut self, text: &str, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        loop {
            if let Some(at) = self.seen[self.from..].find(text) {
                self.from += at + text.len();
                return true;
            }
            let left = end.saturating_duration_since(Instant::now());
            match self.said.recv_timeout(left) {
                Ok(piece) => self.seen.push_str(&String::from_utf8_lossy(&piece)),
                Err(_) => return false,
            }
        }
    }
}

#[test]
fn a_terminal_has_lines_completion_pages_and_an_interrupt() {
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    store(at);
    let talked = at_terminal(at, "--pager 'cat; echo PAGED'", |shell| {
        // Several lines, the word completed.
        shell.keys("SELECT ?o {\r");
        shell.keys("<http://e/s5> foaf:ni\t ?o }\r");
        shell.wait("\"n5\"");
        shell.wait("1 row in");
        shell.wait("jindou> ");
        // Longer than the screen.
        shell.keys("SELECT ?s { ?s foaf:nick ?o }\r");
        shell.wait("PAGED");
        shell.wait("jindou> ");
        // A line is discarded; a query that takes for ever is cancelled; the shell lives.
        shell.keys("SELECT * { \x03");
        shell.wait("jindou> ");
        shell.keys("SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l FILTER(?a != ?g && ?c != ?l) }\r");
        std::thread::sleep(Duration::from_millis(700));
        shell.press_until("\x03", "cancelled");
        shell.wait("jindou> ");
        shell.keys("ASK { <http://e/s1> ?p ?o }\r");
        shell.wait("true");
        shell.wait("jindou> ");
        // What was asked before, from the history.
        shell.keys("\x1b[A\r");
        shell.wait("true");
        shell.wait("jindou> ");
    });
    if talked.is_some() {
        let history = at.join("state/jindou/history");
        let kept = fs::read_to_string(&history).unwrap();
        assert!(
            kept.contains("ASK { <http://e/s1>") && kept.contains("foaf:nick"),
            "{kept}"
        );
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(
            fs::metadata(&history).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}

/// A query that takes longer than any test waits.
const ENDLESS: &str =
    "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?n1 ?o }";

#[test]
fn a_request_to_end_ends_the_shell_in_the_middle_of_a_query() {
    use std::os::unix::process::ExitStatusExt;
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    store(at);
    let mut child = jindou(at)
        .args(["shell", "--store", "s", "--format", "csv"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let text = format!("ASK {{}}\n\n{ENDLESS}\n\nSELECT ?after {{}}\n\n");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    // The first answer: the shell has got as far as the query.
    let mut out = child.stdout.take().unwrap();
    let mut seen = [0; 5];
    out.read_exact(&mut seen).unwrap();
    assert_eq!(&seen, b"true\n");
    std::thread::sleep(Duration::from_millis(300));
    let kill = |signal: &str| {
        let killed = Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status();
        assert!(killed.unwrap().success());
    };
    kill("-TERM");
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(15), "{status}");
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("after"), "{rest}");
}

#[test]
fn an_interrupt_ends_only_the_query() {
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    store(at);
    let mut child = jindou(at)
        .args(["shell", "--store", "s", "--format", "csv"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let text = format!("ASK {{}}\n\n{ENDLESS}\n\nASK {{ ?s ?p 7 }}\n\n");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let mut seen = [0; 5];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut seen)
        .unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(killed.unwrap().success());
    let (out, err) = texts(&child.wait_with_output().unwrap());
    assert!(err.contains("cancelled"), "{err}");
    // The cancelled query has its header and no row.
    assert_eq!(out, "n\ntrue\n");
}

#[test]
fn an_endless_line_is_refused() {
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    store(at);
    let o = shell(at, &[], ".read /dev/zero\nASK { ?s ?p 7 }\n");
    let (out, err) = texts(&o);
    assert!(
        err.contains("/dev/zero") && err.contains("longer than 64 MiB"),
        "{err}"
    );
    // What follows is run.
    assert_eq!(out, "true\n");
    assert_eq!(o.status.code(), Some(1));
}
