//! Variables that a line sets for itself, each once or the line is not plain: `out=$(git status); echo "$out"`.

use super::scan::Token;
use super::word::RawWord;
use super::{After, Parts, Reader, Result, is_loop_variable, no};
use crate::Word;
use crate::names::has_name;

/// Names in capitals that people give to what they keep, and programs hardly look at.
const OWN: &str = "BASE BRANCH CODE COMMIT COUNT DIR EC END EXIT EXIT_CODE FILE FILES FIRST LAST N NAME OUT OUTPUT RC RES RESULT RET \
    ROOT SHA START STATUS T VERSION";

/// What the variables of a line are set to.
#[derive(Default)]
pub(super) struct Assigned {
    /// Every variable that is set, by whatever means.
    names: Vec<String>,
    /// Those that are set to a known text.
    values: Vec<(String, String)>,
}

impl Assigned {
    /// Notes that a loop or `read` sets a variable. Several may set the same, one after the other.
    pub(super) fn note_loop(&mut self, name: &str) -> Result<()> {
        if self.values.iter().any(|(other, _)| other == name) {
            return Err(no("it sets a variable twice"));
        }
        if !self.sets(name) {
            self.names.push(name.to_owned());
        }
        Ok(())
    }

    /// How many variables are set.
    pub(super) fn count(&self) -> usize {
        self.names.len()
    }

    /// Whether the line sets a variable.
    pub(super) fn sets(&self, name: &str) -> bool {
        self.names.iter().any(|other| other == name)
    }

    fn note(&mut self, name: &str) -> Result<()> {
        if self.sets(name) {
            return Err(no("it sets a variable twice"));
        }
        self.names.push(name.to_owned());
        Ok(())
    }

    /// Refuses builtins that would set a variable once more.
    pub(super) fn refuse_others(&self, words: &[Word]) -> Result<()> {
        let Some((name, arguments)) = words.split_first() else { return Ok(()) };
        if matches!(name.text.as_str(), "source" | ".") && !self.values.is_empty() {
            return Err(no("it sources a file that may set its variables"));
        }
        if !matches!(name.text.as_str(), "export" | "read") {
            return Ok(());
        }
        let is_set = |word: &Word| {
            let name = word.text.split('=').next().unwrap_or_default();
            self.values.iter().any(|(other, _)| other == name)
        };
        if arguments.iter().any(is_set) {
            return Err(no("it sets a variable twice"));
        }
        Ok(())
    }

    /// Puts the value of a variable into the word in which that is the only unknown part.
    pub(super) fn fill(&self, variable: &str, word: &mut Word) -> Result<()> {
        let Some((_, value)) = self.values.iter().find(|(name, _)| name == variable) else { return Ok(()) };
        if word.is_split && value.contains([' ', '\t', '\n']) {
            return Err(no("a variable in it becomes several words"));
        }
        if word.is_pattern || (word.is_split && value.contains(['*', '?', '[', '\\'])) {
            return Ok(());
        }
        word.text = word.text.replacen('\0', value, 1);
        (word.is_split, word.is_arbitrary) = (false, false);
        Ok(())
    }
}

impl Reader<'_> {
    /// Takes in a command that only sets variables.
    pub(super) fn assign(&mut self, parts: Parts) -> Result<After> {
        if parts.has_redirection || parts.sets_separator || parts.sets.is_empty() {
            return Err(no("it sets a variable"));
        }
        let runs_beside = matches!(self.peek()?, Token::Operator("|" | "|&" | "&"));
        let is_certain = self.depth == 0 && !self.may_skip && !runs_beside;
        for (name, value) in parts.sets {
            if !is_loop_variable(&name) && !has_name(OWN, &name) {
                return Err(format!("it sets {name}"));
            }
            self.assigned.note(&name)?;
            if let Some(text) = known_text(&value).filter(|_| is_certain) {
                self.assigned.values.push((name, text));
            }
        }
        Ok(After::same(&self.here))
    }
}

/// The text that a variable holds, if it is the one that is written.
fn known_text(value: &RawWord) -> Option<String> {
    let text = value.text();
    (!text.is_empty() && !text.contains(['\0', '~'])).then_some(text)
}
