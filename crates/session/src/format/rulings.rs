//! What is known about command lines and addresses, and what was decided about calls.

use std::net::{Ipv4Addr, Ipv6Addr};

use windlass_protocol::{
    Behaviour, CommandEffect, CommandFacts, Destination, FoundCommand, HostFact, NamedPath, Naming,
    PermissionChange, PermissionUpdate, PlainCommand, Ruled, Ruling, RulingRule, UrlFact, Verdict,
};

use super::json::{Fields, Json, Object, Plain, Unfit, choice, names, object, put_serde, text};

names!(CommandEffect { "looks" = Looks, "changes_files" = ChangesFiles, "unknown" = Unknown });
names!(Naming { "exact" = Exact, "pattern" = Pattern, "unknown" = Unknown, "mentioned" = Mentioned });
names!(Verdict { "allow" = Allow, "ask" = Ask, "classify" = Classify, "deny" = Deny });
names!(Behaviour { "allow" = Allow, "ask" = Ask, "deny" = Deny });
names!(Destination { "session" = Session, "local" = Local, "project" = Project, "user" = User });

object!(NamedPath { path, naming, recursive, redirected });
object!(PlainCommand { text, words, whole, exact_only, spelled, effect, reads, writes, network });
object!(FoundCommand { words, reads, writes, removes });
object!(CommandFacts { line, plain, found, unseen, hidden });
object!(UrlFact { text, secure, host, port });
choice!(HostFact { "name" = Name(name), "v4" = V4(address), "v6" = V6(address) });

object!(RulingRule { text, source });
object!(Ruled { call, tool_use_id, tool, ruling });

/// The verdict goes by the name that other tools know too.
impl Json for Ruling {
    fn put(&self, out: &mut Vec<u8>) {
        let Self { verdict, rule, reason, undecided } = self;
        let mut object = Object::open(out);
        object.field::<_, Plain>("decision", verdict);
        object.field::<_, Plain>("rule", rule);
        object.field::<_, Plain>("reason", reason);
        if *undecided {
            object.field::<_, Plain>("undecided", undecided);
        }
        object.close();
    }

    fn take(json: &str) -> Result<Self, Unfit> {
        let fields = Fields::parse(json)?;
        let (verdict, rule) = (fields.read::<_, Plain>("decision")?, fields.read::<_, Plain>("rule")?);
        let undecided = fields.raw("undecided").is_some_and(|raw| raw.get() == "true");
        Ok(Self { verdict, rule, reason: fields.read::<_, Plain>("reason")?, undecided })
    }
}

object!(PermissionUpdate { change, destination });
choice!(PermissionChange {
    "add_rules" = AddRules { behaviour, rules },
    "replace_rules" = ReplaceRules { behaviour, rules },
    "remove_rules" = RemoveRules { behaviour, rules },
    "set_mode" = SetMode(mode),
    "add_directories" = AddDirectories(paths),
    "remove_directories" = RemoveDirectories(paths),
});

/// Every command of a line, or why that cannot be said.
impl Json for Result<Vec<PlainCommand>, String> {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Ok(commands) => commands.put(out),
            Err(why) => put_serde(why, out),
        }
    }

    fn take(json: &str) -> Result<Self, Unfit> {
        if json.starts_with('"') {
            text(json).map(|why| Err(why.into_owned()))
        } else {
            Json::take(json).map(Ok)
        }
    }
}

macro_rules! addresses {
    ($($type:ty),*) => {$(
        impl Json for $type {
            fn put(&self, out: &mut Vec<u8>) {
                put_serde(&self.to_string(), out);
            }

            fn take(json: &str) -> Result<Self, Unfit> {
                text(json)?.parse().map_err(Unfit::new)
            }
        }
    )*};
}

addresses!(Ipv4Addr, Ipv6Addr);
