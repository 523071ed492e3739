//! Runs the commands on a page of the documentation as a reader would, in one shell, one after the other.

use crate::mask::compare;
use crate::page::{Block, Page};
use jindou_testing::copy_folder;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Time limit for all commands of a page, in seconds.
const LIMIT: &str = "300";

/// The port of the server in the pages. If a page has several servers, their ports follow it, and then the ports that
/// they use among themselves.
const PORT: u16 = 7878;
/// Number of these ports, and of the servers that `jindou cluster start` starts in the pages.
const PORTS: u16 = 6;
const SERVERS: u16 = 3;

/// Runs the code blocks of a page, and compares their output with the page.
///
/// # Errors
/// A message with the page's line, for a block that failed (or should have failed) or printed something else.
pub fn run(root: &Path, page: &Page) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let place = folder.path().join("clone");
    copy_folder(&root.join("demo"), &place.join("demo"));
    let release = place.join("target/release");
    fs::create_dir_all(&release).map_err(|e| e.to_string())?;
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_jindou"), release.join("jindou"))
        .map_err(|e| e.to_string())?;

    let blocks: Vec<(usize, &Block)> = page
        .blocks
        .iter()
        .enumerate()
        .filter(|(_, b)| b.language == "sh" && !is(b, "not run"))
        .collect();
    if blocks.is_empty() {
        return Err("no command runs".to_owned());
    }
    if blocks.iter().any(|(_, b)| b.text.contains("curl ")) && !has("curl") {
        println!("skipped: curl is not installed");
        return Ok(());
    }
    let port = free_ports();
    let script = script(&blocks, folder.path(), port);
    let output = Command::new("timeout")
        .args([LIMIT, "bash", "-u", "-c", &script])
        .current_dir(&place)
        .env("PATH", path_with(&release))
        .env("JINDOU_PORT", port.to_string())
        .env("HOME", folder.path())
        .env_remove("JINDOU_STORE")
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("bash: {e}"))?;

    for (n, block) in &blocks {
        let line = block.line;
        let read = |name: &str| fs::read_to_string(folder.path().join(format!("{n}.{name}")));
        let said = read("seen").or_else(|_| read("out")).unwrap_or_default();
        let said = with_ports(&said, port, PORT);
        let status = read("status");
        match (status.as_deref().map(str::trim), is(block, "fails")) {
            (Ok("0"), false) => {}
            (Ok("0"), true) => return Err(format!("line {line}: it should fail:\n{}", block.text)),
            (Ok(_), true) => {}
            _ => {
                let stderr = String::from_utf8_lossy(&output.stderr);
                return Err(format!(
                    "line {line}: failed:\n{}{said}{stderr}",
                    block.text
                ));
            }
        }
        if let Some(next) = page.blocks.get(n + 1).filter(|b| b.language == "text") {
            compare(&next.text, &said)
                .map_err(|e| format!("line {}: of the block of line {line}, {e}", next.line))?;
        }
    }
    Ok(())
}

/// One shell script that runs all blocks. Block N writes its output to `N.out` and its status to `N.status`.
fn script(blocks: &[(usize, &Block)], folder: &Path, port: u16) -> String {
    let folder = folder.display();
    // Servers that are still running are killed when the shell exits.
    let mut script = "trap 'kill $(jobs -p) 2>/dev/null' EXIT\n".to_owned();
    for (n, block) in blocks {
        let text: String = block
            .text
            .lines()
            // The program is already built, and the shell is already in the right folder.
            .filter(|l| !l.starts_with("make") && !l.starts_with("git clone"))
            .map(|l| with_ports(l, PORT, port) + "\n")
            .collect();
        let start = format!("jindou cluster start --port {port} ");
        let text = text.replace("jindou cluster start ", &start);
        let out = format!("{folder}/{n}.out");
        if is(block, "fails") {
            let _ = write!(
                script,
                "( set -e\n{text}) >{out} 2>&1\necho $? >{folder}/{n}.status\n"
            );
        } else {
            let _ = write!(script, "set -e\n{{\n{text}}} >{out} 2>&1\nset +e\n");
            // The script waits until servers have printed their addresses. Output after that does not belong to the
            // block.
            let servers = match (text.contains("jindou serve"), text.contains(&start)) {
                (_, true) => SERVERS,
                (serve, _) => serve.into(),
            };
            if servers > 0 && text.contains('&') {
                let serving = format!("[ \"$(grep -c '^serving' {out})\" -ge {servers} ]");
                let _ = write!(
                    script,
                    "for i in $(seq 300); do {serving} && break; sleep 0.1; done\n\
                     {serving} || exit 1\ncp {out} {folder}/{n}.seen\n"
                );
            }
            let _ = writeln!(script, "echo 0 >{folder}/{n}.status");
        }
    }
    script
}

fn is(block: &Block, mark: &str) -> bool {
    block.mark.as_ref().is_some_and(|m| m.starts_with(mark))
}

fn has(command: &str) -> bool {
    Command::new(command)
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

/// The first of [`PORTS`] consecutive free ports that no other test uses.
fn free_ports() -> u16 {
    loop {
        let drawn: Vec<u16> = (0..PORTS).map(|_| jindou_testing::free_port()).collect();
        if drawn.windows(2).all(|w| w[1] == w[0] + 1) {
            return drawn[0];
        }
    }
}

/// The text with the ports that begin with `from` replaced by those that begin with `to`.
fn with_ports(text: &str, from: u16, to: u16) -> String {
    (0..PORTS).fold(text.to_owned(), |text, i| {
        text.replace(&format!(":{}", from + i), &format!(":{}", to + i))
    })
}

fn path_with(folder: &Path) -> std::ffi::OsString {
    let mut path = folder.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}
