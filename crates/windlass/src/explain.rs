//! Why a call would be decided so, without making it: the tool says what it would do, and the stages rule, as in a run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::value::RawValue;
use windlass_config::RunConfig;
use windlass_engine::{Answerer, PermissionCase, Permissions, decide_call, hidden_paths, missing_rules};
use windlass_ports::{AnyTool, ExamineContext};
use windlass_protocol::{CallFacts, Ruling, ToolSpec, UrlFact, Verdict};
use windlass_tools::{describe, redirect_target};

use crate::sandbox;

/// Decides about calls as an interactive run would. Runs nothing.
pub struct Explainer {
    permissions: Permissions,
    cwd: PathBuf,
    roots: Vec<PathBuf>,
    /// Those of the caller.
    tools: Vec<Arc<dyn AnyTool>>,
}

/// What a tool adds for the model.
const TO_MODEL: &str = " Correct the input and call the tool again.";

/// What would become of a call.
pub struct Explanation {
    /// The verdict with its rule and its reason.
    pub ruling: Ruling,
    /// Rules that would allow it; none if it is allowed.
    pub missing: Vec<String>,
}

/// Why a call cannot be decided about: its author must correct it.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// The tool would refuse the input.
    #[error("{tool} rejects this input: {problem}.")]
    Input {
        /// The tool.
        tool: String,
        /// What is wrong.
        problem: String,
    },
    /// No tool would go where the redirect leads.
    #[error("The redirect is not followed: {0}.")]
    Redirect(String),
}

impl Explainer {
    /// Rules by these permissions, for a call from `cwd`; `roots` are the [`working_directories`].
    pub fn new(permissions: Permissions, cwd: PathBuf, roots: Vec<PathBuf>) -> Self {
        let permissions = Permissions { asking: Answerer::Person, ..permissions };
        Self { permissions, cwd, roots, tools: Vec::new() }
    }

    /// Rules by the settings of a run.
    pub fn with_config(config: RunConfig) -> Self {
        let roots = working_directories(&config.cwd, &config.added_directories);
        let sandbox = sandbox::sandbox_permissions(&config);
        Self::new(Permissions { sandbox, ..config.settings.run.permissions }, config.cwd, roots)
    }

    /// Knows these tools beside our own.
    #[must_use]
    pub fn tools(self, tools: Vec<Arc<dyn AnyTool>>) -> Self {
        Self { tools, ..self }
    }

    /// What would become of this call, and which rules would allow it.
    pub fn explain(&self, tool: &str, input: &RawValue) -> Result<Explanation, ExplainError> {
        let facts = self.facts(tool, input)?;
        let case = self.case(tool, input, &facts);
        let ruling = in_words(decide_call(&case));
        let is_allowed = ruling.verdict == Verdict::Allow;
        let missing = if is_allowed { Vec::new() } else { missing_rules(&case) };
        Ok(Explanation { ruling, missing })
    }

    /// The ruling alone. Where a server answers with an address to go to instead, that is ruled too.
    pub fn rule(
        &self,
        tool: &str,
        input: &RawValue,
        redirect_to: Option<&str>,
    ) -> Result<Ruling, ExplainError> {
        let facts = self.facts(tool, input)?;
        let ruling = decide_call(&self.case(tool, input, &facts));
        let (Verdict::Allow, Some(url), Some(target)) = (ruling.verdict, &facts.url, redirect_to) else {
            return Ok(in_words(ruling));
        };
        let next = redirect_target(url, target).map_err(ExplainError::Redirect)?;
        if is_same_place(url, &next) {
            return Ok(ruling);
        }
        let facts = CallFacts { target: next.text.clone(), url: Some(next), ..facts };
        let after = decide_call(&self.case(tool, input, &facts));
        Ok(in_words(Ruling { reason: format!("After a redirect: {}", after.reason), ..after }))
    }

    fn facts(&self, tool: &str, input: &RawValue) -> Result<CallFacts, ExplainError> {
        let hidden = hidden_paths(&self.permissions.rules, &[]);
        let cx = ExamineContext { cwd: self.cwd.clone(), roots: self.roots.clone().into(), hidden };
        let facts = match self.own_tool(tool) {
            Some(own) => own.examine(input, &cx),
            None => describe(tool, &serde_json::from_str(input.get()).unwrap_or_default(), &cx),
        };
        facts.map_err(|problem| ExplainError::Input {
            tool: tool.to_owned(),
            problem: problem.trim_end_matches(TO_MODEL).trim_end_matches('.').to_owned(),
        })
    }

    fn case<'a>(&'a self, tool: &'a str, input: &'a RawValue, facts: &'a CallFacts) -> PermissionCase<'a> {
        let case = PermissionCase::new(tool, facts, &self.permissions, &self.roots);
        let profile = self.own_tool(tool).map_or(case.profile, |own| own.spec().profile);
        PermissionCase { input, cwd: &self.cwd, profile, ..case }
    }

    fn own_tool(&self, name: &str) -> Option<&dyn AnyTool> {
        let is_meant = |spec: &ToolSpec| *spec.name == *name || spec.profile.aliases.contains(&name);
        self.tools.iter().map(|tool| &**tool).find(|tool| is_meant(&tool.spec()))
    }
}

/// A redirection to the same host, not to a weaker connection, is part of the same decision.
fn is_same_place(from: &UrlFact, to: &UrlFact) -> bool {
    from.host == to.host && (to.is_secure || !from.is_secure)
}

/// In the mode auto a model decides before anybody is asked; the reason must not look as if it did not.
fn in_words(ruling: Ruling) -> Ruling {
    if ruling.verdict != Verdict::Classify {
        return ruling;
    }
    Ruling { reason: format!("{} In the mode auto a model decides first.", ruling.reason), ..ruling }
}

/// Every working directory by its own name and by what it leads to.
pub fn working_directories(cwd: &Path, added: &[PathBuf]) -> Vec<PathBuf> {
    let mut roots = Vec::new();
    let named = std::iter::once(cwd.to_owned()).chain(added.iter().map(|path| cwd.join(path)));
    for path in named {
        let resolved = path.canonicalize().unwrap_or_else(|_| path.clone());
        for path in [resolved, path] {
            if !roots.contains(&path) {
                roots.push(path);
            }
        }
    }
    roots
}
