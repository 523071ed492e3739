//! The brackets of JSON-LD.

use super::{MAX_DEPTH, Seen};

/// Depth of objects and arrays.
#[derive(Default)]
pub(super) struct JsonGuard {
    depth: usize,
    in_string: bool,
    escape: bool,
    /// Values and keys since the last query.
    pub(super) tokens: u64,
}

impl JsonGuard {
    pub(super) fn see(&mut self, bytes: &[u8]) -> Seen {
        for (i, &b) in bytes.iter().enumerate() {
            if self.escape {
                self.escape = false;
            } else if self.in_string {
                match b {
                    b'"' => self.in_string = false,
                    b'\\' => self.escape = true,
                    _ => {}
                }
            } else {
                match b {
                    b'"' => self.in_string = true,
                    b',' | b':' => self.tokens += 1,
                    b'[' | b'{' => {
                        self.tokens += 1;
                        self.depth += 1;
                        if self.depth > MAX_DEPTH {
                            let m = format!(
                                "JSON is nested too deeply, expected at most {MAX_DEPTH} levels"
                            );
                            return Err((i, m));
                        }
                    }
                    b']' | b'}' => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}
