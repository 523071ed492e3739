//! Tests of planning: plans of known and of random queries, and their encoding. That plans return the right answers is
//! tested where they are executed: `jindou-engine --test all queries::`.

mod comparisons;
mod lubm;
mod random;
mod w3c;
mod wire;

use jindou_testing::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;
