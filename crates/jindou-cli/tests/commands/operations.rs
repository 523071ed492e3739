//! Commands for operators: backups, health checks, manual pages, logs in JSON.

use super::run::{bad, good, jindou, run, writes};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A server's process, which is killed when this value is dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server that logs JSON, and returns the port from its log.
fn serve(folder: &Path, args: &[&str], variables: &[(&str, &str)]) -> (Server, u16) {
    let child = jindou(folder)
        .args(["serve", "--port", "0", "--log-format", "json"])
        .args(args)
        .envs(variables.iter().copied())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut server = Server(child);
    let mut lines = BufReader::new(server.0.stderr.take().unwrap());
    let mut line = String::new();
    loop {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "it ended");
        let json: serde_json::Value = serde_json::from_str(&line).expect(&line);
        let message = json["fields"]["message"].as_str().unwrap_or_default();
        if let Some((_, at)) = message.split_once("://") {
            let port = at.split('/').next().unwrap().rsplit_once(':').unwrap().1;
            let port = port.parse().unwrap();
            std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
            return (server, port);
        }
    }
}

fn load(folder: &Path) {
    fs::write(folder.join("d.ttl"), "<http://e/a> <http://e/p> 1 .\n").unwrap();
    good(folder, &["load", "-q", "s", "d.ttl"]);
}

#[test]
fn a_probe_asks_the_server_that_the_settings_describe() {
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    load(at);
    let made = rcgen::generate_simple_self_signed(vec!["elsewhere.example".into()]).unwrap();
    fs::write(at.join("cert.pem"), made.cert.pem()).unwrap();
    fs::write(at.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let tls = [
        ("JINDOU_TLS_CERT", "cert.pem"),
        ("JINDOU_TLS_KEY", "key.pem"),
    ];
    for variables in [&[][..], &tls] {
        let (_server, port) = serve(at, &["s"], variables);
        let port = port.to_string();
        let probe = |more: &[(&str, &str)], args: &[&str]| {
            let all = variables.iter().chain(more).copied();
            let mut command = jindou(at);
            command.arg("health").args(args).envs(all).output().unwrap()
        };
        for host in ["127.0.0.1", "0.0.0.0"] {
            let o = probe(&[("JINDOU_PORT", &port), ("JINDOU_HOST", host)], &[]);
            assert!(
                o.status.success(),
                "{host}: {}",
                String::from_utf8_lossy(&o.stderr)
            );
        }
        let settings = format!("[serve]\nport = {port}\n");
        fs::write(at.join("settings.toml"), settings).unwrap();
        let o = probe(&[], &["--config", "settings.toml"]);
        assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
        let o = probe(&[("JINDOU_PORT", "1")], &[]);
        assert!(!o.status.success());
        assert!(String::from_utf8_lossy(&o.stderr).contains("127.0.0.1:1/ready"));
    }
    // If the server's URL is given, its certificate is verified.
    let (_server, port) = serve(at, &["s"], &tls);
    let err = bad(at, &["health", &format!("https://127.0.0.1:{port}")]);
    assert!(err.contains("certificate"), "{err}");
}

#[test]
fn manual_pages_describe_each_option() {
    let t = tempfile::tempdir().unwrap();
    good(t.path(), &["man", "pages"]);
    let mut options = 0;
    for page in fs::read_dir(t.path().join("pages")).unwrap() {
        let page = page.unwrap().path();
        let text = fs::read_to_string(&page).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for at in (0..lines.len()).filter(|&n| lines[n] == ".TP") {
            let described = lines.get(at + 2).copied().unwrap_or_default();
            let is_text = !described.is_empty() && !described.starts_with('.');
            assert!(is_text, "{}: {}", page.display(), lines[at + 1]);
            options += 1;
        }
    }
    assert!(options > 300, "{options}");
}

#[test]
fn a_log_for_collectors_has_no_other_line() {
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    let o = run(at, &["serve", "none", "--log-format", "json"]);
    assert!(!o.status.success() && o.stdout.is_empty());
    let err = String::from_utf8(o.stderr).unwrap();
    let lines: Vec<serde_json::Value> = err
        .lines()
        .map(|l| serde_json::from_str(l).expect(l))
        .collect();
    let last = lines.last().unwrap();
    assert_eq!(last["level"], "ERROR");
    let message = last["fields"]["message"].as_str().unwrap();
    assert!(message.contains("no store at none"), "{message}");
    load(at);
    let mut child = jindou(at)
        .args(["serve", "s", "--port", "0", "--log-format", "json"])
        .args(["--grace", "0s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_secs(1));
    let stopped = Command::new("kill").arg(child.id().to_string()).status();
    assert!(stopped.unwrap().success());
    let _ = child.wait().unwrap();
    let o = child.wait_with_output().unwrap();
    assert!(
        o.stdout.is_empty(),
        "{}",
        String::from_utf8_lossy(&o.stdout)
    );
    let err = String::from_utf8(o.stderr).unwrap();
    assert!(
        err.contains("serving s read-only at http://127.0.0.1:"),
        "{err}"
    );
    for line in err.lines() {
        serde_json::from_str::<serde_json::Value>(line).expect(line);
    }
}

/// `tests/cases/backups.cmd` has the same without another clock.
#[test]
fn the_last_backup_is_restored_although_the_clock_was_set_back() {
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    load(at);
    let back_up = ["backup", "--store", "s", "--to", "backups"];
    good(at, &back_up);
    let insert = "INSERT DATA { <http://e/b> <http://e/p> 2 }";
    good(at, &["update", "--store", "s", insert]);
    let faked = Command::new("faketime")
        .args(["-f", "-1h", env!("CARGO_BIN_EXE_jindou")])
        .args(back_up)
        .current_dir(at)
        .output();
    if !faked.is_ok_and(|o| o.status.success()) {
        println!("without faketime");
        return;
    }
    let list = "backup --to backups --list";
    writes(at, "restore --from backups --store r", 0, &["snapshot 1,"]);
    let all = writes(at, list, 0, &[]);
    let time = |line: &str| {
        let after = line.split(" of ").nth(1).unwrap();
        after.split(": ").next().unwrap().to_owned()
    };
    let times: Vec<String> = all.lines().map(time).collect();
    assert!(times.len() == 2 && times[0] > times[1], "{all}");
    let restore = ["restore", "--from", "backups", "--store", "t", "--at"];
    let o = run(at, &[&restore[..], &[&times[0]]].concat());
    let err = String::from_utf8_lossy(&o.stderr);
    assert!(err.contains("the clock was set back"), "{err}");
    let keep = "backup --store s --to backups --keep 1";
    writes(at, keep, 0, &["removed 2 backups"]);
    assert_eq!(writes(at, list, 0, &[]).lines().count(), 1);
    writes(at, "restore --from backups --store u", 0, &["snapshot 1,"]);
}
