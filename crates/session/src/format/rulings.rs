//! What is known about command lines and addresses, and what was decided about calls.

use serde::{Deserialize, Deserializer, Serialize as _, Serializer};
use serde_json::value::RawValue;
use windlass_protocol::{
    Behaviour, CallRuling, CommandEffect, CommandFacts, CommandPath, CommandWord, FoundCommand, HostFact,
    NamedPath, PathFact, PathNaming, PermissionChange, PermissionUpdate, PlainCommand, Ruling, RulingRule,
    SettingsDestination, UrlFact, Verdict,
};

use super::form::{FieldForm, PlainForm, choice, names, object, text};

names!(CommandEffect { "looks" = Looks, "changes_files" = ChangesFiles, "unknown" = Unknown });
names!(PathNaming { "exact" = Exact, "pattern" = Pattern, "unknown" = Unknown, "mentioned" = Mentioned });
names!(Verdict { "allow" = Allow, "ask" = Ask, "classify" = Classify, "deny" = Deny });
names!(Behaviour { "allow" = Allow, "ask" = Ask, "deny" = Deny });
names!(SettingsDestination { "session" = Session, "local" = Local, "project" = Project, "user" = User });

object!(NamedPath { path, naming, recursive, redirected });
object!(PlainCommand { text, words, whole, exact_only, spelled, effect, reads, writes, network });
object!(FoundCommand { words, reads, writes, removes });
object!(CommandFacts { line, plain, found, unseen, hidden });
object!(UrlFact { text, secure, host, port });
choice!(HostFact { "name" = Name(name), "v4" = V4(address), "v6" = V6(address) });

object!(RulingRule { text, source });
object!(CallRuling { call, tool_use_id, tool, ruling });

// The verdict goes by the name that other tools know too.
object!(Ruling { verdict = "decision", rule, reason, undecided });

object!(PermissionUpdate { change, destination });
choice!(PermissionChange {
    "add_rules" = AddRules { behaviour, rules },
    "replace_rules" = ReplaceRules { behaviour, rules },
    "remove_rules" = RemoveRules { behaviour, rules },
    "set_mode" = SetMode(mode),
    "add_directories" = AddDirectories(paths),
    "remove_directories" = RemoveDirectories(paths),
});

/// Stands in the log for a part of a word that is only known when the line runs. No command line can hold it.
const UNKNOWN_MARK: &str = "\0";

/// Its text, with a mark for each part that is not known.
impl FieldForm<CommandWord> for PlainForm {
    fn serialize<S: Serializer>(value: &CommandWord, to: S) -> Result<S::Ok, S::Error> {
        value.marked(UNKNOWN_MARK).serialize(to)
    }

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<CommandWord, D::Error> {
        text(from).map(|text| CommandWord::from_marked(&text, UNKNOWN_MARK))
    }
}

/// The path in the form of one that was looked up, with marks in its name.
impl FieldForm<CommandPath> for PlainForm {
    fn serialize<S: Serializer>(value: &CommandPath, to: S) -> Result<S::Ok, S::Error> {
        match value {
            CommandPath::Known(path) => Self::serialize(path, to),
            CommandPath::Partial(word) => {
                let lexical = word.marked(UNKNOWN_MARK).into_owned().into();
                Self::serialize(&PathFact { lexical, resolved: None, is_directory: false }, to)
            }
        }
    }

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<CommandPath, D::Error> {
        let path: PathFact = Self::deserialize(from)?;
        Ok(match CommandWord::from_marked(&path.lexical.to_string_lossy(), UNKNOWN_MARK) {
            CommandWord::Known(_) => CommandPath::Known(path),
            word @ CommandWord::Partial(_) => CommandPath::Partial(word),
        })
    }
}

/// Every command of a line, or why that cannot be said.
impl FieldForm<Result<Vec<PlainCommand>, String>> for PlainForm {
    fn serialize<S: Serializer>(value: &Result<Vec<PlainCommand>, String>, to: S) -> Result<S::Ok, S::Error> {
        match value {
            Ok(commands) => Self::serialize(commands, to),
            Err(why) => why.serialize(to),
        }
    }

    fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Result<Vec<PlainCommand>, String>, D::Error> {
        let raw = <&RawValue>::deserialize(from)?;
        let known = if raw.get().starts_with('"') {
            text(raw).map(|why| Err(why.into_owned()))
        } else {
            Self::deserialize(raw).map(Ok)
        };
        known.map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: std::fmt::Debug + PartialEq>(value: &T, expected: &str)
    where
        PlainForm: FieldForm<T>,
    {
        let mut json = Vec::new();
        PlainForm::serialize(value, &mut serde_json::Serializer::new(&mut json)).unwrap();
        assert_eq!(String::from_utf8(json).unwrap(), expected);
        let back: T = PlainForm::deserialize(&mut serde_json::Deserializer::from_str(expected)).unwrap();
        assert_eq!(back, *value);
    }

    #[test]
    fn what_is_not_known_of_a_word_is_a_nul_in_the_log() {
        check(&CommandWord::from("rm"), r#""rm""#);
        check(&CommandWord::unknown(), r#""\u0000""#);
        check(&CommandWord::Partial(vec!["a".into(), String::new(), "b".into()]), r#""a\u0000\u0000b""#);
        let path = CommandPath::Partial(CommandWord::from_marked("/srv/$/a", "$"));
        check(&path, r#"{"lexical":"/srv/\u0000/a"}"#);
        let fact = PathFact { lexical: "/a".into(), resolved: Some("/b".into()), is_directory: true };
        check(&CommandPath::Known(fact), r#"{"lexical":"/a","resolved":"/b","is_directory":true}"#);
    }
}
