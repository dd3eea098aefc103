//! Which models a run asks: what flags, variables and settings name, as far as it may be chosen.

use crate::variables::{self, MODEL};
use crate::{ConfigError, FileSettings, Flags, ModelChoice, Settings};

/// The model where nothing names one.
const DEFAULT_MODEL: &str = "claude-opus-5-5";

pub(crate) fn model(
    settings: &Settings,
    flags: &Flags,
    files: &FileSettings,
) -> Result<ModelChoice, ConfigError> {
    if flags.model.as_deref().is_some_and(|name| name.trim().is_empty()) {
        return Err(ConfigError::flag("--model", "", &format!("give {MODEL}")));
    }
    let named = |name: &Option<String>| {
        name.as_deref().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned)
    };
    let models = &settings.models;
    let of_flag = named(&flags.model);
    let by_flag = of_flag.is_some();
    let chosen = of_flag.or_else(|| named(&models.model)).or_else(|| named(&models.default));
    let name = match chosen {
        Some(name) => check(name, files)?,
        None => default(files)?,
    };
    Ok(ModelChoice { name, by_flag })
}

/// Ours, or the first that may be chosen if ours may not.
fn default(files: &FileSettings) -> Result<String, ConfigError> {
    let first = files.available_models.iter().flatten().next();
    match first {
        Some(first) if !files.allows_model(DEFAULT_MODEL) => Ok(first.value.trim().to_owned()),
        _ => check(DEFAULT_MODEL.to_owned(), files),
    }
}

fn check(name: String, files: &FileSettings) -> Result<String, ConfigError> {
    if files.allows_model(&name) {
        return Ok(name);
    }
    let available = files.available_models.iter().flatten();
    let list: Vec<&str> = available.map(|entry| entry.value.as_str()).collect();
    let choice = if list.is_empty() { "none may be".into() } else { format!("choose {}", list.join(", ")) };
    Err(ConfigError::Refused(format!(
        "the model {name} may not be chosen here: {choice}. The setting `availableModels` says so; `windlass config show` \
         tells where it stands."
    )))
}

/// The models that take over. One that a settings file names and that may not be chosen is left out.
pub(crate) fn fallbacks(
    flags: &Flags,
    files: &FileSettings,
    warnings: &mut Vec<String>,
) -> Result<Vec<String>, ConfigError> {
    let Some(text) = &flags.fallback_models else {
        let (allowed, others): (Vec<_>, Vec<_>) =
            files.fallback_models.iter().partition(|model| files.allows_model(&model.value));
        warnings.extend(others.into_iter().map(|model| {
            let (name, origin) = (&model.value, &model.origin);
            format!("{origin}: {name} does not take over: `availableModels` does not have it.")
        }));
        return Ok(allowed.into_iter().map(|model| model.value.clone()).collect());
    };
    let names = variables::list(text);
    if names.is_empty() {
        let accepts = "give one or more models, separated by commas";
        return Err(ConfigError::flag("--fallback-model", "", accepts));
    }
    names.into_iter().map(|name| check(name, files)).collect()
}
