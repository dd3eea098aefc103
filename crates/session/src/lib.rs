//! The log of a session on disk: append, read, list, repair, copy.
//!
//! One JSONL file per session holds everything that was said, decided and done. It is only ever appended to, and it can always
//! be read: what is damaged is skipped and reported, never fatal. This crate never interprets what it stores.

mod catalogue;
mod checkpoints;
mod disk;
mod export;
mod format;
mod history;
mod index;
mod layout;
mod lease;
mod preview;
mod read;
mod repository;
mod search;
mod sync;
mod title;
mod trash;
mod turns;
mod writer;

use windlass_text::time;

pub use catalogue::{Catalogue, FindError, ListScope, SessionFilter, SessionInfo};
pub use checkpoints::{
    Checkpoints, CommandRun, FailedPath, PointInfo, RewindAction, RewindChange, RewindError, RewindPlan,
    RewindPoint, RewindResult, SkippedPath, copy_checkpoints,
};
pub use export::{ExportFormat, Redact, export};
pub use format::{Encoder, Header, LogTime, LoggedRecord, SessionMark, Tail};
pub use history::{SearchSpeaker, SessionOutline, outline};
pub use layout::{SessionLayout, SessionPaths, create_private};
pub use lease::{Lease, LeaseError, SessionBusy};
pub use preview::SessionPreview;
pub use read::{
    Damage, LoadError, LoadedLog, LogEnd, LogItem, LogItems, TornEnd, copy_log, load, load_back, log_items,
};
pub use repository::{GitProgram, Identity, Repository};
pub use search::{SearchHit, search};
pub use title::rename;
pub use trash::{TrashError, TrashedSession, remove, restore, trashed_sessions};
pub use turns::{PromptLine, check_dropped, prompts};
pub use windlass_protocol::SyncPolicy;
pub use writer::{LogOptions, LogWriter, Marker, PreImageTaker};
