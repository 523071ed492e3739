//! Where settings come from: command line, environment, file, default, in this order; and what is said about mistakes in the file.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

fn run(folder: &Path, variables: &[(&str, &str)], args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_jindou"))
        .current_dir(folder)
        .env_remove("JINDOU_STORE")
        .env_remove("JINDOU_CONFIG")
        .env("HOME", folder)
        .env("XDG_CONFIG_HOME", folder.join("xdg"))
        .envs(variables.iter().copied())
        .args(args)
        .output()
        .unwrap()
}

fn out(o: &Output) -> String {
    let err = String::from_utf8_lossy(&o.stderr);
    assert!(o.status.success(), "{err}");
    String::from_utf8_lossy(&o.stdout).into_owned()
}

fn err(o: &Output) -> String {
    assert!(!o.status.success());
    String::from_utf8_lossy(&o.stderr).into_owned()
}

/// Stores `a`, `b` and `c`, each with its name.
fn stores(folder: &Path) {
    for name in ["a", "b", "c"] {
        fs::write(
            folder.join("d.nt"),
            format!("<http://e/s> <http://e/p> \"{name}\" .\n"),
        )
        .unwrap();
        out(&run(folder, &[], &["load", "-q", "--store", name, "d.nt"]));
    }
}

#[test]
fn option_then_environment_then_file_then_default() {
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    stores(at);
    fs::create_dir_all(at.join("xdg/jindou")).unwrap();
    let ask = |variables: &[(&str, &str)], more: &[&str]| {
        let args = [&["query", "SELECT ?o { ?s ?p ?o }"][..], more].concat();
        out(&run(at, variables, &args))
            .lines()
            .nth(1)
            .unwrap()
            .to_owned()
    };
    let o = run(at, &[], &["query", "ASK {}"]);
    assert!(err(&o).contains("--store DIR"));
    fs::write(at.join("xdg/jindou/config.toml"), "store = 'c'\n").unwrap();
    assert_eq!(ask(&[], &[]), "\"c\"");
    fs::write(at.join("jindou.toml"), "store = 'b' # this one\n").unwrap();
    assert_eq!(ask(&[("JINDOU_CONFIG", "jindou.toml")], &[]), "\"b\"");
    assert_eq!(ask(&[("JINDOU_CONFIG", ".")], &[]), "\"b\"");
    assert_eq!(ask(&[], &["--config", "jindou.toml"]), "\"b\"");
    assert_eq!(
        ask(&[("JINDOU_STORE", "a")], &["--config=jindou.toml"]),
        "\"a\""
    );
    assert_eq!(ask(&[("JINDOU_STORE", "a")], &["--store", "b"]), "\"b\"");
    // Empty: no file at all.
    let o = run(at, &[("JINDOU_CONFIG", "")], &["query", "ASK {}"]);
    assert!(err(&o).contains("--store DIR"));
    let o = run(
        at,
        &[("JINDOU_CONFIG", "nowhere.toml")],
        &["query", "ASK {}"],
    );
    assert!(err(&o).contains("nowhere.toml"));
    // A load takes its place from there, too, and `--into` may stand alongside it.
    let load = ["load", "-q", "d.nt"];
    assert!(err(&run(at, &[("JINDOU_STORE", "a")], &load)).contains("a store already exists at a"));
    out(&run(at, &[("JINDOU_STORE", "new")], &load));
    assert!(at.join("new/manifest.jd").exists());
    out(&run(
        at,
        &[("JINDOU_STORE", "new")],
        &["load", "-q", "--into", "a", "d.nt"],
    ));
    // No other command asks for a store that the file names.
    for args in [
        &["check"][..],
        &["info"],
        &["dump", "-q"],
        &["merge"],
        &["backup", "--to", "backups"],
        &["backup", "--to", "backups", "--list"],
        &["update", "INSERT DATA { <http://e/s> <http://e/p> 'b' }"],
    ] {
        out(&run(at, &[("JINDOU_CONFIG", "jindou.toml")], args));
    }
    // Settings of one command, flags and lists.
    fs::write(
        at.join("jindou.toml"),
        "store = 'b'\nno-prefixes = true\nservice-allow = ['example.org', 'localhost:81']\n[query]\nformat = 'csv'\nstore = 'a'\n",
    )
    .unwrap();
    let o = run(
        at,
        &[],
        &[
            "--config",
            "jindou.toml",
            "query",
            "SELECT ?o { ?s ?p ?o } ORDER BY ?o",
        ],
    );
    assert_eq!(out(&o), "o\r\na\r\nc\r\n");
    let o = run(
        at,
        &[],
        &["--config", "jindou.toml", "query", "ASK { ?s foaf:p 1 }"],
    );
    assert!(err(&o).contains("foaf"));
    let variables = [("JINDOU_NO_PREFIXES", "false")];
    out(&run(
        at,
        &variables,
        &["--config", "jindou.toml", "query", "ASK { ?s foaf:p 1 }"],
    ));
}

