//! Runs test cases that are text: files `tests/cases/*.cmd` contain commands and their expected output. docs/testing.md
//! describes the format. `JINDOU_CASES=FILE` or `FILE:LINE` selects cases. `JINDOU_REWRITE=1` replaces expected outputs
//! that contain neither `...` nor `[..]` by the actual ones.

use jindou_testing::Served;
use jindou_testing::cases::{case_files, failures};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases");

/// A command with its expected results.
#[derive(Clone, Debug, Default)]
struct Step {
    /// Number of the command's line, from 0.
    at: usize,
    command: String,
    /// Name of the server that the command starts. The server runs until the end of the case, or until another one is
    /// started with the same name.
    server: Option<String>,
    /// `?` and a number, or `? fails`; without it the command must succeed.
    status: Option<String>,
    /// The expected output: all of standard output, then all of standard error.
    output: Vec<String>,
    /// Number of the line after the output.
    end: usize,
}

/// Files that are written first, and the commands that are run then.
#[derive(Clone, Debug, Default)]
struct Case {
    name: String,
    line: usize,
    files: Vec<(String, String)>,
    steps: Vec<Step>,
}

/// A file of cases. Each case runs in a copy of the folder that the case `setup` makes.
struct File {
    path: PathBuf,
    text: String,
    setup: Case,
    cases: Vec<Case>,
    /// True if no case may create or remove a file.
    is_unchanged: bool,
}

/// The part of a case that is being read.
enum Part {
    None,
    File,
    Output,
}

impl File {
    fn read(path: PathBuf) -> Result<Self, String> {
        let text = fs::read_to_string(&path).map_err(|e| e.to_string())?;
        let mut all = vec![Case::default()];
        let (mut part, mut is_unchanged) = (Part::None, false);
        for (n, line) in text.lines().enumerate() {
            let wrong = || format!("line {}: not understood: {line}", n + 1);
            let case = all.last_mut().unwrap();
            if let Some(name) = line.strip_prefix("== ") {
                all.push(Case {
                    name: name.to_owned(),
                    line: n + 1,
                    ..Case::default()
                });
                part = Part::None;
            } else if let Some(name) = line.strip_prefix("-- file ") {
                case.files.push((name.to_owned(), String::new()));
                part = Part::File;
            } else if let Some((server, command)) = command(line) {
                case.steps.push(Step {
                    at: n,
                    command,
                    server,
                    end: n + 1,
                    ..Step::default()
                });
                part = Part::Output;
            } else {
                match part {
                    Part::None if line.is_empty() || line.starts_with('#') => {}
                    Part::None if line == "unchanged" => is_unchanged = true,
                    Part::None => return Err(wrong()),
                    Part::File => {
                        let text = &mut case.files.last_mut().unwrap().1;
                        text.push_str(line);
                        text.push('\n');
                    }
                    Part::Output if line.starts_with("# ") => {}
                    Part::Output => {
                        let step = case.steps.last_mut().unwrap();
                        let is_first = step.output.is_empty();
                        if let Some(more) = line.strip_prefix("> ").filter(|_| is_first) {
                            step.command += &format!("\n{more}");
                        } else if let Some(s) = line.strip_prefix("? ").filter(|_| is_first) {
                            step.status = Some(s.to_owned());
                        } else {
                            step.output.push(line.to_owned());
                        }
                        step.end = n + 1;
                    }
                }
            }
        }
        // Empty lines before the next case do not belong to the output.
        for step in all.iter_mut().flat_map(|c| &mut c.steps) {
            while step.output.last().is_some_and(String::is_empty) {
                step.output.pop();
                step.end -= 1;
            }
        }
        let setup = all.remove(0);
        match all.iter().find(|c| c.steps.is_empty()) {
            Some(case) => Err(format!("line {}: {} checks nothing", case.line, case.name)),
            None => Ok(Self {
                path,
                text,
                setup,
                cases: all,
                is_unchanged,
            }),
        }
    }
}

/// The command in a line `$ COMMAND` or `& NAME COMMAND`, and the name of the server that it starts.
fn command(line: &str) -> Option<(Option<String>, String)> {
    if let Some(command) = line.strip_prefix("$ ") {
        return Some((None, command.to_owned()));
    }
    let (name, command) = line.strip_prefix("& ")?.split_once(' ')?;
    Some((Some(name.to_owned()), command.to_owned()))
}

