//! `jindou shell` at a terminal (made by the program `script`, if it is installed), and its handling of Ctrl-C.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn store(folder: &Path) {
    let mut text =
        String::from("@prefix foaf: <http://xmlns.com/foaf/0.1/> . @prefix e: <http://e/> .\n");
    for i in 0..300 {
        text.push_str(&format!("e:s{i} foaf:nick \"n{i}\" ; e:n {i} .\n"));
    }
    fs::write(folder.join("d.ttl"), text).unwrap();
    super::run::good(folder, &["load", "-q", "--store", "s", "d.ttl"]);
}

fn jindou(folder: &Path) -> Command {
    let mut c = super::run::jindou(folder);
    c.env("XDG_STATE_HOME", folder.join("state"));
    c
}

/// Runs the shell at a terminal. `talk` presses keys and waits for the shell's output.
fn at_terminal(folder: &Path, more: &str, talk: impl FnOnce(&mut Terminal)) -> Option<String> {
    let mut command = super::run::script(folder, 100, &format!("shell --store s {more}"))?;
    let mut child = command
        .env("HOME", folder)
        .env("XDG_STATE_HOME", folder.join("state"))
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

/// Starts a shell without a terminal that is asked a short query, [`ENDLESS`], and this; and sends it the signal while it
/// runs the long query. Returns the shell and its output after the first answer.
fn signalled(signal: &str, after: &str) -> (Child, String, String) {
    let t = tempfile::tempdir().unwrap();
    store(t.path());
    let mut child = jindou(t.path())
        .args(["shell", "--store", "s", "--format", "csv"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let text = format!("ASK {{}}\n\n{ENDLESS}\n\n{after}\n\n");
    let mut keys = child.stdin.take().unwrap();
    keys.write_all(text.as_bytes()).unwrap();
    drop(keys);
    // The first answer shows that the shell has reached the long query.
    let mut out = child.stdout.take().unwrap();
    let mut seen = [0; 5];
    out.read_exact(&mut seen).unwrap();
    assert_eq!(&seen, b"true\n");
    std::thread::sleep(Duration::from_millis(300));
    let id = child.id().to_string();
    let killed = Command::new("kill").args([signal, &id]).status();
    assert!(killed.unwrap().success());
    let (mut rest, mut err) = (String::new(), String::new());
    out.read_to_string(&mut rest).unwrap();
    let mut errors = child.stderr.take().unwrap();
    errors.read_to_string(&mut err).unwrap();
    assert!(!err.contains("panicked"), "{err}");
    (child, rest.replace('\r', ""), err)
}

#[test]
fn a_request_to_end_ends_the_shell_in_the_middle_of_a_query() {
    use std::os::unix::process::ExitStatusExt;
    let (mut child, rest, _) = signalled("-TERM", "SELECT ?after {}");
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(15), "{status}");
    assert!(!rest.contains("after"), "{rest}");
}

#[test]
fn an_interrupt_ends_only_the_query() {
    let (mut child, rest, err) = signalled("-INT", "ASK { ?s ?p 7 }");
    child.wait().unwrap();
    assert!(err.contains("cancelled"), "{err}");
    // Of the cancelled query's answer, the header was written but no row.
    assert_eq!(rest, "n\ntrue\n");
}
