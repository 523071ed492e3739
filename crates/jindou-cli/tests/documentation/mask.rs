//! Masks numbers that differ between runs.

/// Units of times, rates and sizes of memory, whose numbers depend on the machine.
const UNITS: [&str; 13] = [
    "ns", "µs", "ms", "s", "M/s", "MiB", "KiB", "GiB", "MB", "kB", "GB", "ms,", "s,",
];

/// A line with single spaces between words, and with `#` in place of durations, memory sizes, dates and times, process
/// ids, names of backups, id epochs, and numbers with at least three decimals.
pub fn mask(line: &str) -> String {
    let mut out: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        let bare = word.trim_matches(|c: char| "()[],;:".contains(c));
        let masked = if is_unit(bare) && out.last().is_some_and(|w| is_number(w)) {
            out.pop();
            replaced(word, bare)
        } else if bare.starts_with("{\"") || bare.starts_with('"') && bare.contains("\":") {
            members(word)
        } else if out.last().is_some_and(|w| w == "process" || w == "epoch")
            || is_moment(bare)
            || has_fraction(bare)
            || bare.starts_with("backup-0")
        {
            replaced(word, bare)
        } else {
            word.to_owned()
        };
        out.push(masked);
    }
    out.join(" ")
}

/// Masks the numbers with decimals in a word of JSON.
fn members(word: &str) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let end = rest[at..]
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .map_or(rest.len(), |n| at + n);
        let number = &rest[at..end];
        out.push_str(&rest[..at]);
        out.push_str(if number.contains('.') { "#" } else { number });
        rest = &rest[end..];
    }
    out + rest
}

fn replaced(word: &str, bare: &str) -> String {
    word.replacen(bare, "#", 1)
}

fn is_unit(word: &str) -> bool {
    UNITS.contains(&word)
}

fn is_number(word: &str) -> bool {
    let word = word.trim_start_matches(['~', '(']);
    !word.is_empty()
        && word
            .chars()
            .all(|c| c.is_ascii_digit() || ".,#".contains(c))
}

fn is_moment(word: &str) -> bool {
    word.len() >= 20 && word.ends_with('Z') && word.as_bytes().get(10) == Some(&b'T')
}

fn has_fraction(word: &str) -> bool {
    word.split_once('.').is_some_and(|(whole, rest)| {
        rest.len() >= 3
            && whole.chars().all(|c| c.is_ascii_digit())
            && rest.chars().all(|c| c.is_ascii_digit())
            && !whole.is_empty()
    })
}

/// Checks that `output` matches `expected`, in which a line `…` matches any lines, and `…` at the end of a line matches
/// the rest of the line. The error shows the first lines that differ.
pub fn compare(expected: &str, output: &str) -> Result<(), String> {
    let lines = |text: &str| -> Vec<String> { text.trim().lines().map(mask).collect() };
    let (expected, output) = (lines(expected), lines(output));
    let mut at = 0;
    let mut any = false;
    for line in &expected {
        if line == "…" {
            any = true;
            continue;
        }
        let found = output[at..]
            .iter()
            .position(|o| match line.strip_suffix('…') {
                Some(start) => o.starts_with(start),
                None => o == line,
            });
        at += match found {
            Some(0) => 1,
            Some(n) if any => n + 1,
            _ => {
                let there = output.get(at).map_or("nothing more", String::as_str);
                return Err(format!(
                    "expected, masked:\n  {line}\nbut there is\n  {there}\nin\n{}",
                    output.join("\n")
                ));
            }
        };
        any = false;
    }
    if at < output.len() && !any {
        return Err(format!(
            "not shown in the page:\n  {}",
            output[at..].join("\n  ")
        ));
    }
    Ok(())
}

#[test]
fn what_differs_is_masked_and_nothing_else() {
    assert_eq!(
        mask("sky.store: 211 quads  in 0.13 s, 0.00 M/s; 0.0 MiB on disk, 81.2 bytes a quad"),
        "sky.store: 211 quads in #, #; # on disk, 81.2 bytes a quad"
    );
    assert_eq!(
        mask("1610-01-08  2439.7 id epoch 6ea2"),
        "1610-01-08 2439.7 id epoch #"
    );
    assert_eq!(
        mask(r#"{"added":10,"ms":{"run":0.1,"wait":3.0}}"#),
        r##"{"added":10,"ms":{"run":#,"wait":#}}"##
    );
    assert_eq!(
        mask("in 0.5 s (43.652 ms until"),
        mask("in 0.044 s (4.6 ms until")
    );
    assert_eq!(mask("of 2026-11-23T14:22:06.5073Z: x"), "of #: x");
    assert!(compare("a\n…\nd", "a\nb\nc\nd\n").is_ok());
    assert!(compare("a\n…", "a\n").is_ok());
    assert!(compare("a: …\nb", "a: 7\nb").is_ok());
    assert!(compare("a: …\nb", "c: 7\nb").is_err());
    assert!(compare("a\nd", "a\nb\nd").is_err());
    assert!(compare("a", "a\nb").is_err());
    assert!(compare("a\nb", "a").is_err());
    assert!(compare("3 rows in 2 ms", "4 rows in 2 ms").is_err());
}
