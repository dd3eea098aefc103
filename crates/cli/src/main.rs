//! The windlass command.
fn main() {}
