//! Any bytes in any format, strict and lenient: no panic, no overflow, spans inside their batch, terms
//! that decode. The first byte chooses format and mode.
#![no_main]

use jindou_model::{Progress, QuadBatch, QuadSink, QuadSource, term};
use jindou_parse::{Format, Sources};
use libfuzzer_sys::fuzz_target;

struct Check;

impl QuadSink for Check {
    fn batch(&mut self, batch: &QuadBatch) -> jindou_model::Result<()> {
        for [s, p, o, g] in &batch.quads {
            for span in [s, p, o] {
                assert!(term::decode(batch.term(*span)).is_some());
            }
            assert!(g.len == 0 || term::decode(batch.term(*g)).is_some());
        }
        Ok(())
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, text)) = data.split_first() else { return };
    let format = Format::ALL[usize::from(choice >> 1) % Format::ALL.len()];
    let sources = Sources::builder()
        .text("fuzz", text.to_vec(), format)
        .base_iri(Some("http://example.org/".into()))
        .lenient(choice & 1 == 1)
        .build()
        .unwrap();
    let _ = sources.run(0, 1, &mut Check, &Progress::default());
});
