//! The texts that a beginner with the command reads: every subcommand's help, and its answers to arguments that cannot be right.

use super::run::said;
use jindou_parse::write::{TagCase, write_source};
use jindou_workloads::ugly::Ugly;
use std::path::Path;
use std::process::Command;

/// Standard error of a command that fails.
fn bad(folder: &Path, args: &[&str]) -> String {
    let err = super::run::bad(folder, args);
    assert!(!err.contains("SPARQL"), "{args:?}: {err}");
    err
}

/// The names in a help text's list of commands.
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
fn the_version_says_of_what() {
    let folder = tempfile::tempdir().unwrap();
    let (short, _) = said(folder.path(), &["-V"]);
    assert!(
        short.starts_with("jindou 0.") && short.contains("commit"),
        "{short}"
    );
    assert_eq!(short.lines().count(), 1);
    let (long, _) = said(folder.path(), &["--version"]);
    for word in ["commit", "TLS", "profile", "store format"] {
        assert!(long.contains(word), "{long}");
    }
}

#[test]
fn counts_have_their_number_and_nothing_is_not_divided() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("none.nt"), "").unwrap();
    std::fs::write(
        at.join("one.nt"),
        "<http://e/a> <http://e/p> <http://e/o> .\n",
    )
    .unwrap();
    let (out, _) = said(at, &["load", "--quiet", "--store", "s", "none.nt"]);
    assert!(out.contains("0 quads") && !out.contains("a quad"), "{out}");
    let (out, _) = said(at, &["info", "--store", "s"]);
    assert!(out.contains("bytes, - a quad"), "{out}");
    let (out, _) = said(at, &["load", "--quiet", "--into", "s", "one.nt"]);
    assert!(out.contains("1 quad added"), "{out}");
    // As of now, though the base has nothing.
    let (out, _) = said(at, &["info", "--store", "s"]);
    let quads = out.lines().find(|l| l.starts_with("quads ")).unwrap();
    assert!(quads.contains(" 1 (0 in 0 named graphs)"), "{quads}");
    assert!(out.contains("<http://e/p>"), "{out}");
    let (json, _) = said(at, &["info", "--json", "--store", "s"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["quads"], 1);
    assert_eq!(json["quads_in_files"], 0);
    assert_eq!(json["predicates"][0]["edges"], 1);
    let (out, _) = said(
        at,
        &["load", "--quiet", "--replace", "--store", "s", "one.nt"],
    );
    assert!(out.contains("1 quad ("), "{out}");
    std::fs::create_dir(at.join("empty")).unwrap();
    std::fs::create_dir(at.join("foreign")).unwrap();
    std::fs::write(at.join("foreign/a.txt"), "x").unwrap();
    for place in ["empty", "foreign"] {
        let err = bad(at, &["load", "--quiet", "--store", "t", place]);
        assert!(err.contains("nothing to load"), "{err}");
    }
}

#[test]
fn places_that_are_not_there_are_named_and_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for args in [
        &["query", "--store", "nope", "ASK {}"][..],
        &["update", "--store", "nope", "CLEAR ALL"],
        &["info", "--store", "nope"],
        &["check", "--store", "nope"],
        &["merge", "--store", "nope"],
        &["recluster", "--store", "nope"],
        &["serve", "--store", "nope"],
        &["backup", "--store", "nope", "--to", "b"],
        &["backup", "--list", "--to", "nope"],
        &["restore", "--from", "nope", "--store", "s"],
        &["bench", "updates", "--store", "nope"],
        &["bench", "merge", "--store", "nope"],
        &["bench", "live", "--store", "nope", "-n", "1"],
        &["bench", "stream", "--store", "nope"],
        &["bench", "operators", "--store", "nope"],
    ] {
        let err = bad(at, args);
        assert!(err.contains("nope"), "{args:?}: {err}");
        let named = ["no store at", "no backup folder at"];
        assert!(named.iter().any(|n| err.contains(n)), "{args:?}: {err}");
        assert_eq!(std::fs::read_dir(at).unwrap().count(), 0, "{args:?}");
    }
}

