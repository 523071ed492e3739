//! Writes lines to standard output, which may be full or closed.

use std::fmt::Arguments;
use std::io::Write;

/// Writes a line to standard output, like `println!`. If it cannot be written, for example to a full disk, the command
/// exits with status 1 and the reason, instead of panicking like `println!`. If the reader has closed the output, it
/// exits with status 0.
macro_rules! say {
    () => { $crate::say::line(format_args!("")) };
    ($($text:tt)*) => { $crate::say::line(format_args!($($text)*)) };
}
pub(crate) use say;

/// Writes the line of [`say!`].
pub(crate) fn line(text: Arguments<'_>) {
    let mut out = std::io::stdout().lock();
    let written = out
        .write_fmt(text)
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush());
    if let Err(e) = written {
        if e.kind() == std::io::ErrorKind::BrokenPipe {
            std::process::exit(0);
        }
        eprintln!("jindou: cannot write to standard output: {e}");
        std::process::exit(1);
    }
}