/// True if a text matches an expected line, in which `[..]` matches any characters.
fn fits(line: &str, expected: &str) -> bool {
    let mut parts = expected.split("[..]");
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// True if the lines match the expected ones, among which `...` matches any lines.
fn all_fit(lines: &[&str], expected: &[String]) -> bool {
    match expected.split_first() {
        None => lines.is_empty(),
        Some((first, rest)) if first == "..." => {
            (0..=lines.len()).any(|n| all_fit(&lines[n..], rest))
        }
        Some((first, rest)) => {
            let line = lines.split_first();
            line.is_some_and(|(line, others)| fits(line, first) && all_fit(others, rest))
        }
    }
}

/// The servers that a case has started, each by the name of the shell variable that holds its URL.
type Servers = BTreeMap<String, Served>;

/// The folder in which commands run, and a port that is in use.
struct World<'a> {
    folder: &'a Path,
    port: u16,
}

impl World<'_> {
    /// A shell that runs the command, with the servers' addresses in variables.
    fn shell(&self, command: &str, servers: &Servers) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_jindou")).parent().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let urls = servers
            .iter()
            .map(|(name, served)| (name, format!("http://{}", served.address)));
        let mut shell = Command::new("sh");
        shell
            .args(["-c", command])
            .envs(urls)
            .current_dir(self.folder)
            .env("PATH", format!("{}:{path}", program.display()))
            .env("HOME", self.folder)
            .env("PORT", self.port.to_string())
            // Cases run side by side: a server without --port takes any free port.
            .env("JINDOU_PORT", "0")
            .env("NO_PROXY", "*")
            .env("no_proxy", "*")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("JINDOU_STORE")
            .env_remove("JINDOU_CONFIG")
            .stdin(Stdio::null());
        shell
    }

    /// Status and output of a command. In the output, the folder's path is replaced by `FOLDER` and the port by `PORT`.
    fn run(&self, command: &str, servers: &Servers) -> (Option<i32>, String) {
        let o = self.shell(command, servers).output().unwrap();
        let [out, err] = [&o.stdout, &o.stderr].map(|b| String::from_utf8_lossy(b).into_owned());
        let said = (out + &err)
            .replace('\r', "")
            .replace(&self.folder.display().to_string(), "FOLDER")
            .replace(&format!("port {} ", self.port), "port PORT ");
        (o.status.code(), said)
    }

    /// Writes the case's files and runs its steps. The error is the step that failed, with the difference.
    fn make<'c>(&self, case: &'c Case) -> Result<(), (&'c Step, String)> {
        for (name, text) in &case.files {
            let path = self.folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mut servers = Servers::new();
        for step in &case.steps {
            if let Some(name) = &step.server {
                servers.remove(name);
                let command = format!("exec {}", step.command);
                let mut shell = self.shell(&command, &servers);
                let served = Served::try_start(shell.stderr(Stdio::null()));
                let served = served.map_err(|e| (step, format!("{command}\n{e}")))?;
                servers.insert(name.clone(), served);
                continue;
            }
            let (status, said) = self.run(&step.command, &servers);
            let is_status = match step.status.as_deref() {
                None => status == Some(0),
                Some("fails") => status != Some(0),
                Some(number) => status.map(|s| s.to_string()).as_deref() == Some(number),
            };
            let lines: Vec<&str> = said.trim_end().lines().collect();
            if !is_status || said.contains("panicked") || !all_fit(&lines, &step.output) {
                let status = status.map_or("a signal".to_owned(), |s| s.to_string());
                let difference = format!("{}\nstatus {status}\n{said}", step.command);
                return Err((step, difference));
            }
        }
        Ok(())
    }
}

/// The names of the files in a folder.
fn listed(folder: &Path) -> BTreeSet<OsString> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|e| e.unwrap().file_name()).collect()
}

/// Runs a case in a copy of the folder `made`.
fn run<'c>(
    case: &'c Case,
    made: &Path,
    port: u16,
    is_unchanged: bool,
) -> Result<(), (&'c Step, String)> {
    let t = tempfile::tempdir().unwrap();
    let folder = t.path().join("f");
    let copied = Command::new("cp").arg("-a").args([made, &folder]).status();
    assert!(copied.unwrap().success());
    let before = listed(&folder);
    let world = World {
        folder: &folder,
        port,
    };
    world.make(case)?;
    if is_unchanged && listed(&folder) != before {
        let step = case.steps.last().unwrap();
        return Err((step, "it made or removed files".into()));
    }
    Ok(())
}