#[test]
fn settings_are_shown_with_where_they_come_from() {
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    fs::write(
        at.join("j.toml"),
        "memory = '2G'\ntoken = 'secret token'\n\n[serve]\nport = 81\n",
    )
    .unwrap();
    fs::set_permissions(at.join("j.toml"), fs::Permissions::from_mode(0o600)).unwrap();
    let variables = [
        ("JINDOU_CONFIG", "j.toml"),
        ("JINDOU_THREADS", "3"),
        ("JINDOU_HOST", "localhost"),
    ];
    let text = out(&run(at, &variables, &["settings"]));
    assert!(!text.contains("secret"), "{text}");
    let json = out(&run(at, &variables, &["settings", "--json", "--all"]));
    assert!(!json.contains("secret"), "{json}");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["file"], "j.toml");
    let of = |command: Option<&str>, setting: &str| {
        let all = json["settings"].as_array().unwrap();
        let found = all
            .iter()
            .find(|s| s["command"].as_str() == command && s["setting"] == setting);
        let found = found.unwrap_or_else(|| panic!("{setting}"));
        (
            found["value"].as_str().map(str::to_owned),
            found["from"].as_str().unwrap().to_owned(),
        )
    };
    let is = |found: (Option<String>, String), value: &str, from: &str| {
        assert_eq!(found, (Some(value.to_owned()), from.to_owned()));
    };
    is(of(None, "memory"), "2G", "j.toml:1");
    is(of(None, "threads"), "3", "environment JINDOU_THREADS");
    is(of(None, "verify"), "eager", "default");
    is(of(Some("serve"), "port"), "81", "j.toml:5");
    is(
        of(Some("serve"), "host"),
        "localhost",
        "environment JINDOU_HOST",
    );
    is(of(Some("serve"), "heavy-queue"), "1024", "default");
}

#[test]
fn mistakes_in_the_file_are_named_with_their_line() {
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    for (text, line, words) in [
        (
            "memroy = '1G'\n",
            1,
            &["memroy", "did you mean memory?"][..],
        ),
        ("\n\nport = 1\n", 3, &["[serve]"]),
        ("[serve]\nprot = 1\n", 2, &["prot", "did you mean port?"]),
        ("[sevre]\nport = 1\n", 1, &["sevre", "[serve]"]),
        ("[serve]\nport = 70000\n", 2, &["70000"]),
        ("memory = 'much'\n", 1, &["much"]),
        ("verify = 'often'\n", 1, &["often"]),
        ("no-prefixes = 'perhaps'\n", 1, &["true or false"]),
        ("threads = [1, 2]\n", 1, &["array"]),
        ("threads = 0\n", 1, &["from 1 to 4096"]),
        ("threads = 100000\n", 1, &["from 1 to 4096"]),
        ("a = 1\na = 2\n", 2, &["duplicate"]),
        ("store = 'x\n", 1, &[]),
        ("\nreplace = true\n", 2, &["applies to a single call"]),
        ("[load]\ninto = 'x'\n", 2, &["applies to a single call"]),
        ("[bench]\nx = 1\n", 1, &["no command bench"]),
        ("token = 't'\n", 1, &["chmod 600"]),
    ] {
        fs::write(at.join("j.toml"), text).unwrap();
        fs::set_permissions(at.join("j.toml"), fs::Permissions::from_mode(0o644)).unwrap();
        let e = err(&run(at, &[("JINDOU_CONFIG", "j.toml")], &["settings"]));
        assert!(e.contains(&format!("j.toml:{line}: ")), "{text}: {e}");
        for word in words {
            assert!(e.contains(word), "{text}: no '{word}' in {e}");
        }
        assert_eq!(e.lines().count(), 1, "{text}: {e}");
    }
}

#[test]
fn files_of_settings_end_and_names_are_bytes() {
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    let e = err(&run(at, &[], &["--config", "/dev/zero", "settings"]));
    assert!(e.contains("/dev/zero: too long"), "{e}");
    // An argument that is not UTF-8 does not hide a --config that follows it.
    let odd = OsStr::from_bytes(b"odd-\xff.toml");
    fs::write(at.join(odd), "memory = '2G'\n").unwrap();
    for config in [b"--config=odd-\xff.toml".as_slice(), b"--config"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jindou"));
        command.current_dir(at).env("HOME", at).arg("settings");
        command.arg(OsStr::from_bytes(config));
        if config == b"--config" {
            command.arg(odd);
        }
        let text = out(&command.output().unwrap());
        assert!(text.contains("2G"), "{text}");
    }
    let odd = OsStr::from_bytes(b"\xff");
    let text = Command::new(env!("CARGO_BIN_EXE_jindou"))
        .current_dir(at)
        .env("HOME", at)
        .env("JINDOU_STORE", odd)
        .arg("settings")
        .output();
    assert!(out(&text.unwrap()).contains("environment JINDOU_STORE"));
}

#[test]
fn a_full_disk_is_an_error_and_no_panic() {
    let dir = tempfile::tempdir().unwrap();
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let o = Command::new(env!("CARGO_BIN_EXE_jindou"))
        .current_dir(dir.path())
        .env("HOME", dir.path())
        .arg("settings")
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(o.status.code(), Some(1));
    assert!(err(&o).contains("cannot write to standard output"));
}

#[test]
fn a_bad_value_of_the_environment_names_its_variable() {
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    let bad = [("JINDOU_TIMEOUT", "soon")];
    let said = err(&run(at, &bad, &["query", "--store", "a", "ASK {}"]));
    assert!(said.contains("JINDOU_TIMEOUT"), "{said}");
    let typed = ["query", "--store", "a", "--timeout", "soon", "ASK {}"];
    let said = err(&run(at, &bad, &typed));
    assert!(!said.contains("JINDOU_TIMEOUT"), "{said}");
    let serve = [("JINDOU_PORT", "http")];
    let said = err(&run(at, &serve, &["serve", "--store", "a"]));
    assert!(said.contains("JINDOU_PORT"), "{said}");
}
