//! How the model is to think and how hard it is to try: flags first, then the environment.

use windlass_core::{ThinkingMode, ThinkingWish};
use windlass_protocol::{Effort, ThinkingDisplay};

use crate::flags::Flags;
use crate::numbers::thinking_tokens;
use crate::{ConfigError, Settings};

/// How the model is to think.
pub(crate) fn wish(settings: &Settings, flags: &Flags) -> Result<ThinkingWish, ConfigError> {
    let display = display(flags)?;
    let tokens = thinking_tokens(flags)?;
    let stated = flags.thinking.as_deref();
    // A number in the environment is what `enabled` means by itself; other words replace it.
    let inherited =
        if matches!(stated, None | Some("enabled")) { settings.models.thinking_tokens } else { None };
    let mode = match stated {
        None => ThinkingMode::Auto,
        Some("adaptive" | "enabled") => ThinkingMode::Adaptive,
        Some("disabled") => ThinkingMode::Disabled,
        Some(other) => {
            return Err(ConfigError::flag("--thinking", other, "use adaptive, enabled or disabled"));
        }
    };
    if let (Some(thinking), Some(tokens)) = (stated, tokens)
        && (thinking == "disabled") != (tokens == 0)
    {
        return Err(ConfigError::Thinking { thinking: thinking.into(), tokens: tokens.to_string() });
    }
    Ok(match tokens.or(inherited) {
        Some(0) if stated == Some("enabled") => ThinkingWish { mode, budget_tokens: None, display },
        Some(0) => ThinkingWish { mode: ThinkingMode::Disabled, budget_tokens: None, display },
        budget_tokens => ThinkingWish { mode, budget_tokens, display },
    })
}

/// How hard the model is to try.
pub(crate) fn effort(settings: &Settings, flags: &Flags) -> Result<Option<Effort>, ConfigError> {
    let Some(name) = flags.effort.as_deref() else { return Ok(settings.run.effort) };
    let level = Effort::from_name(&name.trim().to_ascii_lowercase());
    level.map(Some).ok_or_else(|| ConfigError::flag("--effort", name, "use low, medium, high, xhigh or max"))
}

fn display(flags: &Flags) -> Result<Option<ThinkingDisplay>, ConfigError> {
    let Some(name) = flags.thinking_display.as_deref() else { return Ok(None) };
    let known = [ThinkingDisplay::Summarized, ThinkingDisplay::Omitted];
    let found = known.into_iter().find(|display| display.name() == name);
    found.map(Some).ok_or_else(|| ConfigError::flag("--thinking-display", name, "use summarized or omitted"))
}
