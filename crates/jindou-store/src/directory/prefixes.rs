//! `prefixes.jd`: the prefixes that the data of a load declares, and those that were set by hand. The file does not
//! exist if there are none.
//!
//! ```text
//! jindou-prefixes 1                  format version
//! data ex http://example.org/        of the data, by name
//! data  http://example.org/d#        the empty prefix
//! set acme http://acme.example/      set by hand, by name
//! prefixes 01ab…                     xxh3-64 of all lines above
//! ```
//!
//! Merged changes have the same text in a section of `s<N>-delta.jd`.

use jindou_model::prefixes::{
    LONGEST_NAMESPACE, LONGEST_PREFIX, MOST_PREFIXES, PrefixChange, PrefixTable,
};
use jindou_model::{Error, Result, private};
use std::fmt::Write as _;
use std::io::{ErrorKind, Read};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// File of the prefixes that the data declares.
pub const PREFIXES: &str = "prefixes.jd";

const FIRST_LINE: &str = "jindou-prefixes 1\n";
/// Upper bound of the length of a table's text in bytes.
const LONGEST: u64 = 2 * (MOST_PREFIXES * (LONGEST_PREFIX + LONGEST_NAMESPACE + 8)) as u64 + 256;

/// The text of a table of prefixes.
pub(crate) fn prefixes_text(table: &PrefixTable) -> String {
    let mut text = FIRST_LINE.to_owned();
    // Writing to a String cannot fail.
    for (name, iri) in table.data() {
        let _ = writeln!(text, "data {name} {iri}");
    }
    for (name, iri) in table.set() {
        let _ = writeln!(text, "set {name} {iri}");
    }
    let sum = xxh3_64(text.as_bytes());
    let _ = writeln!(text, "prefixes {sum:016x}");
    text
}

/// Parses a table of prefixes; `None` for anything other than the output of [`prefixes_text`].
pub(crate) fn parse_prefixes(text: &[u8]) -> Option<PrefixTable> {
    let text = std::str::from_utf8(text).ok()?;
    let mut changes = Vec::new();
    for line in text.strip_prefix(FIRST_LINE)?.lines() {
        let (word, rest) = line.split_once(' ')?;
        let change = match word {
            "data" => PrefixChange::Declare,
            "set" => PrefixChange::Set,
            // The last line is checked by comparing the whole text.
            _ => continue,
        };
        let (name, iri) = rest.split_once(' ')?;
        changes.push(change(name.into(), iri.into()));
    }
    let table = PrefixTable::new().with(&changes);
    (prefixes_text(&table) == text).then_some(table)
}

/// Reads the file in a folder whose manifest lists it.
///
/// # Errors
/// [`Error::Damaged`] for a file that is missing or has changed, [`Error::Io`].
pub(crate) fn read_prefixes(folder: &Path) -> Result<PrefixTable> {
    let path = folder.join(PREFIXES);
    let damaged = || {
        Error::damaged(
            &path,
            "damaged; run `jindou check`, then load the store again",
        )
    };
    let file = match private::open(&path) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return Err(damaged()),
        Err(e) => return Err(Error::io(path, e)),
    };
    let mut text = Vec::new();
    file.take(LONGEST)
        .read_to_end(&mut text)
        .map_err(|e| Error::io(&path, e))?;
    parse_prefixes(&text).ok_or_else(damaged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::damaged;

    #[test]
    fn a_table_comes_back_and_any_change_of_its_text_is_seen() {
        let table = PrefixTable::new().with(&[
            PrefixChange::Declare("ex".into(), "http://example.org/".into()),
            PrefixChange::Declare("".into(), "http://example.org/d#".into()),
            PrefixChange::Set("ex".into(), "http://other.example/".into()),
            PrefixChange::Set("é".into(), "urn:x:".into()),
        ]);
        let text = prefixes_text(&table);
        assert_eq!(parse_prefixes(text.as_bytes()).as_ref(), Some(&table));
        assert_eq!(
            parse_prefixes(prefixes_text(&PrefixTable::new()).as_bytes()),
            Some(PrefixTable::new())
        );
        for bad in damaged(text.as_bytes()) {
            assert_eq!(parse_prefixes(&bad), None, "{}", bad.escape_ascii());
        }
    }
}
