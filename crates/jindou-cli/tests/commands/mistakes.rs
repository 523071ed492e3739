//! A newcomer's mistakes with what is said about them, in a file to be read aloud. `JINDOU_REWRITE=1` writes the file again.

use std::fmt::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

const FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/commands/mistakes/mistakes.txt"
);

/// Puts into a folder what a newcomer's has.
fn furnish(folder: &Path) {
    for (name, text) in [
        (
            "planets.ttl",
            "@prefix : <http://e/> .\n:mars a :Planet ; :moons 2 .\n",
        ),
        ("turtle.nt", "@prefix : <http://e/> .\n:mars :moons 2 .\n"),
        (
            "page.ttl",
            "<!DOCTYPE html>\n<html><body>No data here.</body></html>\n",
        ),
        (
            "xml.ttl",
            "<?xml version=\"1.0\"?>\n<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"/>\n",
        ),
        (
            "bad.nt",
            "<http://e/a> <http://e/p> \"good\" .\n<http://e/a> <http://e/p> bad .\n",
        ),
        ("notes.txt", "<http://e/a> <http://e/p> \"x\" .\n"),
        ("larger.rq", "SELECT * { ?s ?p ?o }\n"),
        ("folder/letter.doc", "Dear reader\n"),
    ] {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let loaded = Command::new(env!("CARGO_BIN_EXE_jindou"))
        .current_dir(folder)
        .args(["load", "-q", "--store", "my.store", "planets.ttl"])
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(loaded.success());
}

#[test]
fn a_newcomers_mistakes_are_answered_with_what_to_do() {
    let t = tempfile::tempdir().unwrap();
    furnish(t.path());
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let program = Path::new(env!("CARGO_BIN_EXE_jindou"));
    let path = format!(
        "{}:{}",
        program.parent().unwrap().display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let file = std::fs::read_to_string(FILE).unwrap();
    let mut written = String::new();
    let mut count = 0;
    for entry in file.split("==== ").skip(1) {
        let (title, rest) = entry.split_once('\n').unwrap();
        let line = rest.lines().next().unwrap();
        let command = line.strip_prefix("$ ").unwrap();
        let o = Command::new("sh")
            .args(["-c", command])
            .current_dir(t.path())
            .env("PATH", &path)
            .env("HOME", t.path())
            .env("PORT", &port)
            .env_remove("JINDOU_STORE")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let mut said = String::from_utf8_lossy(&o.stdout).into_owned();
        said.push_str(&String::from_utf8_lossy(&o.stderr));
        let said = said
            .replace(&t.path().display().to_string(), "FOLDER")
            .replace(&format!("port {port} "), "port 7878 ");
        assert!(!o.status.success(), "{command}: {said}");
        assert!(!said.contains("panicked"), "{command}: {said}");
        let _ = write!(written, "==== {title}\n{line}\n{}\n\n", said.trim_end());
        count += 1;
    }
    if std::env::var_os("JINDOU_REWRITE").is_some() {
        std::fs::write(FILE, &written).unwrap();
    }
    assert!(count >= 30, "{count}");
    assert!(
        file == written,
        "the messages changed; look at them and run again with JINDOU_REWRITE=1:\n{written}"
    );
    // Nothing was made by any of them.
    let mut left: Vec<String> = std::fs::read_dir(t.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    let there = "bad.nt folder larger.rq my.store notes.txt page.ttl planets.ttl turtle.nt xml.ttl";
    assert_eq!(left.join(" "), there);
}
