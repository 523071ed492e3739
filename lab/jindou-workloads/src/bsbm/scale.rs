//! The structure of a data set: the tree of product types, and the assignment of products to producers, offers to
//! vendors, reviews to reviewers, and reviewers to sites.

use crate::random::SplitMix;
use crate::real::{ln, within_two};
use std::ops::Range;

/// Kinds of random streams: every kind and number of a thing has its own stream.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RandomStream {
    Sizes,
    FeatureCount,
    ProductType,
    Label,
    Product,
    Type,
    Feature,
    Producer,
    Vendor,
    Offer,
    Reviewer,
    Review,
    Query,
}

/// The assignment of consecutive things to owners: owner `k` has the things from `0[k]` to before `0[k + 1]`.
#[derive(Debug)]
pub(crate) struct Owned(Vec<u32>);

impl Owned {
    /// Distributes `things` things among owners. The number per owner is normally distributed with the mean `mean` and
    /// a third of it as standard deviation, within two deviations. The last owner gets the remaining things.
    fn deal(things: u32, mean: f64, random: &mut SplitMix) -> Self {
        let mut starts = vec![0];
        let mut dealt = 0;
        while dealt < things {
            let size = (mean + within_two(random) * mean / 3.0).round().max(1.0) as u32;
            dealt = dealt.saturating_add(size).min(things);
            starts.push(dealt);
        }
        Self(starts)
    }

    /// Number of owners.
    pub(crate) fn len(&self) -> u32 {
        self.0.len() as u32 - 1
    }

    /// Number of things.
    pub(crate) fn things(&self) -> u32 {
        self.0.last().copied().unwrap_or(0)
    }

    /// The owner of a thing.
    pub(crate) fn owner(&self, thing: u32) -> u32 {
        (self.0.partition_point(|start| *start <= thing) as u32).saturating_sub(1)
    }

    /// The things of an owner.
    pub(crate) fn range(&self, owner: u32) -> Range<u32> {
        self.0[owner as usize]..self.0[owner as usize + 1]
    }
}

/// The tree of product types. Type 0 is the root; types are numbered level by level.
#[derive(Debug)]
pub(crate) struct Types {
    parents: Vec<u32>,
    /// Features of type `t` are numbered from `features[t]` to before `features[t + 1]`. The root has none.
    features: Vec<u32>,
    leaves: Range<u32>,
    depth: u32,
}

impl Types {
    /// For n products, the root has 2·round(log10 n) children, other inner nodes have 8, and nodes above the leaves
    /// have 2, 4 or 8. The tree has round(log10 n / 2) + 1 levels below the root. These numbers follow from the
    /// published sizes (55 types for 666 products, 151 for 2,785, 731 for 70,812, 2,011 for 284,826) and the given data
    /// (21 for 100). Only the sizes at which 2 changes to 4, and 4 to 8, are not known exactly.
    fn new(products: u32, seed: u64) -> Self {
        let log = ln(f64::from(products.max(2))) / std::f64::consts::LN_10;
        let depth = (log / 2.0).round() as u32 + 1;
        let within = log / 2.0 - (f64::from(depth) - 1.5);
        let last = [2, 4, 8][((within * 3.0) as usize).min(2)];
        let (mut parents, mut level) = (vec![0], 0..1);
        for l in 1..=depth {
            let children = match l {
                1 => (2.0 * log.round()).max(2.0) as u32,
                l if l == depth => last,
                _ => 8,
            };
            for parent in level.clone() {
                parents.extend(std::iter::repeat_n(parent, children as usize));
            }
            level = level.end..parents.len() as u32;
        }
        let mut features = vec![0, 0];
        let mut end = 0;
        for t in 1..parents.len() as u64 {
            let mut random = SplitMix::stream(seed, RandomStream::FeatureCount as u64, t);
            end += random.range((68 / depth).max(1), (130 / depth).max(2));
            features.push(end);
        }
        Self {
            parents,
            features,
            leaves: level,
            depth,
        }
    }

    /// Number of types.
    pub(crate) fn len(&self) -> u32 {
        self.parents.len() as u32
    }

    /// Number of features of all types together.
    pub(crate) fn features(&self) -> u32 {
        self.features.last().copied().unwrap_or(0)
    }

    /// The features of a type.
    pub(crate) fn features_of(&self, of: u32) -> Range<u32> {
        self.features[of as usize]..self.features[of as usize + 1]
    }

    /// The parent of a type; `None` for the root.
    pub(crate) fn parent(&self, of: u32) -> Option<u32> {
        (of > 0).then(|| self.parents[of as usize])
    }

    /// A type and its ancestors, the root last.
    pub(crate) fn path(&self, of: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(of), |t| self.parent(*t))
    }

    /// Number of levels below the root.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }
}

/// Everything that is decided before the first statement is written.
#[derive(Debug)]
pub(crate) struct BsbmLayout {
    pub(crate) seed: u64,
    pub(crate) types: Types,
    /// Assigns products to producers.
    pub(crate) producers: Owned,
    /// Assigns offers to vendors; there are 20 offers per product.
    pub(crate) vendors: Owned,
    /// Assigns reviews to reviewers; there are 10 reviews per product.
    pub(crate) reviewers: Owned,
    /// Assigns reviewers to rating sites.
    pub(crate) sites: Owned,
}

