//! Sinks for a query's rows: they write a document, write quads, or only count rows.

use crate::live::LiveQuery;
use crate::negotiate::{GRAPH_ANSWERS, Offer, TABLES};
use crate::quads;
use crate::response::ResponseWriter;
use crate::shared::AppState;
use jindou::results::{GraphWriter, Prefixes, RowText, Rows};
use jindou::{
    AnswerSink, Error, MemoryBudget, PlannedQuery, PrefixTable, Resource, Result, ResultFormat,
    ResultWriter,
};
use oxrdfio::RdfFormat;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A destination for the text of an answer, which is told the content type before the first byte.
pub(crate) trait AnswerDestination: Write + Send {
    fn set_content_type(&mut self, content_type: &'static str);
}

/// Counts rows, and returns an error beyond the server's limit.
pub(crate) struct CountingSink {
    query: Arc<LiveQuery>,
    most: u64,
}

impl CountingSink {
    pub(crate) fn new(shared: &AppState, query: &Arc<LiveQuery>) -> Self {
        Self {
            query: Arc::clone(query),
            most: shared.options.max_result_rows.unwrap_or(u64::MAX),
        }
    }

    fn add(&self, rows: u64) -> Result<()> {
        let before = self.query.rows.fetch_add(rows, Ordering::Relaxed);
        if before.saturating_add(rows) > self.most {
            return Err(Error::limit(
                Resource::Answer,
                format!(
                    "the answer has more rows than the server's limit of {}; narrow the query or use LIMIT",
                    self.most
                ),
            ));
        }
        Ok(())
    }
}

/// Writes an answer in a format for rows or for graphs; which of the two is known when the answer starts.
pub(crate) struct HttpSink<'o, O: AnswerDestination> {
    out: Option<&'o mut O>,
    writer: Option<ResultWriter<&'o mut O>>,
    tables: Option<Offer>,
    graphs: Option<Offer>,
    names: Option<GraphNames<'o>>,
    count: CountingSink,
    unacceptable: Option<&'static [Offer]>,
}

/// The prefixes by which IRIs in a Turtle answer may be abbreviated.
#[derive(Clone, Copy)]
pub(crate) struct GraphNames<'t> {
    /// The store's prefixes.
    store: &'t PrefixTable,
    /// The query's text, whose declarations also apply.
    text: &'t str,
}

impl<'t> GraphNames<'t> {
    /// `None` if the server's options say that the store's prefixes do not apply.
    pub(crate) fn of(shared: &AppState, planned: &'t PlannedQuery, text: &'t str) -> Option<Self> {
        shared.options.store_prefixes.then(|| Self {
            store: planned.snapshot().prefixes(),
            text,
        })
    }

    pub(crate) fn prefixes(self) -> Prefixes {
        let mut all = Prefixes::common();
        all.declare_all(self.store);
        all.declare_of(self.text);
        all
    }
}

impl<'o, O: AnswerDestination> HttpSink<'o, O> {
    pub(crate) fn new(
        out: &'o mut O,
        tables: Option<Offer>,
        graphs: Option<Offer>,
        names: Option<GraphNames<'o>>,
        count: CountingSink,
    ) -> Self {
        Self {
            out: Some(out),
            writer: None,
            tables,
            graphs,
            names,
            count,
            unacceptable: None,
        }
    }

    /// The available formats, if the query was ended because the client accepts none of them.
    pub(crate) fn unacceptable(&self) -> Option<&'static [Offer]> {
        self.unacceptable
    }

    fn start(&mut self, graph: bool) -> Result<()> {
        let (chosen, offers): (_, &'static [Offer]) = if graph {
            (self.graphs, &GRAPH_ANSWERS)
        } else {
            (self.tables, &TABLES)
        };
        let Some((content_type, format)) = chosen else {
            self.unacceptable = Some(offers);
            return Err(Error::SinkClosed);
        };
        let out = self
            .out
            .take()
            .ok_or_else(|| Error::Internal("an answer was started twice".into()))?;
        out.set_content_type(content_type);
        let mut writer = ResultWriter::new(out, format);
        if graph
            && let Some(names) = self.names
            && format == ResultFormat::Rdf(RdfFormat::Turtle)
        {
            writer = writer.with_prefixes(names.prefixes());
        }
        self.writer = Some(writer);
        Ok(())
    }

    fn started(&mut self) -> Result<&mut dyn AnswerSink> {
        match &mut self.writer {
            Some(writer) => Ok(writer),
            None => Err(Error::Internal("an answer was not started".into())),
        }
    }
}

