//! `jindou shell` at a terminal (made by the program `script`, if it is installed), and its handling of Ctrl-C.

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

fn texts(o: &Output) -> (String, String) {
    let [out, err] = [&o.stdout, &o.stderr].map(|b| String::from_utf8_lossy(b).replace('\r', ""));
    assert!(!err.contains("panicked"), "{err}");
    (out, err)
}

/// Runs the shell at a terminal. `talk` presses keys and waits for the shell's output.
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

    /// Waits until the shell has written this text since the last wait.
    fn wait(&mut self, text: &str) {
        let said = self.says(text, Duration::from_secs(60));
        assert!(said, "no '{text}' in {:?}", &self.seen[self.from..]);
    }

    /// Presses keys until the shell writes this text. An interrupt has no effect before the query runs, so it is
    /// repeated.
    fn press_until(&mut self, keys: &str, text: &str) {
        for _ in 0..30 {
            self.keys(keys);
            if self.says(text, Duration::from_secs(2)) {
                return;
            }
        }
        panic!("no '{text}' in {:?}", &self.seen[self.from..]);
    }

    /// Waits until the shell has written this text; false if it has not within `limit`.
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
        // A statement of several lines, in which Tab completes a word.
        shell.keys("SELECT ?o {\r");
        shell.keys("<http://e/s5> foaf:ni\t ?o }\r");
        shell.wait("\"n5\"");
        shell.wait("1 row in");
        shell.wait("jindou> ");
        // An answer that is longer than the screen goes to the pager.
        shell.keys("SELECT ?s { ?s foaf:nick ?o }\r");
        shell.wait("PAGED");
        shell.wait("jindou> ");
        // Ctrl-C discards a line and cancels a long query; the shell keeps running.
        shell.keys("SELECT * { \x03");
        shell.wait("jindou> ");
        shell.keys("SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l FILTER(?a != ?g && ?c != ?l) }\r");
        std::thread::sleep(Duration::from_millis(700));
        shell.press_until("\x03", "cancelled");
        shell.wait("jindou> ");
        shell.keys("ASK { <http://e/s1> ?p ?o }\r");
        shell.wait("true");
        shell.wait("jindou> ");
        // The key Up brings back an earlier query from the history.
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
    // The first answer shows that the shell has reached the long query.
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
    // Of the cancelled query's answer, the header was written but no row.
    assert_eq!(out, "n\ntrue\n");
}