/// The text of a file of cases with the actual output in place of a step's expected one. `None` if the expected output
/// contains `...` or `[..]`.
fn rewritten(text: &str, step: &Step, difference: &str) -> Option<String> {
    if step.output.iter().any(|l| l == "..." || l.contains("[..]")) {
        return None;
    }
    let said = difference.strip_prefix(&step.command)?;
    let (status, said) = said.strip_prefix("\nstatus ")?.split_once('\n')?;
    let lines: Vec<&str> = text.lines().collect();
    let commands = step.command.lines().count();
    let mut new = lines[..step.at + commands].join("\n");
    if status != "0" {
        new += &format!("\n? {status}");
    }
    if !said.trim_end().is_empty() {
        new += &format!("\n{}", said.trim_end());
    }
    Some([&new, "\n", &lines[step.end..].join("\n"), "\n"].concat())
}

#[test]
fn commands_write_what_the_cases_say() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let mut all = Vec::new();
    let mut count = 0;
    for selected in case_files(FOLDER) {
        let name = selected.name();
        let file = File::read(selected.path.clone()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let t = tempfile::tempdir().unwrap();
        let made = t.path().join("made");
        fs::create_dir(&made).unwrap();
        let world = World {
            folder: &made,
            port,
        };
        let set_up = world.make(&file.setup);
        set_up.unwrap_or_else(|(step, e)| panic!("{name}:{}: {e}", step.at + 1));
        let mut cases: Vec<&Case> = file.cases.iter().collect();
        selected.select(&mut cases, |c| c.line);
        count += cases.len();
        let mut failed = failures(&cases, |case| {
            run(case, &made, port, file.is_unchanged).map_err(|(step, e)| {
                let place = format!("{name}:{}: {}: {e}", step.at + 1, case.name);
                (step, e, place)
            })
        });
        if std::env::var_os("JINDOU_REWRITE").is_some() {
            // Later steps are rewritten first, so that the line numbers of earlier ones stay correct.
            failed.sort_by_key(|(step, ..)| std::cmp::Reverse(step.at));
            let mut text = file.text.clone();
            for (step, e, _) in &failed {
                text = rewritten(&text, step, e).unwrap_or(text);
            }
            fs::write(&file.path, text).unwrap();
        }
        all.extend(failed.into_iter().map(|(.., place)| place));
    }
    println!("{count} cases");
    let n = all.len();
    assert!(n == 0, "{n} failures:\n\n{}", all.join("\n\n"));
}

/// The test runner itself must notice each kind of difference. Otherwise cases would pass whatever the commands do.
#[test]
fn differences_are_noticed() {
    let t = tempfile::tempdir().unwrap();
    let path = t.path().join("a.cmd");
    let made = t.path().join("made");
    fs::create_dir(&made).unwrap();
    let outcome = |text: &str| {
        fs::write(&path, format!("== a case\n{text}")).unwrap();
        let file = File::read(path.clone()).expect("a case");
        run(&file.cases[0], &made, 1, true).map_err(|(_, e)| e)
    };
    for right in [
        "$ echo one; echo two\none\ntwo\n",
        "$ echo one; echo two >&2; exit 3\n? 3\none\ntwo\n",
        "$ echo one; echo two\n...\n",
        "$ echo one; echo two\no[..]e\n...\n",
        "$ echo one two\n[..]ne[..]o\n",
        "$ false\n? fails\n",
        "$ cat <<E\n> one\n> E\none\n",
        "& S jindou serve none --writable --port 0\n$ jindou query --endpoint $S/sparql 'ASK {}'; rm -r none\ntrue\n",
    ] {
        outcome(right).unwrap_or_else(|e| panic!("{right}: {e}"));
    }
    for wrong in [
        "$ echo one; echo two\none\n",
        "$ echo one\none\ntwo\n",
        "$ echo one\n? 1\none\n",
        "$ false\n",
        "$ true\n? fails\n",
        "$ exit 2\n? 1\n",
        "$ echo one two\n[..]two[..]one[..]\n",
        "$ echo panicked\n...\n",
        "$ touch file\n",
        "-- file d.nt\nx\n$ cat d.nt\ny\n",
        "& S echo nothing\n$ true\n",
    ] {
        assert!(outcome(wrong).is_err(), "{wrong}");
    }
    fs::write(&path, "== a case\nno such line\n").unwrap();
    assert!(File::read(path.clone()).is_err());
    fs::write(&path, "== a case\n").unwrap();
    assert!(File::read(path).is_err());
}
