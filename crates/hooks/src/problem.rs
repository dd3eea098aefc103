//! What is wrong with a configured hook.

use std::fmt;

/// Something in the hooks of a settings file that has no effect, or not the one that was meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookProblem {
    /// Where it stands.
    pub origin: String,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub advice: String,
    /// What does not run for it.
    pub left_out: Option<&'static str>,
    /// Whether nothing may start: what does not run says that nothing passes without it.
    pub stops: bool,
}

impl HookProblem {
    pub(crate) fn new(origin: &str, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { origin: origin.into(), what: what.into(), advice: advice.into(), left_out: None, stops: false }
    }

    /// The same, with what does not run for it.
    pub(crate) fn leaves(self, left_out: &'static str) -> Self {
        Self { left_out: Some(left_out), ..self }
    }

    /// The same; nothing may start if `stops`.
    pub(crate) fn stops_if(self, stops: bool) -> Self {
        Self { stops, ..self }
    }
}

impl fmt::Display for HookProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.what)?;
        if let Some(left_out) = self.left_out {
            write!(f, ", so {left_out}")?;
        }
        write!(f, "; {}", self.advice)?;
        if self.stops {
            f.write_str("; nothing starts without a hook whose \"onFailure\" blocks")?;
        }
        Ok(())
    }
}