impl BsbmLayout {
    pub(crate) fn new(products: u32, seed: u64) -> Self {
        let sizes = |kind| SplitMix::stream(seed, RandomStream::Sizes as u64, kind);
        let reviewers = Owned::deal(products.saturating_mul(10), 20.0, &mut sizes(2));
        // A site has about 10,000 reviews, and so about 500 reviewers.
        let sites = Owned::deal(reviewers.len(), 500.0, &mut sizes(3));
        Self {
            seed,
            types: Types::new(products, seed),
            producers: Owned::deal(products, 50.0, &mut sizes(0)),
            vendors: Owned::deal(products.saturating_mul(20), 2000.0, &mut sizes(1)),
            reviewers,
            sites,
        }
    }

    pub(crate) fn products(&self) -> u32 {
        self.producers.things()
    }

    pub(crate) fn stream(&self, kind: RandomStream, number: u32) -> SplitMix {
        SplitMix::stream(self.seed, kind as u64, number.into())
    }

    /// The kind of the random streams for the constants of a query template.
    pub(crate) fn query_stream(&self, name: &str) -> u64 {
        name.bytes().fold(RandomStream::Query as u64, |s, b| {
            s.wrapping_mul(257).wrapping_add(b.into())
        })
    }

    /// The type of a product, a leaf of the tree. The first leaves have the most products (half of a normal
    /// distribution, within two deviations).
    pub(crate) fn leaf(&self, product: u32) -> u32 {
        let z = within_two(&mut self.stream(RandomStream::ProductType, product)).abs();
        let leaves = self.types.leaves.len() as f64;
        self.types.leaves.start + ((z / 2.0 * leaves) as u32).min(leaves as u32 - 1)
    }

    /// Draws a product to be offered or reviewed. Products in the middle are chosen most often (normal distribution,
    /// within two deviations).
    pub(crate) fn wanted(&self, random: &mut SplitMix) -> u32 {
        let place = 0.5 + within_two(random) / 4.0;
        let products = self.products();
        ((place * f64::from(products)) as u32).min(products - 1)
    }
}

/// A unit of work: consecutive things of one kind.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Types(Range<u32>),
    Features(Range<u32>),
    /// Producers and their products.
    Producers(Range<u32>),
    /// Vendors without their offers.
    Vendors(Range<u32>),
    Offers(Range<u32>),
    /// Reviewers and their reviews.
    Reviewers(Range<u32>),
}

/// For a kind of things: their number, the number of things per unit, and the constructor of a unit.
type UnitKind = (u32, u32, fn(Range<u32>) -> Unit);

impl Unit {
    fn kinds(layout: &BsbmLayout) -> [UnitKind; 6] {
        [
            (layout.types.len(), 500, Self::Types),
            (layout.types.features(), 500, Self::Features),
            (layout.producers.len(), 4, Self::Producers),
            (layout.vendors.len(), 500, Self::Vendors),
            (layout.vendors.things(), 1000, Self::Offers),
            (layout.reviewers.len(), 40, Self::Reviewers),
        ]
    }

    /// Number of units.
    pub(super) fn count(layout: &BsbmLayout) -> u64 {
        Self::kinds(layout)
            .iter()
            .map(|(things, size, _)| u64::from(things.div_ceil(*size)))
            .sum()
    }

    /// Unit `number`; `None` if there are fewer units.
    pub(super) fn at(layout: &BsbmLayout, number: u64) -> Option<Self> {
        let mut before = 0;
        for (things, size, kind) in Self::kinds(layout) {
            let units = u64::from(things.div_ceil(size));
            if number < before + units {
                let from = (number - before) as u32 * size;
                return Some(kind(from..from.saturating_add(size).min(things)));
            }
            before += units;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the sizes in the specification's table, and of the given data.
    #[test]
    fn the_tree_has_the_published_size() {
        for (products, types) in [
            (100, 21),
            (666, 55),
            (2_785, 151),
            (70_812, 731),
            (284_826, 2_011),
        ] {
            assert_eq!(Types::new(products, 0).len(), types, "{products} products");
        }
        for products in [1, 2, 3, 5, 10, 31, 32, 1_000_000] {
            let types = Types::new(products, 0);
            assert!(!types.leaves.is_empty() && types.leaves.end == types.len());
            assert!(types.path(types.leaves.start).count() as u32 == types.depth() + 1);
        }
    }

    #[test]
    fn everything_has_an_owner() {
        let layout = BsbmLayout::new(1_234, 7);
        assert_eq!(layout.products(), 1_234);
        for owned in [&layout.producers, &layout.vendors, &layout.reviewers] {
            let mut next = 0;
            for owner in 0..owned.len() {
                let things = owned.range(owner);
                assert_eq!(things.start, next);
                next = things.end;
                assert!(things.clone().all(|t| owned.owner(t) == owner));
            }
            assert_eq!(next, owned.things());
        }
        assert_eq!(layout.sites.things(), layout.reviewers.len());
    }

    #[test]
    fn units_are_everything_once() {
        let layout = BsbmLayout::new(300, 1);
        let count = Unit::count(&layout);
        let mut offers = 0;
        for unit in 0..count {
            if let Unit::Offers(range) = Unit::at(&layout, unit).unwrap() {
                assert_eq!(range.start, offers);
                offers = range.end;
            }
        }
        assert_eq!(offers, 6_000);
        assert_eq!(Unit::at(&layout, count), None);
    }
}
