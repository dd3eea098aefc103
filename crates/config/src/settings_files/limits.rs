//! What a settings file may not say, because of where it lies.
//!
//! Whoever writes a repository must not turn protection off, send requests elsewhere or make programs run that nobody agreed to.

use serde_json::Value;

use super::keys::{KEYS, Key, KeyScope};
use super::origin::{SettingOrigin, SettingsLevel};
use super::problem::{SettingsProblem, Severity, short};
use super::tree::SettingsTree;
use crate::variables::{VARIABLES, VariableArea};

/// Modes that no file in a repository can choose.
const MODES: [&str; 2] = ["bypassPermissions", "auto"];

/// Takes out what the source may not say, and tells each.
pub(crate) fn enforce(tree: &mut SettingsTree, source: &SettingOrigin, problems: &mut Vec<SettingsProblem>) {
    let mut limits = Limits { source, problems: Vec::new() };
    for key in KEYS {
        limits.key(tree, key);
    }
    if limits.in_repository() {
        limits.mode(tree);
        limits.variables(tree);
        limits.masks(tree);
    }
    problems.extend(limits.told());
}

struct Limits<'a> {
    source: &'a SettingOrigin,
    problems: Vec<SettingsProblem>,
}

impl Limits<'_> {
    /// Whether the file lies in a repository, whoever wrote it.
    fn in_repository(&self) -> bool {
        self.source.foreign || matches!(self.source.level, SettingsLevel::Project | SettingsLevel::Local)
    }

    fn key(&mut self, tree: &mut SettingsTree, key: &Key) {
        let refused = match key.allowed {
            KeyScope::Everywhere => false,
            KeyScope::OutsideRepositories => self.in_repository(),
            KeyScope::NotForeign => self.source.foreign,
            KeyScope::Managed => self.source.level != SettingsLevel::Managed,
            KeyScope::ForeignOnly(only) => {
                self.source.foreign && tree.leaf(key.path).is_some_and(|leaf| leaf.value != only)
            }
        };
        if !refused {
            return;
        }
        let Some(origin) = tree.take(key.path) else { return };
        let advice = match key.allowed {
            KeyScope::Managed => "Only the administrator can set it.",
            KeyScope::ForeignOnly(true) => "A project can turn this on, and never off.",
            KeyScope::ForeignOnly(false) => "A project can turn this off, and never on.",
            _ => "Move it to your user settings if you want it.",
        };
        self.ignore(&origin, &format!("`{}`", key.path), advice);
    }

    fn mode(&mut self, tree: &mut SettingsTree) {
        const PATH: &str = "permissions.defaultMode";
        let chosen = |mode: &&&str| tree.leaf(PATH).is_some_and(|leaf| leaf.value == **mode);
        let Some(mode) = MODES.iter().find(chosen) else { return };
        if let Some(origin) = tree.take(PATH) {
            let advice = "Use --permission-mode or your user settings if you want it.";
            self.ignore(&origin, &format!("`{PATH}`: \"{mode}\""), advice);
        }
    }

    fn variables(&mut self, tree: &mut SettingsTree) {
        let Some(SettingsTree::Object(variables)) = tree.get_mut("env") else { return };
        let names: Vec<String> = variables.keys().filter(|name| is_ours(name)).cloned().collect();
        for name in names {
            let Some(SettingsTree::Leaf(leaf)) = variables.remove(&name) else { continue };
            let advice =
                "It decides where requests go or what protects you. Set it in your shell or user settings.";
            self.ignore(&leaf.origin, &format!("`env.{}`", short(&name)), advice);
        }
    }

    /// A placeholder that is swapped on the way out sends a secret to whoever is asked.
    fn masks(&mut self, tree: &mut SettingsTree) {
        for path in ["sandbox.credentials.files", "sandbox.credentials.envVars"] {
            let Some(SettingsTree::List(list)) = tree.get_mut(path) else { continue };
            let is_mask = |value: &Value| value["mode"] == "mask";
            let masks: Vec<SettingOrigin> = list
                .items
                .iter()
                .filter(|item| is_mask(&item.value))
                .map(|item| item.origin.clone())
                .collect();
            list.items.retain(|item| !is_mask(&item.value));
            for origin in masks {
                self.ignore(&origin, &format!("`{path}` with \"mask\""), "Use \"deny\" instead.");
            }
        }
    }

    /// The problems, or as many as anybody reads.
    fn told(mut self) -> Vec<SettingsProblem> {
        const PROBLEMS_MAX: usize = 50;
        let more = self.problems.len().saturating_sub(PROBLEMS_MAX);
        self.problems.truncate(PROBLEMS_MAX);
        if let Some(last) = self.problems.last().filter(|_| more > 0).cloned() {
            let what = format!("{more} more values are ignored in {}", self.source.what());
            self.problems.push(SettingsProblem { what, ..last });
        }
        self.problems
    }

    fn ignore(&mut self, origin: &SettingOrigin, what: &str, advice: &str) {
        let what = format!("{what} is ignored in {}", self.source.what());
        self.problems.push(SettingsProblem::at(origin, Severity::Warning, what, advice));
    }
}

