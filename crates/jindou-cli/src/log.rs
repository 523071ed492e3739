//! The server's log on standard error: one line per event, whatever its content.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Writes each event as one line. Values that come from clients are escaped where they are logged; this writer escapes
/// everything else, such as messages of libraries.
pub struct OneLine<W> {
    out: W,
    /// True if the formatter colours lines, so that its escape characters must be kept. (Escape characters in values
    /// from clients have been escaped before.)
    ansi: bool,
}

impl<W: Write> OneLine<W> {
    pub fn new(out: W, ansi: bool) -> Self {
        Self { out, ansi }
    }
}

impl<W: Write> Write for OneLine<W> {
    /// Takes a whole event, as the formatter passes it.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        self.out.write_all(line(&text, self.ansi).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The event with each control character, except a line end at its end, written as an escape that is also valid in
/// JSON.
fn line(event: &str, ansi: bool) -> Cow<'_, str> {
    let (body, end) = match event.strip_suffix('\n') {
        Some(body) => (body, "\n"),
        None => (event, ""),
    };
    let bad = |c: char| {
        c.is_control() && !(ansi && c == '\u{1b}') || matches!(c, '\u{2028}' | '\u{2029}')
    };
    if !body.contains(bad) {
        return event.into();
    }
    let mut out = String::with_capacity(event.len() + 16);
    for c in body.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if bad(c) => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    (out + end).into()
}

/// Writes panic messages to the log, so that a line end in a message cannot look like another event.
pub fn panics() {
    std::panic::set_hook(Box::new(|info| {
        let at = info.location().map(ToString::to_string).unwrap_or_default();
        let payload = info.payload();
        let owned = payload.downcast_ref::<String>().map(String::as_str);
        let message = owned.or_else(|| payload.downcast_ref::<&str>().copied());
        let message = message.unwrap_or_default();
        let backtrace = std::backtrace::Backtrace::force_capture();
        tracing::error!(at, reason = message, %backtrace, "a thread panicked; please report it");
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line() {
        assert_eq!(line("a plain event\n", false), "a plain event\n");
        assert_eq!(
            line("a\nb\r\tc\u{1b}[2Jd\u{9b}e\u{2028}f\n", false),
            "a\\nb\\r\\tc\\u001b[2Jd\\u009be\\u2028f\n"
        );
        assert_eq!(
            line("\u{1b}[33mWARN\u{1b}[0m a\n\n", true),
            "\u{1b}[33mWARN\u{1b}[0m a\\n\n"
        );
        let mut out = Vec::new();
        OneLine::new(&mut out, false)
            .write_all(b"x\ny\xff\n")
            .unwrap();
        assert_eq!(out, "x\\ny\u{fffd}\n".as_bytes());
    }
}
