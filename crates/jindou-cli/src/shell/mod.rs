//! `jindou shell`: runs statements one after the other, typed or from a file.
//!
//! ```text
//! lines ─► statement (statement.rs: is it complete?) ─► ShellSession: a dot command, a query or an update ─► pages (pages.rs)
//! ```

mod complete;
mod dot;
mod session;
mod statement;

use crate::args::Shell;
use crate::say::say;
use crate::settings::own_folder;
use complete::Assistant;
use jindou::{CancelToken, Error, Result};
use jindou_model::sync;
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{Cmd, Config, Editor, KeyCode, KeyEvent, Modifiers};
use session::{Next, ShellSession};
use std::io::{BufRead, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use tokio::signal::unix::{SignalKind, signal};

/// Maximum number of bytes of a statement that is read from a file or a pipe. Larger data should be loaded.
const LONGEST: usize = 64 << 20;

/// Maximum number of statements in the history.
const HISTORY: usize = 10_000;

/// The token of the running statement, which Ctrl-C cancels. If no statement is running, Ctrl-C ends the program.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<Mutex<Option<CancelToken>>>);

impl Interrupt {
    /// Installs the handler of Ctrl-C (SIGINT). SIGTERM and SIGHUP end the shell at any time.
    fn install(&self) {
        let running = self.clone();
        let listen = move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
                .enable_io()
                .build()
            else {
                return;
            };
            runtime.block_on(async {
                // If the handler cannot be installed, Ctrl-C ends the process.
                let Ok(mut signals) = signal(SignalKind::interrupt()) else {
                    return;
                };
                while signals.recv().await.is_some() {
                    match &*sync::lock(&running.0) {
                        // A second Ctrl-C ends the process, in case the statement does not end.
                        Some(token) if token.is_cancelled() => std::process::exit(130),
                        Some(token) => token.cancel(),
                        None => std::process::exit(130),
                    }
                }
            });
        };
        let _ = std::thread::Builder::new()
            .name("interrupt".into())
            .spawn(listen);
    }

    /// Runs `work` with a token that Ctrl-C cancels.
    pub fn during<T>(&self, work: impl FnOnce(&CancelToken) -> T) -> T {
        let token = CancelToken::new();
        *sync::lock(&self.0) = Some(token.clone());
        let done = work(&token);
        *sync::lock(&self.0) = None;
        done
    }
}

pub fn run(a: &Shell) -> Result<ExitCode> {
    let interrupt = Interrupt::default();
    interrupt.install();
    let typed = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let mut session = ShellSession::open(a, interrupt, typed)?;
    if typed {
        return interactive(&mut session);
    }
    let stdin = std::io::stdin().lock();
    let failed = read(&mut session, stdin, Path::new("<stdin>"))? == ScriptOutcome::Failed;
    Ok(ExitCode::from(u8::from(failed)))
}

/// The result of a file of statements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ScriptOutcome {
    Good,
    /// At least one statement failed.
    Failed,
    /// A statement ended the shell.
    Quit,
}