#[test]
fn garbage_is_answered_about_what_it_stands_for() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (args, words) in [
        (
            &["restore", "--from", "b", "--store", "s", "--at", "garbage"][..],
            &["garbage", "not a time", "2026-11-22T07:42:15Z"][..],
        ),
        (&["load", "--store", "s", "nope.nt"], &["nope.nt"]),
        (
            &["load", "--store", "s", "--errors", "e", "x.nt"],
            &["--lenient"],
        ),
        (&["generate", "lubm", "-n", "x"], &["--universities"]),
        (
            &["query", "--store", "s", "--verify", "x", "ASK {}"],
            &["eager", "background", "off"],
        ),
        (&["serve", "--store", "s", "--port", "x"], &["--port"]),
        (&["bench", "papers", "--table", "8"], &["table 8 needs"]),
    ] {
        let err = bad(at, args);
        for word in words {
            assert!(err.contains(word), "{args:?}: no '{word}' in: {err}");
        }
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
fn settings_come_from_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(
        at.join("one.nt"),
        "<http://e/a> <http://e/p> <http://e/o> .\n",
    )
    .unwrap();
    said(at, &["load", "--quiet", "--store", "s", "one.nt"]);
    let with = |variables: &[(&str, &str)], args: &[&str]| {
        let o = Command::new(env!("CARGO_BIN_EXE_jindou"))
            .current_dir(at)
            .envs(variables.iter().copied())
            .args(args)
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&o.stderr).into_owned();
        (
            o.status.success(),
            String::from_utf8_lossy(&o.stdout).into_owned() + &err,
        )
    };
    let all = [
        ("JINDOU_STORE", "s"),
        ("JINDOU_MEMORY", "64M"),
        ("JINDOU_THREADS", "1"),
    ];
    let (ok, text) = with(&all, &["query", "ASK { ?s ?p ?o }"]);
    assert!(ok && text.contains("true"), "{text}");
    let (ok, text) = with(
        &[("JINDOU_STORE", "nope")],
        &["query", "--store", "s", "ASK { ?s ?p ?o }"],
    );
    assert!(
        ok && text.contains("true"),
        "the option comes first: {text}"
    );
    let (ok, text) = with(&[("JINDOU_STORE", "s"), ("JINDOU_PORT", "x")], &["serve"]);
    assert!(!ok && text.contains("--port"), "{text}");
    let (help, _) = said(at, &["serve", "--help"]);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for name in [
        "STORE",
        "HOST",
        "PORT",
        "MEMORY",
        "THREADS",
        "TIMEOUT",
        "TOKEN_FILE",
        "LOG",
        "VERIFY",
    ] {
        assert!(
            help.contains(&format!("[env: JINDOU_{name}")),
            "no JINDOU_{name}"
        );
    }
}

#[test]
fn a_lenient_load_says_what_it_lost_and_a_large_one_is_folded_in() {
    use std::fmt::Write as _;
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut text = String::new();
    for i in 0..30 {
        writeln!(text, "<http://e/s{i}> <http://e/p> <relative> .").unwrap();
        writeln!(text, "<http://e/s{i}> <http://e/p> \"{i}\" .").unwrap();
    }
    std::fs::write(at.join("bad.nt"), text).unwrap();
    let (_, err) = said(
        at,
        &[
            "load",
            "--quiet",
            "--lenient",
            "--errors",
            "all.txt",
            "--store",
            "s",
            "bad.nt",
        ],
    );
    assert!(
        err.contains("skipped 30 statements") && err.contains("all.txt"),
        "{err}"
    );
    assert_eq!(err.matches("  bad.nt:").count(), 10, "{err}");
    let all = std::fs::read_to_string(at.join("all.txt")).unwrap();
    assert_eq!(
        all.lines().filter(|l| l.starts_with("bad.nt")).count(),
        30,
        "{all}"
    );
    let mut text = String::new();
    for i in 0..12_000 {
        writeln!(text, "<http://e/t{i}> <http://e/q> \"{i}\" .").unwrap();
    }
    std::fs::write(at.join("many.nt"), text).unwrap();
    let (out, _) = said(at, &["load", "--quiet", "--into", "s", "many.nt"]);
    assert!(
        out.contains("12000 quads added") && out.contains("merged snapshot 1"),
        "{out}"
    );
    let (out, err) = said(at, &["info", "--store", "s"]);
    assert!(!out.contains("in the log"), "{out}{err}");
    let (out, _) = said(
        at,
        &["load", "--quiet", "--into", "s", "bad.nt", "--lenient"],
    );
    assert!(!out.contains("merged"), "{out}");
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
