//! Answers at a terminal, and files that the user may not read or write.

use super::run::{at_terminal, good, jindou, said};
use std::path::Path;

#[test]
fn a_terminal_gets_the_first_rows_and_their_number() {
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    let long = "x".repeat(200);
    let lines = (0..1300).map(|i| format!("<http://e/s{i}> <http://e/p> \"{i} {long}\" .\n"));
    std::fs::write(at.join("d.nt"), lines.collect::<String>()).unwrap();
    good(at, &["load", "-q", "--store", "s", "d.nt"]);
    let all = "query --store s 'SELECT * { ?s ?p ?o }'";
    let Some(text) = at_terminal(at, all) else {
        return;
    };
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2 + 40 + 1, "{text}");
    assert_eq!(lines[42], "1,300 rows (40 shown; --all for the rest)");
    assert!(lines.iter().all(|l| l.chars().count() <= 80), "{text}");
    assert!(lines[2].ends_with('…'), "{text}");
    let text = at_terminal(at, &format!("{all} --all --no-pager")).unwrap();
    assert_eq!(text.lines().count(), 2 + 1300);
    assert!(text.contains(&long));
    let text = at_terminal(at, "query --store s 'SELECT * { <http://e/s1> ?p ?o }'").unwrap();
    assert_eq!(text.lines().last(), Some("1 row"), "{text}");
    let text = at_terminal(at, "query --store s 'ASK { ?s ?p ?o }'").unwrap();
    assert_eq!(text, "true\n");
    let text = at_terminal(at, "query --store s 'CONSTRUCT WHERE { ?s ?p ?o }'").unwrap();
    assert!(
        text.contains("1,300 triples (40 shown; --all for the rest)"),
        "{text}"
    );
    let describe = "query --store s 'PREFIX e: <http://e/> DESCRIBE e:s1'";
    let text = at_terminal(at, describe).unwrap();
    assert!(
        text.starts_with("@prefix e: <http://e/> .\n") && text.contains("e:s1 e:p \"1 "),
        "{text}"
    );
    assert!(
        !good(
            at,
            &[
                "query",
                "--store",
                "s",
                "PREFIX e: <http://e/> DESCRIBE e:s1"
            ]
        )
        .contains("@prefix")
    );
    // With an explicit format, or without a terminal, the whole answer is written.
    let text = at_terminal(at, &format!("{all} --format table")).unwrap();
    assert_eq!(text.lines().count(), 2 + 1300);
    let (out, err) = said(at, &["query", "--store", "s", "SELECT * { ?s ?p ?o }"]);
    assert_eq!((out.lines().count(), err.as_str()), (1301, ""));
}

#[test]
fn what_may_not_be_used_is_named_with_its_owner() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    let mode = |path: &Path, bits| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).unwrap();
    };
    mode(at, 0o755);
    std::fs::write(at.join("d.ttl"), "<http://e/a> <http://e/p> 1 .").unwrap();
    good(at, &["load", "-q", "--store", "a.store", "d.ttl"]);
    std::fs::create_dir(at.join("closed")).unwrap();
    mode(&at.join("closed"), 0o555);
    let is_root = std::fs::metadata(at).unwrap().uid() == 0;
    // As root, the test runs the command as another user. Otherwise it takes away its own permissions.
    mode(&at.join("a.store"), if is_root { 0o700 } else { 0o000 });
    for (args, words) in [
        (
            &["query", "--store", "a.store", "ASK {}"][..],
            "no permission to read a.store (owner ",
        ),
        (
            &["load", "-q", "--store", "closed/b.store", "d.ttl"],
            "no permission to make anything in closed (owner ",
        ),
    ] {
        let mut command = jindou(at);
        command.args(args);
        if is_root {
            command.uid(65534).gid(65534);
        }
        let Ok(o) = command.output() else {
            eprintln!("skipped: another user may not run the program");
            break;
        };
        let err = String::from_utf8_lossy(&o.stderr);
        assert!(
            !o.status.success() && err.contains(words),
            "{args:?}: {err}"
        );
    }
    mode(&at.join("a.store"), 0o755);
    mode(&at.join("closed"), 0o755);
}
