//! What the permission check promises, on a large table of attacks and of everyday calls.
//!
//! The tables `attacks.jsonl` and `benign.jsonl` hold one case on a line, in the form that `windlass permissions explain --batch`
//! reads, with what must become of it beside it. They are decided by the real binary; what holds for every case, whatever the rules
//! are, is checked in this process, where rules and calls can be changed at will.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "a seed that is not printed cannot be tried again")]

mod case;
mod mutate;
mod offers;
mod parts;
mod rules;
mod said;
mod spelling;
mod table;
mod wild;
