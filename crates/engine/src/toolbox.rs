//! The tools by name, and what they say about an input.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use windlass_core::Config;
use windlass_permission::Rules;
use windlass_ports::{AnyTool, ExamineContext, HiddenPaths};
use windlass_protocol::{Admission, PathFact, RawObject, ToolSpec, ToolUse};

use crate::builder::EngineError;

/// The tools of an engine.
pub(crate) struct Toolbox {
    /// All, the disallowed ones too.
    pub(crate) specs: Vec<ToolSpec>,
    by_name: BTreeMap<Arc<str>, Entry>,
}

struct Entry {
    /// The tool's own name.
    name: Arc<str>,
    tool: Arc<dyn AnyTool>,
}

/// Providers take names of this many characters.
const NAME_CHARS_MAX: usize = 64;

/// Whether providers take the tool.
fn check(spec: &ToolSpec) -> Result<(), EngineError> {
    let invalid = |problem| EngineError::Tool(format!("invalid tool {:?}: {problem}", spec.name));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !(1..=NAME_CHARS_MAX).contains(&spec.name.len()) || !spec.name.bytes().all(is_plain) {
        return Err(invalid("a tool name needs 1 to 64 letters, digits, `_` or `-`"));
    }
    let kind = RawObject::parse(spec.input_schema.get()).ok().and_then(|schema| schema.get("type"));
    if kind.is_none_or(|kind| kind.get() != r#""object""#) {
        return Err(invalid("its input schema must describe an object"));
    }
    Ok(())
}

/// What tools that look at more than they name must leave out, for a call that was decided on these paths.
pub fn hidden_paths(rules: &Rules, decided: &[PathFact]) -> HiddenPaths {
    rules.hidden_from(decided).map(HiddenPaths::new).unwrap_or_default()
}

impl Toolbox {
    pub(crate) fn new(tools: Vec<Arc<dyn AnyTool>>) -> Result<Self, EngineError> {
        let mut toolbox = Self { specs: Vec::new(), by_name: BTreeMap::new() };
        for tool in tools {
            let spec = tool.spec();
            check(&spec)?;
            for name in std::iter::once(&*spec.name).chain(spec.profile.aliases.iter().copied()) {
                let entry = Entry { name: spec.name.clone(), tool: tool.clone() };
                if toolbox.by_name.insert(name.into(), entry).is_some() {
                    return Err(EngineError::Tool(format!(
                        "two tools have the name {name}; rename one of them"
                    )));
                }
            }
            toolbox.specs.push(spec);
        }
        Ok(toolbox)
    }

    /// The tools the model sees: all but the disallowed ones.
    pub(crate) fn offered_specs(&self, rules: &Rules) -> Arc<[ToolSpec]> {
        self.specs.iter().filter(|spec| !rules.removes(&spec.name)).cloned().collect()
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Arc<dyn AnyTool>> {
        self.by_name.get(name).map(|entry| &entry.tool)
    }

    /// What a call would do, or why it cannot be made. A tool that fails here is our bug, not a reason to stop. A tool
    /// that is not on offer does not exist; that one is disallowed is for the core to say.
    pub(crate) fn examine(&self, tool_use: &ToolUse, cwd: &Path, config: &Config) -> Admission {
        let is_meant = |entry: &&Entry| {
            config.permissions.rules.removes(&entry.name)
                || config.tools.iter().any(|spec| spec.name == entry.name)
        };
        let Some(entry) = self.by_name.get(&tool_use.name).filter(is_meant) else {
            return Admission::Unknown;
        };
        let hidden = hidden_paths(&config.permissions.rules, &[]);
        let cx = ExamineContext { cwd: cwd.to_owned(), roots: config.roots.clone(), hidden };
        match catch_unwind(AssertUnwindSafe(|| entry.tool.examine(&tool_use.input.json(), &cx))) {
            Ok(Ok(facts)) => Admission::Ready { tool: entry.name.clone(), facts },
            Ok(Err(text)) => Admission::Invalid(text),
            Err(_) => Admission::Invalid(format!(
                "{} panicked while reading its input. This is a bug in the tool.",
                entry.name
            )),
        }
    }
}
