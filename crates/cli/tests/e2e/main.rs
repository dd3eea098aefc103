//! The real binary against a scripted server: what users and hosts can rely on.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod answers;
mod bad_input;
mod budgets;
mod chaos;
mod commands;
mod compaction;
mod conversation;
mod crash;
mod demo;
mod endings;
mod environment;
mod failures;
mod fallback;
mod formats;
mod guard;
mod hooks;
mod host;
mod interrupts;
mod layers;
mod limits;
mod long_run;
mod memory;
mod permissions;
mod prompts;
mod provider;
mod python_sdk;
mod recovery;
mod redaction;
mod replay;
mod resume;
mod resume_rules;
mod rewind;
mod rewound;
mod sessions;
mod settings_hooks;
mod signals;
mod store;
mod structured;
mod support;
mod terminal;
mod terminals;
mod thinking;
mod trace;
mod transitions;
