//! An answer that ends with an error once the data that it is made from is invalid.

use super::{AnswerSink, RowText, Rows};
use jindou_model::Result;
use oxrdf::Triple;

/// A sink that checks the store's files for failures: quickly before each piece, and completely before the end.
pub(crate) struct CheckedSink<'a> {
    pub sink: &'a mut dyn AnswerSink,
    pub check: &'a (dyn Fn() -> Result<()> + Sync),
    pub check_for_faults: &'a (dyn Fn() -> Result<()> + Sync),
}

impl AnswerSink for CheckedSink<'_> {
    fn solutions(&mut self, variables: &[String]) -> Result<()> {
        self.sink.solutions(variables)
    }

    fn rows(&mut self, rows: &Rows) -> Result<()> {
        (self.check_for_faults)()?;
        self.sink.rows(rows)
    }

    fn row_text(&self) -> Option<RowText> {
        self.sink.row_text()
    }

    fn raw(&mut self, text: &[u8], rows: u64) -> Result<()> {
        (self.check_for_faults)()?;
        self.sink.raw(text, rows)
    }

    fn boolean(&mut self, value: bool) -> Result<()> {
        (self.check)()?;
        self.sink.boolean(value)
    }

    fn graph(&mut self) -> Result<()> {
        self.sink.graph()
    }

    fn bytes_held(&self) -> u64 {
        self.sink.bytes_held()
    }

    fn triple(&mut self, triple: &Triple) -> Result<()> {
        self.sink.triple(triple)
    }

    fn finish(&mut self) -> Result<()> {
        (self.check)()?;
        self.sink.finish()
    }
}
