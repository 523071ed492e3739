//! Advice added to errors. The library's error says what is wrong; the command adds which option remedies it.

use jindou::parse::{Format, from_name};
use jindou::{Error, Location, Resource};
use std::io::{ErrorKind, Read};
use std::path::Path;

/// Number of bytes at the beginning of a document from which its format is guessed.
const BEGINNING: u64 = 4096;

/// Advice on an error in terms of the command's options.
pub(crate) fn advice_for(error: &Error) -> Option<String> {
    Some(match error {
        Error::Timeout(_) => "raise --timeout or narrow the query".into(),
        Error::Limit(limit) if limit.resource == Resource::Memory => {
            "raise --memory or narrow the query".into()
        }
        Error::Gpu(_) => "omit --gpu on to run it on the CPU".into(),
        Error::UnknownFormat { .. } => "name it with --format nt|nq|ttl|trig|rdf|jsonld".into(),
        Error::StoreExists { path } => format!(
            "pass --replace to overwrite it, or add to it with --into {0} in place of --store {0}",
            path.display()
        ),
        Error::NoStore { path } => {
            format!(
                "create one with `jindou load --store {} FILE…`",
                path.display()
            )
        }
        Error::Service { allowed: false, .. } => "allow an endpoint with --service-allow".into(),
        Error::Document { allowed: false, .. } => {
            "allow folders with --load-from and hosts with --load-allow".into()
        }
        _ => return None,
    })
}

/// The text of an error for a log: the likely intention, if it is known, and advice.
pub(crate) fn told(error: &Error, command: &str) -> String {
    let error = meant(error.duplicate(), command);
    match advice_for(&error) {
        Some(advice) => format!("{error}; {advice}"),
        None => error.to_string(),
    }
}

/// The error with a message that states the likely intention, if that is clear from the command and the existing files.
pub(crate) fn meant(error: Error, command: &str) -> Error {
    let said = match &error {
        Error::NoStore { path } | Error::NotAStore { path, .. } => {
            address(path, command).or_else(|| document(path, command))
        }
        Error::Io { path, source } if source.kind() == ErrorKind::PermissionDenied => {
            permission(path)
        }
        Error::Io { path, source }
            if source.kind() == ErrorKind::NotFound && command == "serve" =>
        {
            no_parent(path)
        }
        Error::UnknownFormat { name } if command == "query" => Some(format!(
            "{name}: cannot tell the RDF format from the name; name it with --data-format nt|nq|ttl|trig|rdf|jsonld"
        )),
        _ => None,
    };
    said.map_or(error, Error::Usage)
}

/// Further lines of advice on an error.
pub(crate) fn help(error: &Error, command: &str, is_lenient: bool) -> Vec<String> {
    let Error::Syntax { at, .. } = error else {
        return vec![];
    };
    if let Some(looks) = looks_like(at, command) {
        return vec![looks];
    }
    let skips = matches!(command, "load" | "convert") && !is_lenient;
    let lenient = "--lenient skips statements that are not valid, and lists them";
    skips.then(|| lenient.to_owned()).into_iter().collect()
}

/// Advice if a folder cannot be created because its parent does not exist.
fn no_parent(path: &Path) -> Option<String> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty())?;
    (!parent.exists()).then(|| {
        format!(
            "{}: there is no folder {1}; make it with mkdir -p {1}",
            path.display(),
            parent.display()
        )
    })
}

/// Advice if a web address was given in place of a store's folder.
fn address(path: &Path, command: &str) -> Option<String> {
    let text = path.to_str()?;
    let is_address = ["http://", "https://"].iter().any(|s| text.starts_with(s));
    is_address.then(|| match command {
        "query" | "shell" => {
            format!("{text} is an address, not a store: use --endpoint {text}")
        }
        _ => format!("{text} is an address, not a folder"),
    })
}

/// Advice if an RDF file was given in place of a store's folder.
fn document(path: &Path, command: &str) -> Option<String> {
    if matches!(command, "load" | "restore") || !path.is_file() {
        return None;
    }
    let (Some(_), compression) = from_name(path) else {
        return None;
    };
    let name = path.file_name()?.to_str()?;
    let plain = match compression {
        Some(_) => name.rsplit_once('.')?.0,
        None => name,
    };
    let (stem, _) = plain.rsplit_once('.')?;
    let store = path.with_file_name(format!("{stem}.store"));
    let (file, store) = (path.display(), store.display());
    let load = format!("jindou load --store {store} {file}");
    Some(match command {
        "query" => format!(
            "{file} is an RDF file, not a store; query it with jindou query --data {file} …, or make a store of it with {load}"
        ),
        _ => format!("{file} is an RDF file, not a store; make a store of it with {load}"),
    })
}

