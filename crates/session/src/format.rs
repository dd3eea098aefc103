//! The lines of a log: records as JSON and back, exactly.
//!
//! What belongs to the conversation is an *entry*, in the form other programs read; everything else is a line of our own, with
//! a number and a sum, which they skip. An entry carries under `windlass` what it takes to rebuild the very same record.

mod assemble;
mod chain;
mod decode;
mod encode;
mod entry;
mod field_forms;
mod header;
mod own_lines;
mod stored_elsewhere;
mod usage;
mod values;

pub use assemble::LoggedRecord;
pub(crate) use assemble::RecordAssembler;
pub(crate) use chain::Link;
pub(crate) use decode::{EntryKind, Flaw, LogEntry, LogLine, OwnLine, decode_line};
pub use encode::{Encoder, Tail};
pub(crate) use entry::EntryOrigin;
pub(crate) use field_forms::{FieldForm, PlainForm};
pub use header::Header;
pub use own_lines::SessionMark;
pub(crate) use own_lines::{BEGINNING, OwnLineBody, SNAPSHOT_BEGINNING, check_sum, put_sum};

/// When something happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogTime {
    /// Milliseconds since some fixed moment; never goes back while a process lives.
    pub at_ms: u64,
    /// Milliseconds since 1970.
    pub wall_ms: u64,
}
