//! Joins with alternative keys, of which at least one must match. Each alternative is looked up in an index of its own.

use super::join_table::{BoundClass, JoinShape, JoinTable};
use super::partners::PartnerRows;
use crate::batch::View;
use crate::explore::QueryContext;
use jindou_model::Result;

/// One worker's lookups of alternatives.
#[derive(Default)]
pub(super) struct Alternatives {
    /// For each alternative that is looked up by value, the held terms that rows match; empty for other alternatives.
    expansions: Vec<PartnerRows>,
    /// The rows of the batch that the current alternative is looked up for.
    pub rows: Vec<u32>,
}

impl Alternatives {
    pub fn new(shape: &JoinShape<'_>, ctx: &QueryContext<'_>) -> Self {
        let expansion = |by_value: bool| match by_value {
            true => PartnerRows::of_one(shape, ctx),
            false => PartnerRows::default(),
        };
        Self {
            expansions: shape.either.iter().map(|a| expansion(a.by_value)).collect(),
            rows: vec![],
        }
    }

    /// Moves an alternative's expansion out, so that it can be used while the rest of the join is borrowed.
    pub fn take(&mut self, n: usize) -> PartnerRows {
        std::mem::take(&mut self.expansions[n])
    }

    /// Moves an alternative's expansion back after [`Self::take`].
    pub fn put(&mut self, n: usize, expansion: PartnerRows) {
        if let Some(place) = self.expansions.get_mut(n) {
            *place = expansion;
        }
    }

    /// Removes the pairs of a batch row and a held row that match by an alternative before `n` and so were output
    /// already.
    pub fn new_pairs(
        &mut self,
        ctx: &QueryContext<'_>,
        table: &JoinTable<'_>,
        n: usize,
        (rows, class): (View<'_>, &BoundClass),
        (left, right): (&mut Vec<u32>, &mut Vec<u32>),
    ) -> Result<()> {
        let before = table.shape.either.iter().zip(&table.either).take(n);
        let mut kept = 0;
        for at in 0..left.len().min(right.len()) {
            let (row, held) = (left[at], right[at]);
            let mut is_known = false;
            for ((one, terms), expansion) in before.clone().zip(&mut self.expansions) {
                let cell = |column: &[u32], at: u32| column[at as usize];
                let id = cell(rows.column(one.key.left), row);
                let other = cell(&class.columns[one.key.right], held);
                is_known = id != 0
                    && other != 0
                    && match terms {
                        Some(terms) => expansion.has_pair(ctx, terms, id, other)?,
                        None => id == other,
                    };
                if is_known {
                    break;
                }
            }
            if !is_known {
                left[kept] = row;
                right[kept] = held;
                kept += 1;
            }
        }
        left.truncate(kept);
        right.truncate(kept);
        Ok(())
    }
}
