//! Answers at a terminal: the first rows with the number of all, or all rows, in a pager if they are longer than the
//! screen.

use jindou::oxrdf::Triple;
use jindou::results::{AnswerSink, RowText, Rows};
use jindou::{Error, Result};
use jindou_model::units::grouped;
use std::io::{self, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Writes to standard output, or to a pager as soon as the text is longer than the screen.
pub struct Pages {
    /// The pager's command; with `None` no pager is started.
    command: Option<String>,
    lines: usize,
    /// The text so far, as long as it fits the screen.
    held: Vec<u8>,
    seen: usize,
    to: PageOutput,
}

enum PageOutput {
    Held,
    Out,
    Pager(Child),
}

impl Pages {
    /// Output for a screen of this many lines.
    pub fn new(command: Option<String>, lines: usize) -> Self {
        let to = if command.is_some() {
            PageOutput::Held
        } else {
            PageOutput::Out
        };
        Self {
            command,
            lines,
            held: vec![],
            seen: 0,
            to,
        }
    }

    /// Ends the output: writes the text if no pager was started, otherwise waits until the user quits the pager.
    pub fn finish(mut self) -> io::Result<()> {
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        let mut out = io::stdout();
        match std::mem::replace(&mut self.to, PageOutput::Out) {
            PageOutput::Held => {
                let held = std::mem::take(&mut self.held);
                out.write_all(&held).and_then(|()| out.flush())
            }
            PageOutput::Out => out.flush(),
            PageOutput::Pager(mut child) => {
                drop(child.stdin.take());
                child.wait().map(drop)
            }
        }
    }

    /// Starts the pager and passes it the text so far. If the pager cannot be started, the answer goes to standard
    /// output.
    fn start(&mut self) -> io::Result<()> {
        let command = self.command.clone().unwrap_or_default();
        let started = Command::new("sh")
            .args(["-c", &command])
            .stdin(Stdio::piped())
            // The options that Git uses: less shows a short text without paging, cuts long lines and keeps colours.
            .env(
                "LESS",
                std::env::var("LESS").unwrap_or_else(|_| "FRSX".into()),
            )
            .spawn();
        let held = std::mem::take(&mut self.held);
        match started {
            Ok(child) => self.to = PageOutput::Pager(child),
            Err(_) => self.to = PageOutput::Out,
        }
        self.write_all(&held)
    }
}

impl Write for Pages {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            PageOutput::Out => return io::stdout().write(bytes),
            PageOutput::Pager(child) => {
                return match &mut child.stdin {
                    Some(pipe) => pipe.write(bytes),
                    None => Err(io::ErrorKind::BrokenPipe.into()),
                };
            }
            PageOutput::Held => {}
        }
        self.held.extend_from_slice(bytes);
        self.seen += bytes.iter().filter(|b| **b == b'\n').count();
        if self.seen >= self.lines {
            self.start()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            PageOutput::Out => io::stdout().flush(),
            _ => Ok(()),
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // `finish` has reported the error, or the output is discarded because of another error.
        let _ = self.end();
    }
}

/// The first `keep` rows of a batch.
fn beginning(rows: &Rows, keep: usize) -> Rows {
    let mut first = Rows::default();
    first.clear(rows.width);
    for r in 0..keep {
        for cell in rows.row(r) {
            first.bytes.extend_from_slice(cell.unwrap_or_default());
            first.end_cell();
        }
        first.rows += 1;
    }
    first
}

/// Passes on the first rows of an answer, and then ends the query.
pub struct FirstRows<'s> {
    inner: &'s mut dyn AnswerSink,
    left: u64,
    /// True once a row was left out.
    pub cut: bool,
}

impl<'s> FirstRows<'s> {
    pub fn new(inner: &'s mut dyn AnswerSink, rows: u64) -> Self {
        Self {
            inner,
            left: rows,
            cut: false,
        }
    }

    /// Turns the error of a query that this sink has ended into success.
    ///
    /// # Errors
    /// Other errors of the query.
    pub fn settle<T>(&mut self, answer: Result<T>) -> Result<Option<T>> {
        match answer {
            Ok(report) => Ok(Some(report)),
            Err(Error::SinkClosed) if self.cut => self.inner.finish().map(|()| None),
            Err(e) => Err(e),
        }
    }
}

impl AnswerSink for FirstRows<'_> {
    fn solutions(&mut self, variables: &[String]) -> Result<()> {
        self.inner.solutions(variables)
    }

    fn rows(&mut self, rows: &Rows) -> Result<()> {
        if rows.rows as u64 <= self.left {
            self.left -= rows.rows as u64;
            return self.inner.rows(rows);
        }
        let first = beginning(rows, self.left as usize);
        (self.left, self.cut) = (0, true);
        self.inner.rows(&first)?;
        Err(Error::SinkClosed)
    }

    fn row_text(&self) -> Option<RowText> {
        // The rows must be counted, so they are not delivered as text.
        None
    }

    fn raw(&mut self, text: &[u8], rows: u64) -> Result<()> {
        self.inner.raw(text, rows)
    }

    fn boolean(&mut self, value: bool) -> Result<()> {
        self.inner.boolean(value)
    }

    fn graph(&mut self) -> Result<()> {
        self.inner.graph()
    }

    fn triple(&mut self, triple: &Triple) -> Result<()> {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                self.inner.triple(triple)
            }
            None => {
                self.cut = true;
                Err(Error::SinkClosed)
            }
        }
    }

    fn finish(&mut self) -> Result<()> {
        self.inner.finish()
    }
}

