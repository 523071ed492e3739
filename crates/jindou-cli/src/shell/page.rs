//! Answers on a screen: optionally only the first rows, with a pager for answers longer than the screen.

use jindou::oxrdf::Triple;
use jindou::results::{AnswerSink, RowText, Rows};
use jindou::{Error, Result};
use std::io::{self, Write};
use std::process::{Child, Command, Stdio};

/// Standard output, or a pager as soon as more was written than fits the screen.
pub struct Pages {
    /// The pager's command; `None`: never.
    command: Option<String>,
    lines: usize,
    /// The text so far, while it fits.
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

    /// Writes what is held, or waits until the pager has ended.
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

    /// Starts the pager with what was held; without one that starts, the answer is written as it is.
    fn start(&mut self) -> io::Result<()> {
        let command = self.command.clone().unwrap_or_default();
        let started = Command::new("sh")
            .args(["-c", &command])
            .stdin(Stdio::piped())
            // As Git does: what fits is left on the screen, lines are cut, colours kept.
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
        // An error was told, or nothing reads.
        let _ = self.end();
    }
}

/// Ends an answer after its first rows.
pub struct First<'s> {
    inner: &'s mut dyn AnswerSink,
    left: u64,
    /// True once rows were left out.
    pub cut: bool,
}

impl<'s> First<'s> {
    pub fn new(inner: &'s mut dyn AnswerSink, rows: u64) -> Self {
        Self {
            inner,
            left: rows,
            cut: false,
        }
    }

    /// Turns the error of an answer that was cut into success.
    ///
    /// # Errors
    /// The error of the answer, if it was not cut.
    pub fn settle<T>(&mut self, answer: Result<T>) -> Result<Option<T>> {
        match answer {
            Ok(report) => Ok(Some(report)),
            Err(Error::SinkClosed) if self.cut => self.inner.finish().map(|()| None),
            Err(e) => Err(e),
        }
    }
}

impl AnswerSink for First<'_> {
    fn solutions(&mut self, variables: &[String]) -> Result<()> {
        self.inner.solutions(variables)
    }

    fn rows(&mut self, rows: &Rows) -> Result<()> {
        if rows.rows as u64 <= self.left {
            self.left -= rows.rows as u64;
            return self.inner.rows(rows);
        }
        let keep = self.left as usize;
        let mut first = Rows::default();
        first.clear(rows.width);
        for r in 0..keep {
            for cell in rows.row(r) {
                first.bytes.extend_from_slice(cell.unwrap_or_default());
                first.end_cell();
            }
            first.rows += 1;
        }
        (self.left, self.cut) = (0, true);
        self.inner.rows(&first)?;
        Err(Error::SinkClosed)
    }

    fn row_text(&self) -> Option<RowText> {
        // Rows are counted, so they are delivered as rows.
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
