//! Texts for beginners: the help, the completions and the manual page of every command.

use super::run::said;
use std::process::Command;

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
