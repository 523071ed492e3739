//! Any bytes as XML: no panic, no overflow, no endless document, and the same events however the bytes come.
#![no_main]

use jindou_parse::xml::{Event, ReaderOptions, Reader};
use libfuzzer_sys::fuzz_target;
use std::io::Read;

struct Pieces<'d>(&'d [u8], usize);

impl Read for Pieces<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let n = self.0.len().min(self.1).min(to.len());
        to[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

/// The document's text with its tags, pieces of text joined; or only that it is wrong.
fn read(bytes: &[u8], piece: usize, options: ReaderOptions) -> Result<String, ()> {
    let mut reader = Reader::new(Pieces(bytes, piece), options).map_err(drop)?;
    let mut out = String::new();
    loop {
        match reader.next_event().map_err(drop)? {
            Event::Start(start) => {
                out.push('<');
                out.push_str(start.name().qualified);
                for a in start.all() {
                    out.push_str(a.name.namespace);
                    out.push_str(a.value);
                }
            }
            Event::End { name } => out.push_str(name),
            Event::Text(text) | Event::Comment(text) => out.push_str(text),
            Event::Eof => return Ok(out),
            _ => {}
        }
        let _ = reader.position();
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, bytes)) = data.split_first() else { return };
    let mut options = ReaderOptions::default();
    options.namespaces = choice & 1 == 0;
    options.skip_external = choice & 2 == 0;
    options.expansion = 1 << 16;
    let whole = read(bytes, usize::MAX, options.clone());
    assert_eq!(whole, read(bytes, 1 + usize::from(choice >> 2), options));
});