/// Variables that files in a repository cannot set. They move requests, keys or our own files, loosen what protects, or load code
/// into every program. For the names that only this program and its kin read, the harmless ones are known; all others count.
fn is_ours(name: &str) -> bool {
    const PREFIXES: &str = "OTEL_ WINDLASS_ LD_ DYLD_ AWS_ GOOGLE_ CLOUDSDK_ GCLOUD_ AZURE_ VERTEX_ XDG_";
    const ENDS: &str = "_PROXY _CA_CERTS _CA_BUNDLE _API_KEY _AUTH_TOKEN _BASE_URL";
    const NAMES: &str = "SSL_CERT_FILE SSL_CERT_DIR NODE_TLS_REJECT_UNAUTHORIZED NODE_OPTIONS PYTHONHTTPSVERIFY \
        GIT_SSL_NO_VERIFY GIT_SSL_CAINFO BASH_ENV ENV HOME IS_SANDBOX";
    let upper = name.to_ascii_uppercase();
    if NAMES.split(' ').any(|known| known == upper)
        || PREFIXES.split(' ').any(|prefix| upper.starts_with(prefix))
        || ENDS.split(' ').any(|end| upper.ends_with(end))
    {
        return true;
    }
    let is_kin = upper.starts_with("ANTHROPIC_") || upper.starts_with("CLAUDE");
    is_kin && !is_harmless(name)
}

/// Choices of models and limits.
fn is_harmless(name: &str) -> bool {
    let known = VARIABLES.iter().find(|variable| variable.name == name);
    known.is_some_and(|variable| {
        !matches!(variable.area, VariableArea::Provider | VariableArea::Sessions) && name != "CLAUDE_ENV_FILE"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_move_requests_or_protection_are_ours() {
        let check = |names: &[&str], expected: bool| {
            for name in names {
                assert_eq!(is_ours(name), expected, "{name}");
            }
        };
        check(
            &[
                "ANTHROPIC_BASE_URL",
                "ANTHROPIC_API_KEY",
                "ANTHROPIC_AUTH_TOKEN",
                "ANTHROPIC_CUSTOM_HEADERS",
                "ANTHROPIC_BEDROCK_BASE_URL",
                "ANTHROPIC_SOMETHING_NEW",
                "OPENAI_BASE_URL",
                "HTTPS_PROXY",
                "https_proxy",
                "NO_PROXY",
                "NODE_EXTRA_CA_CERTS",
                "REQUESTS_CA_BUNDLE",
                "SSL_CERT_FILE",
                "OTEL_EXPORTER_OTLP_ENDPOINT",
                "CLAUDE_CODE_USE_BEDROCK",
                "CLAUDE_CODE_CLIENT_CERT",
                "CLAUDE_CODE_OAUTH_TOKEN",
                "CLAUDE_CONFIG_DIR",
                "CLAUDE_ENV_FILE",
                "CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING",
                "WINDLASS_HOME",
                "WINDLASS_SCRIPTED_HOOKS",
                "WINDLASS_ENV_PASS",
                "IS_SANDBOX",
                "LD_PRELOAD",
                "HOME",
            ],
            true,
        );
        check(
            &[
                "NODE_ENV",
                "PATH",
                "RUST_LOG",
                "ANTHROPIC_MODEL",
                "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
                "MAX_THINKING_TOKENS",
                "CI",
            ],
            false,
        );
    }
}
