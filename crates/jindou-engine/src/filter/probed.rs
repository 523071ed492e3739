//! A condition that an index answers for most rows: ids are judged a batch at a time, and what is left unsettled is computed.

use super::{ERROR, FALSE, Node, Scratch, TRUE, Value};
use crate::batch::View;
use crate::explore::Run;
use jindou_dictionary::index::{Probe, Verdict};
use jindou_model::Result;
use jindou_plan::{Condition, Slot};

const _: () = assert!(Verdict::False as u8 == FALSE);
const _: () = assert!(Verdict::True as u8 == TRUE);
const _: () = assert!(Verdict::Error as u8 == ERROR);

pub(super) struct Probed<'a> {
    value: Value,
    probe: Box<dyn Probe + 'a>,
    /// The condition itself, for rows that the index does not settle.
    otherwise: Box<Node<'a>>,
    ids: Vec<u32>,
    verdicts: Vec<Verdict>,
    open: Vec<u8>,
}

impl<'a> Probed<'a> {
    /// The condition behind an index that knows it; as it is, if none does.
    pub fn over(otherwise: Node<'a>, c: &Condition, layout: &[Slot], run: &Run<'a>) -> Node<'a> {
        let asked = c.question();
        let probe = asked.and_then(|(slot, q)| Some((slot, run.vocabulary.probe(&q)?)));
        match probe {
            None => otherwise,
            Some((slot, probe)) => Node::Probed(Box::new(Self {
                value: Value::of(slot, layout),
                probe,
                otherwise: Box::new(otherwise),
                ids: vec![],
                verdicts: vec![],
                open: vec![],
            })),
        }
    }

    /// As [`Node::eval`].
    pub fn eval(
        &mut self,
        run: &Run<'_>,
        rows: View<'_>,
        from: usize,
        out: &mut [u8],
        scratch: &mut Scratch<'_>,
    ) -> Result<()> {
        let n = out.len();
        let column = match self.value {
            Value::Column(c) if out.iter().all(|&o| o == TRUE) => {
                rows.column(c).get(from..from + n)
            }
            _ => None,
        };
        let ids = match column {
            Some(ids) => ids,
            None => {
                let value = self.value;
                self.ids.clear();
                // Rows that are not wanted are as if unbound, which costs nothing.
                self.ids
                    .extend(out.iter().enumerate().map(|(i, &o)| match o {
                        TRUE => value.at(rows, from + i),
                        _ => 0,
                    }));
                &self.ids
            }
        };
        // Whatever an index leaves out is unsettled.
        self.verdicts.clear();
        self.verdicts.resize(n, Verdict::Unsettled);
        self.probe.test_many(ids, &mut self.verdicts);
        let mut unsettled = false;
        for (o, &v) in out.iter_mut().zip(&self.verdicts) {
            let is_open = v == Verdict::Unsettled && *o == TRUE;
            unsettled |= is_open;
            *o = if is_open || *o != TRUE { *o } else { v as u8 };
        }
        if !unsettled {
            return Ok(());
        }
        // Those that are wanted and settled are not computed again.
        self.open.clear();
        let wanted = out.iter().zip(&self.verdicts);
        self.open
            .extend(wanted.map(|(&o, &v)| u8::from(o == TRUE && v == Verdict::Unsettled)));
        self.otherwise
            .eval(run, rows, from, &mut self.open, scratch)?;
        for ((o, &v), &computed) in out.iter_mut().zip(&self.verdicts).zip(&self.open) {
            if *o == TRUE && v == Verdict::Unsettled {
                *o = computed;
            }
        }
        Ok(())
    }
}