impl<O: AnswerDestination> AnswerSink for HttpSink<'_, O> {
    fn solutions(&mut self, variables: &[String]) -> Result<()> {
        self.start(false)?;
        self.started()?.solutions(variables)
    }

    fn rows(&mut self, rows: &Rows) -> Result<()> {
        self.count.add(rows.rows as u64)?;
        self.started()?.rows(rows)
    }

    fn row_text(&self) -> Option<RowText> {
        self.writer.as_ref()?.row_text()
    }

    fn raw(&mut self, text: &[u8], rows: u64) -> Result<()> {
        self.count.add(rows)?;
        self.started()?.raw(text, rows)
    }

    fn boolean(&mut self, value: bool) -> Result<()> {
        self.count.add(1)?;
        self.start(false)?;
        self.started()?.boolean(value)
    }

    fn graph(&mut self) -> Result<()> {
        self.start(true)?;
        self.started()?.graph()
    }

    fn bytes_held(&self) -> u64 {
        self.writer.as_ref().map_or(0, AnswerSink::bytes_held)
    }

    fn triple(&mut self, triple: &oxrdf::Triple) -> Result<()> {
        self.count.add(1)?;
        self.started()?.triple(triple)
    }

    fn finish(&mut self) -> Result<()> {
        self.started()?.finish()
    }
}

/// Writes rows as the quads of a graph.
pub(crate) struct QuadRowSink<'o> {
    pub(crate) writer: GraphWriter<&'o mut ResponseWriter>,
    /// True before the first row, if prefixes have to be declared.
    pub(crate) is_new: bool,
    pub(crate) format: RdfFormat,
    pub(crate) count: CountingSink,
    /// The query's budget.
    pub(crate) memory: MemoryBudget,
}

impl AnswerSink for QuadRowSink<'_> {
    fn solutions(&mut self, _: &[String]) -> Result<()> {
        Ok(())
    }

    fn rows(&mut self, rows: &Rows) -> Result<()> {
        self.count.add(rows.rows as u64)?;
        if std::mem::take(&mut self.is_new) {
            quads::declare_for(rows, &mut self.writer, &self.memory)?;
        }
        quads::push_rows(rows, self.format, &mut self.writer, &self.memory)
    }

    fn raw(&mut self, _: &[u8], _: u64) -> Result<()> {
        Err(Error::Internal("text rows for a graph".into()))
    }

    fn boolean(&mut self, _: bool) -> Result<()> {
        Err(Error::Internal("a truth value for a graph".into()))
    }

    fn graph(&mut self) -> Result<()> {
        Err(Error::Internal("a graph was asked for as rows".into()))
    }

    fn triple(&mut self, _: &oxrdf::Triple) -> Result<()> {
        Err(Error::Internal("a graph was asked for as rows".into()))
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Counts rows, and discards them.
pub(crate) struct RowCounter(pub(crate) CountingSink);

impl AnswerSink for RowCounter {
    fn solutions(&mut self, _: &[String]) -> Result<()> {
        Ok(())
    }

    fn rows(&mut self, rows: &Rows) -> Result<()> {
        self.0.add(rows.rows as u64)
    }

    fn raw(&mut self, _: &[u8], rows: u64) -> Result<()> {
        self.0.add(rows)
    }

    fn boolean(&mut self, _: bool) -> Result<()> {
        self.0.add(1)
    }

    fn graph(&mut self) -> Result<()> {
        Ok(())
    }

    fn triple(&mut self, _: &oxrdf::Triple) -> Result<()> {
        self.0.add(1)
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}
