//! Small things that many crates need, each written once.

pub mod escapes;
pub mod folders;
pub mod invisible;
pub mod nearest;
pub mod numbers;
pub mod paths;
pub mod plurals;
pub mod shorten;
pub mod time;
