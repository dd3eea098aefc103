//! A scripted Messages API over loopback HTTP, and a way to run the real binary against it.
//!
//! Purpose: end-to-end tests and benchmarks that go through the real client, real HTTP and the real binary.
//! Invariant: the server plays the same scripts as `ScriptModel`, refuses what the real API would refuse, and adds
//! no work between a request and its answer that would blur a measurement. Nothing here ships in the binary.
//!
//! ```
//! use windlass_testkit::{Script, Server};
//! let script = Script::parse(r#"{"responses": [{"blocks": [{"text": "Hello."}]}]}"#)?;
//! let server = Server::start(script)?;
//! assert!(server.url().starts_with("http://127.0.0.1:"));
//! assert!(server.exchanges().is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A server that does more comes from [`Server::builder`]: it binds thinking to its prefix, has a window, counts tokens,
//! plays another script for another model, or does not know a beta. A test then runs the binary and looks at what was asked:
//!
//! ```no_run
//! use windlass_testkit::{Project, Script, Server};
//! let script = Script::parse(r#"{"responses": [{"blocks": [{"text": "Hello."}]}]}"#)?;
//! let server = Server::builder(script).bind_thinking().window_tokens(20_000).start()?;
//! let project = Project::new()?;
//! let finished = project.command("windlass").server(&server).args(["-p", "hi"]).run()?;
//! assert_eq!(finished.code(), Some(0));
//! assert_eq!(server.refusals(), [""; 0], "every request was valid");
//! assert!(server.exchanges().iter().all(|exchange| exchange.is_streamed));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod binding;
mod builder;
mod check;
mod check_settings;
mod connection;
mod counting;
mod exchange;
mod http;
mod project;
mod render;
mod server;
mod test_process;

pub use builder::ServerBuilder;
pub use exchange::{Exchange, Reply, ReplyEnd};
pub use project::{Project, WindlassCommand};
pub use server::{Server, ServerOptions};
pub use test_process::{FinishedProcess, TestProcess};

/// Scripts, as the server plays them.
pub use windlass_models::Script;