/// Runs the statements in a text. A statement ends at a `;` at the end of a line, at an empty line, before a line with
/// a dot command, and at the end of the text, provided that it is complete there. If a statement fails, the later ones
/// are still run.
///
/// # Errors
/// [`Error::SinkClosed`] if the output was closed, and errors of reading the text, including a statement longer than
/// [`LONGEST`].
fn read(session: &mut ShellSession, mut lines: impl BufRead, name: &Path) -> Result<ScriptOutcome> {
    let mut pending = String::new();
    let mut outcome = ScriptOutcome::Good;
    let mut run = |session: &mut ShellSession, pending: &mut String| -> Result<bool> {
        let statement = std::mem::take(pending);
        match session.run(&statement) {
            Ok(Next::GoOn) => Ok(true),
            Ok(Next::Quit) => Ok(false),
            Err(Error::SinkClosed) => Err(Error::SinkClosed),
            Err(e) => {
                session.tell(&e);
                outcome = ScriptOutcome::Failed;
                Ok(true)
            }
        }
    };
    let mut line = String::new();
    loop {
        line.clear();
        // One byte more than allowed is read, to distinguish a line that is too long from one that just fits.
        let room = LONGEST + 1 - pending.len().min(LONGEST);
        let n = (&mut lines)
            .take(room as u64)
            .read_line(&mut line)
            .map_err(|e| Error::io(name, e))?;
        if n == 0 {
            break;
        }
        if n == room {
            let e = format!(
                "a statement is longer than {} MiB; load data with `jindou load`, or send it to `jindou update`",
                LONGEST >> 20
            );
            return Err(Error::io(name, std::io::Error::other(e)));
        }
        let line = line.trim_end_matches(['\n', '\r']);
        let dot = statement::is_dot(line);
        // A dot command begins a new statement, so the statement before it is run if it is complete.
        if dot && statement::is_whole(&pending) && !run(session, &mut pending)? {
            return Ok(ScriptOutcome::Quit);
        }
        pending.push_str(line);
        pending.push('\n');
        let ends = dot || line.trim().is_empty() || line.trim_end().ends_with(';');
        if ends && statement::is_whole(&pending) && !run(session, &mut pending)? {
            return Ok(ScriptOutcome::Quit);
        }
    }
    if !run(session, &mut pending)? {
        return Ok(ScriptOutcome::Quit);
    }
    Ok(outcome)
}

/// Prompts for statements until the end.
fn interactive(session: &mut ShellSession) -> Result<ExitCode> {
    let broken = |e: ReadlineError| match e {
        ReadlineError::Io(e) => Error::io("<terminal>", e),
        e => Error::io("<terminal>", std::io::Error::other(e.to_string())),
    };
    let config = Config::builder()
        .max_history_size(HISTORY)
        .map_err(broken)?
        .history_ignore_space(true)
        .completion_type(rustyline::CompletionType::List)
        // Otherwise the first Tab on an empty line would only beep.
        .completion_show_all_if_ambiguous(true)
        .build();
    let mut editor: Editor<Assistant, DefaultHistory> =
        Editor::with_config(config).map_err(broken)?;
    editor.set_helper(Some(Assistant::new(session)));
    // Alt+Enter adds a line to a statement that is already complete.
    editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
    let history = history();
    if let Some(file) = &history {
        // The file does not exist the first time, so the error is ignored.
        let _ = editor.load_history(file);
    }
    say!("{}", session.greeting());
    if let Some(warning) = session.warning() {
        say!("{warning}");
    }
    say!(
        "Enter runs a complete statement; Alt-Enter begins another line. help lists the commands, exit ends the shell."
    );
    let code = loop {
        session.set_screen(editor.dimensions());
        match editor.readline("jindou> ") {
            Ok(statement) => {
                if statement.trim().is_empty() {
                    continue;
                }
                // The shell works without a history, so errors are ignored.
                let _ = editor.add_history_entry(statement.trim_end());
                if let Some(file) = &history {
                    let _ = editor.append_history(file);
                }
                match session.run(&statement) {
                    Ok(Next::GoOn) => {}
                    Ok(Next::Quit) => break ExitCode::SUCCESS,
                    Err(e) => session.tell(&e),
                }
                if let Some(helper) = editor.helper_mut() {
                    helper.learn(session);
                }
            }
            // Ctrl-C discards the typed statement.
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break ExitCode::SUCCESS,
            Err(ReadlineError::Io(e)) if e.kind() == std::io::ErrorKind::InvalidData => {
                eprintln!("line skipped: not valid UTF-8");
            }
            Err(e) => return Err(broken(e)),
        }
    };
    Ok(code)
}

/// The path of the history file. Creates its folder, which only its owner may read, if necessary.
fn history() -> Option<PathBuf> {
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
    let folder = own_folder("XDG_STATE_HOME", ".local/state")?;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(&folder).ok()?;
    let file = folder.join("history");
    let mut open = std::fs::File::options();
    open.append(true)
        .create(true)
        .mode(0o600)
        .open(&file)
        .ok()?;
    Some(file)
}
