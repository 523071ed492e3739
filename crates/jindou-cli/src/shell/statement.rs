//! Finds out whether the input is a complete statement.

use jindou::{DiagnosticKind, Diagnostics, Error, parse_query, parse_update, prefixes_of};

/// Words that are commands without a dot, since they end the shells of other databases or ask for help there. None of
/// them is valid SPARQL.
const WORDS: [(&str, &str); 3] = [("exit", ".exit"), ("quit", ".quit"), ("help", ".help")];

/// The dot command for a line that consists of one of [`WORDS`].
pub fn lone_word(line: &str) -> Option<&'static str> {
    let line = line.trim().trim_end_matches(';').trim_end();
    let found = WORDS.iter().find(|(w, _)| w.eq_ignore_ascii_case(line));
    found.map(|(_, command)| *command)
}

/// True if the line is a dot command. SPARQL never begins with a dot and a letter.
pub fn is_dot(line: &str) -> bool {
    if lone_word(line).is_some() {
        return true;
    }
    let mut chars = line.trim_start().chars();
    chars.next() == Some('.') && chars.next().is_some_and(|c| c.is_ascii_alphabetic())
}

/// The query that follows a dot command's name, if the command takes one.
pub fn argument(dot: &str) -> Option<&str> {
    let text = dot.trim_start();
    let rest = [".explain", ".profile"]
        .iter()
        .find_map(|c| text.strip_prefix(c))?;
    rest.starts_with(char::is_whitespace)
        .then(|| rest.trim_start())
}

/// True if the text is complete: it can be run, or it has an error that no further text can correct.
pub fn is_whole(text: &str) -> bool {
    let text = text.trim_end();
    if text.is_empty() {
        return true;
    }
    if is_dot(text) {
        return match argument(text) {
            Some(query) if !query.is_empty() => is_whole(query),
            _ => true,
        };
    }
    let text = match text.strip_suffix(';') {
        Some(rest) => rest.trim_end(),
        None => text,
    };
    let full = declared(text);
    match parse_query(&full) {
        Ok(_) => true,
        Err(Error::Sparql(faults)) => match faults.first().kind {
            DiagnosticKind::UpdateNotQuery => match parse_update(&full, Some("http://e/")) {
                Err(Error::Sparql(faults)) => !at_the_end(&faults, &full),
                _ => true,
            },
            DiagnosticKind::Empty => false,
            _ => !at_the_end(&faults, &full),
        },
        Err(_) => true,
    }
}

/// True if the text is incomplete: an error is at its end, or at a bracket that is not closed.
fn at_the_end(faults: &Diagnostics, text: &str) -> bool {
    // Inside a long string, which may span lines, the text is incomplete as well.
    let open = |marks| text.matches(marks).count() % 2 == 1;
    if open("\"\"\"") || open("'''") {
        return true;
    }
    faults.all().iter().any(|f| {
        let rest = text.get(f.start..).unwrap_or_default();
        match f.kind {
            DiagnosticKind::Bracket => rest.is_empty() || rest.starts_with(['{', '(', '[']),
            _ => rest.is_empty(),
        }
    })
}

/// True for an update request.
pub fn is_update(text: &str) -> bool {
    match parse_query(&declared(text)) {
        Err(Error::Sparql(faults)) => faults.first().kind == DiagnosticKind::UpdateNotQuery,
        _ => false,
    }
}

/// The text with a declaration for each prefix that it uses. An unknown prefix is not an error here; it is reported
/// when the statement is run.
fn declared(text: &str) -> String {
    let mut all = String::new();
    for name in prefixes_of(text).used {
        all.push_str(&format!("PREFIX {name}: <http://e/> "));
    }
    all + text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_whole_when_more_would_not_mend_them() {
        for whole in [
            "",
            ".help",
            "exit",
            "QUIT;",
            " help ",
            ".explain SELECT * { ?s ?p ?o }",
            ".explain",
            "SELECT * { ?s ?p ?o }",
            "SELECT * { ?s e:p/foaf:name ?o };",
            "SELECT * { ?s ?p ?o } }",
            "SELCT * { ?s ?p ?o }",
            "SELECT * { ?s nobody:knows ?o }",
            "ASK { ?s ?p 'x\n' }",
            "INSERT DATA { <a> <b> 'c' } ;",
            "INSERT DATA { <a> <b> ?c }",
        ] {
            assert!(is_whole(whole), "{whole}");
        }
        for part in [
            "SELECT * {",
            "SELECT * {\n ?s nobody:knows ?o .",
            "SELECT * WHERE\n",
            "PREFIX a: <http://a/>",
            "PREFIX a: <http://a/>\n# comment",
            "SELECT (COUNT(*) AS ?n",
            "SELECT * { ?s ?p ?o FILTER(",
            "INSERT DATA {",
            "ASK { ?s ?p \"\"\"first\n\nsecond",
            "DELETE { ?s ?p ?o } WHERE",
            ".explain SELECT * {",
            ".profile SELECT",
        ] {
            assert!(!is_whole(part), "{part}");
        }
        assert!(is_update(
            "PREFIX a: <http://a/> DELETE WHERE { a:b foaf:c ?d }"
        ));
        assert!(!is_update("SELECT * { ?s ?p ?o }"));
        assert_eq!(lone_word(" Exit ; "), Some(".exit"));
        assert!(is_dot("help") && !is_dot("help me") && !is_dot("exits"));
    }
}
