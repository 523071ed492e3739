//! Behaviour that all commands share: ending when the reader of the output is gone, and exit statuses for errors.

use crate::Error;

/// Makes the program end without a message when the reader of its output ends (`jindou info | head`); by default,
/// `println!` would panic.
pub fn end_with_the_reader() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.payload().downcast_ref::<String>();
        let pipe = |t: &String| t.starts_with("failed printing to stdout: Broken pipe");
        if text.is_some_and(pipe) {
            std::process::exit(0);
        }
        before(panic);
    }));
}

/// The exit status for a failed command: 130 as for an interrupt, 124 as that of `timeout`, or 1 for other errors.
#[must_use]
pub fn exit_status(e: &Error) -> u8 {
    match e {
        Error::Cancelled => 130,
        Error::Timeout(_) => 124,
        _ => 1,
    }
}
