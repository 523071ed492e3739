//! Planning: the plans of known and of random queries, and as bytes. What plans mean is tested where they are executed: `jindou-engine --test all queries::`.

mod comparisons;
mod lubm;
mod random;
mod w3c;
mod wire;

use jindou_testing::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;
