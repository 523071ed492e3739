//! Iteration over document numbers in ascending order: those of a tantivy list, of a copied list, or of several lists.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tantivy::postings::SegmentPostings;
use tantivy::{DocSet, HasLen, TERMINATED};

pub(crate) enum Docs {
    One(Box<SegmentPostings>),
    List { docs: Vec<u32>, at: usize },
    Any(Any),
}

/// The union of several lists, each document once.
pub(crate) struct Any {
    lists: Vec<Docs>,
    /// The current document of each list that has not ended, smallest first.
    open: BinaryHeap<Reverse<(u32, usize)>>,
}

impl Docs {
    pub fn one(list: SegmentPostings) -> Self {
        Self::One(Box::new(list))
    }

    pub fn list(docs: Vec<u32>) -> Self {
        Self::List { docs, at: 0 }
    }

    pub fn any(mut lists: Vec<Self>) -> Self {
        if lists.len() == 1
            && let Some(list) = lists.pop()
        {
            return list;
        }
        let open = lists.iter().enumerate().map(|(i, l)| Reverse((l.doc(), i)));
        Self::Any(Any {
            open: open.filter(|o| o.0.0 < TERMINATED).collect(),
            lists,
        })
    }

    /// Approximate number of documents.
    pub fn size(&self) -> u64 {
        match self {
            Self::One(list) => list.len() as u64,
            Self::List { docs, .. } => docs.len() as u64,
            Self::Any(any) => any.lists.iter().map(Self::size).sum(),
        }
    }

    /// The current document; [`TERMINATED`] at the end.
    pub fn doc(&self) -> u32 {
        match self {
            Self::One(list) => list.doc(),
            Self::List { docs, at } => docs.get(*at).copied().unwrap_or(TERMINATED),
            Self::Any(any) => any.open.peek().map_or(TERMINATED, |o| o.0.0),
        }
    }

    /// Moves to the next document and returns it.
    pub fn advance(&mut self) -> u32 {
        match self.doc() {
            TERMINATED => TERMINATED,
            doc => self.seek(doc + 1),
        }
    }

    /// Moves to the first document that is at least `to`, and returns it.
    pub fn seek(&mut self, to: u32) -> u32 {
        match self {
            Self::One(list) if list.doc() >= to => {}
            Self::One(list) if list.doc().checked_add(1) == Some(to) => {
                list.advance();
            }
            Self::One(list) => {
                list.seek(to);
            }
            Self::List { docs, at } => {
                let rest = docs.get(*at..).unwrap_or(&[]);
                *at += rest.partition_point(|&d| d < to);
            }
            Self::Any(any) => any.seek(to),
        }
        self.doc()
    }
}

impl Any {
    fn seek(&mut self, to: u32) {
        while let Some(mut least) = self.open.peek_mut() {
            let (at, i) = least.0;
            if at >= to {
                return;
            }
            match self.lists.get_mut(i).map_or(TERMINATED, |l| l.seek(to)) {
                // A list that does not ascend is damaged, and is treated as ended.
                doc if doc < to || doc >= TERMINATED => {
                    std::collections::binary_heap::PeekMut::pop(least);
                }
                doc => least.0.0 = doc,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut docs: Docs) -> Vec<u32> {
        let mut out = vec![];
        while docs.doc() < TERMINATED {
            out.push(docs.doc());
            docs.advance();
        }
        out
    }

    #[test]
    fn lists_are_merged_and_sought_in() {
        let lists = || {
            let lists = [vec![1, 5, 9], vec![], vec![2, 5, 7], vec![9]];
            Docs::any(lists.map(Docs::list).into())
        };
        assert_eq!(all(lists()), [1, 2, 5, 7, 9]);
        let mut docs = lists();
        assert_eq!(docs.seek(3), 5);
        assert_eq!(docs.seek(5), 5);
        assert_eq!(docs.seek(8), 9);
        assert_eq!(docs.seek(10), TERMINATED);
        assert_eq!(docs.advance(), TERMINATED);
        assert_eq!(all(Docs::any(vec![])), [0; 0]);
    }
}
