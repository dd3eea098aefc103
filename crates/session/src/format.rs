//! The lines of a log: records as JSON and back, exactly.
//!
//! What belongs to the conversation is an *entry*, in the form other programs read; everything else is a line of our own, with
//! a number and a sum, which they skip. An entry carries under `windlass` what it takes to rebuild the very same record.

mod assemble;
mod chain;
mod decode;
mod encode;
mod entry;
mod events;
mod facts;
mod header;
mod held;
mod json;
mod own;
mod piece;
mod rulings;
mod usage;
mod values;

pub(crate) use assemble::Assembler;
pub use assemble::Told;
pub use decode::{Entry, EntryKind, Flaw, Line, OwnLine, decode_line};
pub use encode::{Encoder, Tail};
pub(crate) use entry::Meta;
pub use header::Header;
pub use own::Mark;
pub(crate) use own::{BEGINNING, FACTS_BEGINNING, Frame, Own};
pub(crate) use piece::{Piece, link, piece};

/// When something happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct At {
    /// Milliseconds since some fixed moment; never goes back while a process lives.
    pub at_ms: u64,
    /// Milliseconds since 1970.
    pub wall_ms: u64,
}
