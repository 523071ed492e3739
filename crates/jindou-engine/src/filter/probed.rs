//! A condition that an index decides for most ids of a batch at once. For the other ids it is computed.

use super::{ERROR, FALSE, FilterNode, FilterScratch, TRUE, ValueSource};
use crate::batch::View;
use crate::eval::EvalContext;
use crate::tree::SlotLayout;
use jindou_dictionary::index::{Probe, Verdict};
use jindou_model::Result;
use jindou_plan::Condition;

const _: () = assert!(Verdict::False as u8 == FALSE);
const _: () = assert!(Verdict::True as u8 == TRUE);
const _: () = assert!(Verdict::Error as u8 == ERROR);

pub(super) struct Probed<'a> {
    value: ValueSource,
    probe: Box<dyn Probe + 'a>,
    /// Computes the condition for rows that the index does not decide.
    otherwise: Box<FilterNode<'a>>,
}

/// The ids of a batch that an index is asked about, and its verdicts.
#[derive(Default)]
pub(super) struct ProbeRows {
    ids: Vec<u32>,
    verdicts: Vec<Verdict>,
    open: Vec<u8>,
}

impl ProbeRows {
    /// Bytes for each row of a batch.
    pub const A_ROW: usize = size_of::<u32>() + size_of::<Verdict>() + size_of::<u8>();
}

impl<'a> Probed<'a> {
    /// Wraps a condition that an index can answer; other conditions are returned unchanged.
    pub fn over(
        otherwise: FilterNode<'a>,
        c: &Condition,
        layout: &SlotLayout<'_>,
        ctx: &EvalContext<'a>,
    ) -> FilterNode<'a> {
        let asked = c.question();
        let probe = asked.and_then(|(slot, q)| Some((slot, ctx.vocabulary.probe(&q)?)));
        match probe {
            None => otherwise,
            Some((slot, probe)) => FilterNode::Probed(Box::new(Self {
                value: ValueSource::of_slot(slot, layout),
                probe,
                otherwise: Box::new(otherwise),
            })),
        }
    }

    /// As [`FilterNode::eval`].
    pub fn eval(
        &mut self,
        ctx: &EvalContext<'_>,
        rows: View<'_>,
        from: usize,
        out: &mut [u8],
        scratch: &mut FilterScratch<'_>,
    ) -> Result<()> {
        // The buffer is taken out of `scratch`, which `otherwise` gets as well; a computed condition uses no index.
        let mut asked = std::mem::take(&mut scratch.shared.probe);
        let done = self.eval_in(ctx, rows, from, out, scratch, &mut asked);
        scratch.shared.probe = asked;
        done
    }

    fn eval_in(
        &mut self,
        ctx: &EvalContext<'_>,
        rows: View<'_>,
        from: usize,
        out: &mut [u8],
        scratch: &mut FilterScratch<'_>,
        asked: &mut ProbeRows,
    ) -> Result<()> {
        let n = out.len();
        let column = match self.value {
            ValueSource::Column(c) if out.iter().all(|&o| o == TRUE) => {
                rows.column(c).get(from..from + n)
            }
            _ => None,
        };
        let ids = match column {
            Some(ids) => ids,
            None => {
                let value = self.value;
                asked.ids.clear();
                // Rows that are not wanted are treated as unbound, which the index answers without a lookup.
                asked
                    .ids
                    .extend(out.iter().enumerate().map(|(i, &o)| match o {
                        TRUE => value.at(rows, from + i),
                        _ => 0,
                    }));
                &asked.ids
            }
        };
        // Ids that the index does not know stay unsettled.
        asked.verdicts.clear();
        asked.verdicts.resize(n, Verdict::Unsettled);
        self.probe.test_many(ids, &mut asked.verdicts);
        let mut unsettled = false;
        for (o, &v) in out.iter_mut().zip(&asked.verdicts) {
            let is_open = v == Verdict::Unsettled && *o == TRUE;
            unsettled |= is_open;
            *o = if is_open || *o != TRUE { *o } else { v as u8 };
        }
        if !unsettled {
            return Ok(());
        }
        // The condition is computed only for rows that are wanted and unsettled.
        asked.open.clear();
        let wanted = out.iter().zip(&asked.verdicts);
        asked
            .open
            .extend(wanted.map(|(&o, &v)| u8::from(o == TRUE && v == Verdict::Unsettled)));
        self.otherwise
            .eval(ctx, rows, from, &mut asked.open, scratch)?;
        for ((o, &v), &computed) in out.iter_mut().zip(&asked.verdicts).zip(&asked.open) {
            if *o == TRUE && v == Verdict::Unsettled {
                *o = computed;
            }
        }
        Ok(())
    }
}