/// A sentence that names the file or folder that this user may not read or write, and its owner.
#[cfg(unix)]
fn permission(path: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    // The error may name a file that does not exist or cannot be examined: the nearest existing parent is the cause.
    let mut is_missing = false;
    let mut at = path;
    let found = loop {
        match std::fs::symlink_metadata(at) {
            Ok(found) => break found,
            Err(e) => is_missing = e.kind() == ErrorKind::NotFound,
        }
        at = match at.parent()? {
            up if up.as_os_str().is_empty() => Path::new("."),
            up if up == at => return None,
            up => up,
        };
    };
    let what = match (at == path, is_missing) {
        (true, _) => "no permission to use",
        (false, true) => "no permission to make anything in",
        (false, false) => "no permission to read",
    };
    Some(format!(
        "{what} {} (owner {}, mode {:04o})",
        at.display(),
        owner(found.uid()),
        found.mode() & 0o7777
    ))
}

#[cfg(not(unix))]
fn permission(_: &Path) -> Option<String> {
    None
}

/// The name of a user, or the number if the name is unknown.
fn owner(uid: u32) -> String {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let found = users.lines().find_map(|line| {
        let mut parts = line.split(':');
        let (name, id) = (parts.next()?, parts.nth(1)?);
        (id.parse() == Ok(uid)).then(|| name.to_owned())
    });
    found.unwrap_or_else(|| uid.to_string())
}

/// Advice if a file's first bytes suggest another format than its name does.
fn looks_like(at: &Location, command: &str) -> Option<String> {
    let path = Path::new(&at.file);
    if !path.is_file() {
        return None;
    }
    let mut beginning = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(BEGINNING).read_to_end(&mut beginning).ok()?;
    let text = String::from_utf8_lossy(&beginning);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let option = match command {
        "query" => "--data-format",
        "convert" => "--from",
        _ => "--format",
    };
    let named = from_name(path).0;
    let (what, name, format) = guess(text)?;
    let Some(format) = format else {
        return Some(format!("{} is {what}, not RDF", at.file));
    };
    let agrees = named == Some(format)
        // A TriG file may begin like Turtle, since TriG is Turtle with graphs; N-Quads is N-Triples with graphs in the
        // same way.
        || (named == Some(Format::TriG) && format == Format::Turtle);
    (!agrees).then(|| format!("this looks like {what}: {option} {name}"))
}

/// A description of the format that a document's first bytes suggest, the format's name as an option's value, and the
/// format; the format is `None` if the document is not RDF.
fn guess(text: &str) -> Option<(&'static str, &'static str, Option<Format>)> {
    let start: String = text.chars().take(16).collect::<String>().to_lowercase();
    if start.starts_with("<!doctype html") || start.starts_with("<html") {
        return Some(("an HTML page", "", None));
    }
    if text.starts_with("<rdf:RDF") || text.starts_with("<?xml") && text.contains(":RDF") {
        return Some(("RDF/XML", "rdf", Some(Format::RdfXml)));
    }
    let is_json = text.starts_with(['{', '[']) && text.contains("\"@");
    if is_json {
        return Some(("JSON-LD", "jsonld", Some(Format::JsonLd)));
    }
    let declares = |line: &str| {
        let word = line.split_whitespace().next().unwrap_or_default();
        ["@prefix", "@base"].contains(&word)
            || ["prefix", "base"]
                .iter()
                .any(|w| w.eq_ignore_ascii_case(word))
    };
    if !text.lines().any(declares) {
        return None;
    }
    match text.lines().any(|line| line.trim_end().ends_with('{')) {
        true => Some(("TriG", "trig", Some(Format::TriG))),
        false => Some(("Turtle", "ttl", Some(Format::Turtle))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_known_by_their_beginning() {
        for (text, what) in [
            ("<!DOCTYPE html>\n<html>", Some("an HTML page")),
            ("<HTML lang='en'>", Some("an HTML page")),
            (
                "<?xml version='1.0'?>\n<rdf:RDF xmlns:rdf='…'>",
                Some("RDF/XML"),
            ),
            ("<?xml version='1.0'?>\n<feed>", None),
            ("{\"@context\": {}}", Some("JSON-LD")),
            ("# a comment\n@prefix e: <http://e/> .", Some("Turtle")),
            ("PREFIX e: <http://e/>\ne:g {\n", Some("TriG")),
            ("<http://e/a> <http://e/b> 'c' .", None),
            ("", None),
        ] {
            assert_eq!(guess(text).map(|g| g.0), what, "{text}");
        }
    }
}