/// Maximum number of rows that are shown at a terminal by default.
pub const SHOWN: u64 = 40;
/// Maximum time for counting the rows that are not shown.
const COUNTING: Duration = Duration::from_secs(2);

/// Shows the first rows of an answer, and counts the others for at most [`COUNTING`].
pub struct TableHead<'s> {
    inner: &'s mut dyn AnswerSink,
    /// Number of rows or triples so far; `None` for the answer of an ASK query.
    seen: Option<u64>,
    is_graph: bool,
    /// Time at which the shown rows were complete and counting began.
    counting: Option<Instant>,
    gave_up: bool,
}

impl<'s> TableHead<'s> {
    pub fn new(inner: &'s mut dyn AnswerSink) -> Self {
        Self {
            inner,
            seen: None,
            is_graph: false,
            counting: None,
            gave_up: false,
        }
    }

    /// Adds rows, some of which may just have been shown, to those seen. When no more are shown, the table is finished,
    /// and the remaining rows are only counted.
    fn saw(&mut self, rows: u64) -> Result<()> {
        let seen = self.seen.unwrap_or_default().saturating_add(rows);
        self.seen = Some(seen);
        if seen <= SHOWN {
            return Ok(());
        }
        match self.counting {
            None => {
                self.counting = Some(Instant::now());
                self.inner.finish()
            }
            Some(since) if since.elapsed() >= COUNTING => {
                self.gave_up = true;
                Err(Error::SinkClosed)
            }
            Some(_) => Ok(()),
        }
    }

    fn left(&self) -> u64 {
        SHOWN.saturating_sub(self.seen.unwrap_or_default())
    }

    /// Turns the error of a query that was ended because its rows are too many to count into success.
    ///
    /// # Errors
    /// Other errors of the query.
    pub fn settle<T>(&self, answer: Result<T>) -> Result<Option<T>> {
        match answer {
            Ok(report) => Ok(Some(report)),
            Err(Error::SinkClosed) if self.gave_up => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The line below an answer: the number of rows, and `rest`, the option that shows all of them.
    pub fn footer(&self, rest: &str) -> Option<String> {
        let n = self.seen?;
        let what = match (self.is_graph, n) {
            (false, 1) => "row",
            (false, _) => "rows",
            (true, 1) => "triple",
            (true, _) => "triples",
        };
        let count = grouped(n);
        Some(match (n > SHOWN, self.gave_up) {
            (false, _) => format!("{count} {what}"),
            (true, false) => format!("{count} {what} ({SHOWN} shown; {rest} for the rest)"),
            (true, true) => {
                format!("more than {count} {what} ({SHOWN} shown; {rest} for the rest)")
            }
        })
    }
}

impl AnswerSink for TableHead<'_> {
    fn solutions(&mut self, variables: &[String]) -> Result<()> {
        self.seen = Some(0);
        self.inner.solutions(variables)
    }

    fn rows(&mut self, rows: &Rows) -> Result<()> {
        let n = rows.rows as u64;
        match self.left() {
            0 => {}
            left if n <= left => self.inner.rows(rows)?,
            left => self.inner.rows(&beginning(rows, left as usize))?,
        }
        self.saw(n)
    }

    fn row_text(&self) -> Option<RowText> {
        // The rows must be counted, so they are not delivered as text.
        None
    }

    fn raw(&mut self, text: &[u8], rows: u64) -> Result<()> {
        if self.left() > 0 {
            self.inner.raw(text, rows)?;
        }
        self.saw(rows)
    }

    fn boolean(&mut self, value: bool) -> Result<()> {
        self.inner.boolean(value)
    }

    fn graph(&mut self) -> Result<()> {
        (self.seen, self.is_graph) = (Some(0), true);
        self.inner.graph()
    }

    fn triple(&mut self, triple: &Triple) -> Result<()> {
        if self.left() > 0 {
            self.inner.triple(triple)?;
        }
        self.saw(1)
    }

    fn finish(&mut self) -> Result<()> {
        match self.counting {
            None => self.inner.finish(),
            Some(_) => Ok(()),
        }
    }
}

/// Columns and lines of the terminal; `None` if standard output is not a terminal, or the terminal does not report its
/// size.
pub fn screen() -> Option<(u16, u16)> {
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: the call writes this one structure, which lives until it returns.
    let done = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &mut size) };
    (done == 0 && size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col, size.ws_row))
}
