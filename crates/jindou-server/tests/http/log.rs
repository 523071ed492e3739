//! Lines of the server's log.

use crate::{ask, options, serve, thousand};
use std::io::Write;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// The log of all servers of this process.
#[derive(Default)]
pub(crate) struct Log(Mutex<Vec<u8>>);

impl Log {
    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.lock()).into_owned()
    }
}

impl Write for &Log {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        self.lock().extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Starts to capture warnings and errors, in the format of the command's text log.
pub(crate) fn captured() -> &'static Log {
    static LOG: OnceLock<Log> = OnceLock::new();
    static ONCE: OnceLock<()> = OnceLock::new();
    let log = LOG.get_or_init(Log::default);
    ONCE.get_or_init(|| {
        tracing_subscriber::fmt()
            .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
            .with_ansi(false)
            .with_writer(move || log)
            .init();
    });
    log
}

#[test]
fn no_query_forges_a_line_or_a_field() {
    let log = captured();
    let server = serve(
        thousand(),
        options()
            .with_slow_query(Duration::ZERO)
            .with_writable(true),
    );
    let forged = "# 2026-01-01T00:00:00Z  WARN forged: all is well";
    let text =
        format!("ASK {{}} # mark-4711\n{forged} \u{1b}[2J\u{9b}31m\u{202e} \" client=1.2.3.4");
    assert_eq!(ask(&server, &text, &[]).status, 200);
    let answer = crate::update(&server, &format!("# mark-4712\n{forged}\n\r"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let long = format!("ASK {{}} # mark-4713 {}", "x".repeat(50_000));
    assert_eq!(ask(&server, &long, &[]).status, 200);
    crate::until("all is logged", || log.text().contains("mark-4713"));
    let all = log.text();
    assert!(!all.lines().any(|l| l.starts_with(forged)), "{all}");
    assert!(!all.chars().any(|c| c.is_control() && c != '\n'), "{all:?}");
    assert!(!all.contains('\u{202e}'));
    let list = crate::get(&server, "/admin/queries").json();
    let slow = list["slow"].as_array().unwrap();
    let of = |mark: &str| {
        slow.iter()
            .find(|q| q["query"].as_str().unwrap().contains(mark))
            .unwrap()
    };
    assert_eq!(of("mark-4711")["query"], *text);
    assert_eq!(of("mark-4712")["outcome"], "ok");
    assert!(of("mark-4713")["query"].as_str().unwrap().len() < 5_000);
    assert!(of("mark-4711")["ended"].as_f64() <= slow[0]["ended"].as_f64());
    let line = all.lines().find(|l| l.contains("mark-4711")).unwrap();
    // The quotation mark in the text is escaped, so that the client's text cannot forge a field.
    assert!(
        line.contains("slow query") && line.contains("\\\" client=1.2.3.4"),
        "{line}"
    );
    assert!(
        all.lines()
            .any(|l| l.contains("mark-4712") && l.contains("slow update"))
    );
    let line = all.lines().find(|l| l.contains("mark-4713")).unwrap();
    assert!(line.len() < 6_000, "{}", line.len());
}
