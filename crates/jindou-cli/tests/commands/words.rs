//! Texts for beginners: the help of every command, and the errors for arguments that cannot be right.

use super::run::said;
use jindou_parse::write::{TagCase, write_source};
use jindou_workloads::ugly::Ugly;
use std::path::Path;
use std::process::Command;

/// Runs a command that must fail. Returns its standard error.
fn bad(folder: &Path, args: &[&str]) -> String {
    let err = super::run::bad(folder, args);
    assert!(!err.contains("SPARQL"), "{args:?}: {err}");
    err
}

/// The names of the commands that a help text lists.
fn commands(help: &str) -> Vec<String> {
    help.lines()
        .skip_while(|l| *l != "Commands:")
        .skip(1)
        .take_while(|l| !l.trim().is_empty())
        .filter(|l| l.starts_with("  ") && !l.starts_with("   "))
        .filter_map(|l| l.split_whitespace().next().map(str::to_owned))
        .filter(|n| n != "help")
        .collect()
}

#[test]
fn help_fits_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let mut pending = vec![Vec::<String>::new()];
    let mut seen = 0;
    while let Some(path) = pending.pop() {
        for how in ["-h", "--help"] {
            let mut args: Vec<&str> = path.iter().map(String::as_str).collect();
            args.push(how);
            let (help, _) = said(folder.path(), &args);
            for line in help.lines() {
                assert!(line.chars().count() <= 100, "{args:?}: {line}");
            }
            if how == "-h" {
                for name in commands(&help) {
                    let mut more = path.clone();
                    more.push(name);
                    pending.push(more);
                }
            }
        }
        seen += 1;
    }
    assert!(seen > 30, "{seen}");
}

#[test]
fn benchmarks_name_places_that_are_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for args in [
        &["bench", "updates", "--store", "nope"][..],
        &["bench", "merge", "--store", "nope"],
        &["bench", "live", "--store", "nope", "-n", "1"],
        &["bench", "stream", "--store", "nope"],
        &["bench", "operators", "--store", "nope"],
    ] {
        let err = bad(at, args);
        assert!(err.contains("nope"), "{args:?}: {err}");
        assert!(err.contains("no store at"), "{args:?}: {err}");
        assert_eq!(std::fs::read_dir(at).unwrap().count(), 0, "{args:?}");
    }
}

#[test]
fn arguments_of_the_laboratory_are_answered_as_the_commands_are() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (args, words) in [
        (&["generate", "lubm", "-n", "x"][..], "--universities"),
        (&["bench", "papers", "--table", "8"], "table 8 needs"),
    ] {
        let err = bad(at, args);
        assert!(err.contains(words), "{args:?}: no '{words}' in: {err}");
    }
}

#[test]
fn engines_are_where_both_names_of_the_option_say() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["--engines", "--into"] {
        let (out, _) = said(folder.path(), &["peers", "list", name, "here"]);
        assert!(out.contains("oxigraph"), "{out}");
        let (help, _) = said(folder.path(), &["peers", "list", "--help"]);
        assert!(
            help.contains("--engines") && !help.contains("--into"),
            "{help}"
        );
    }
}

#[test]
fn a_reader_that_leaves_ends_a_command_quietly() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut file = std::fs::File::create(at.join("ugly.nq")).unwrap();
    write_source(&Ugly::new(2000, 0), TagCase::Mixed, &mut file).unwrap();
    said(at, &["load", "--quiet", "--store", "s", "ugly.nq"]);
    for args in [
        &["info", "--store", "s", "--top", "1000"][..],
        &[
            "query",
            "--store",
            "s",
            "--explain",
            "SELECT * { ?s ?p ?o }",
        ],
        &["check", "--store", "s"],
        &["peers", "list"],
        &["backup", "--list", "--to", "s"],
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_jindou"))
            .current_dir(at)
            .args(args)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let o = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&o.stderr);
        assert!(o.status.success() && err.is_empty(), "{args:?}: {err}");
    }
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (help, _) = said(at, &["-h"]);
    let commands = commands(&help);
    assert!(commands.len() > 15, "{commands:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (script, _) = said(at, &["completions", shell]);
        for name in &commands {
            assert!(script.contains(name.as_str()), "{shell}: {name}");
        }
    }
    let (script, _) = said(at, &["completions", "bash"]);
    std::fs::write(at.join("jindou.bash"), script).unwrap();
    let o = Command::new("bash")
        .arg("-n")
        .arg(at.join("jindou.bash"))
        .output()
        .unwrap();
    assert!(o.status.success() && o.stderr.is_empty());
    said(at, &["man", "pages"]);
    for name in &commands {
        let page = std::fs::read_to_string(at.join(format!("pages/jindou-{name}.1"))).unwrap();
        assert!(
            page.starts_with(".ie") && page.contains(".SH NAME"),
            "{name}: {page}"
        );
    }
}
