//! How the log writes values with serde and takes them back, exactly. The types are those of `protocol`, which knows nothing of
//! a disk, so serde's traits cannot be implemented for them here; and derived code would buffer the variants of an enum, which
//! loses the bytes of the blocks in them. A list of fields gives both directions, and one that is missing does not compile.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Display;
use std::marker::PhantomData;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use uuid::Uuid;
use windlass_protocol::{
    Behaviour, Block, CacheCreation, CallId, CallKind, CommandEffect, CompactTrigger, FailureClass, ForkId,
    HookEnding, HookFailureKind, HookId, Interrupt, LookId, MessageId, PathNaming, Priority, RawObject,
    RawValueEq, Repair, RequestId, Role, ServerToolUse, SettingsDestination, Speaker, StartSource, StoreId,
    Terminal, TimerId, Verdict,
};

use super::stored_elsewhere::HoldingLine;

/// One way to write a value of type `T`. Fits serde's attribute `with`.
pub(crate) trait FieldForm<T> {
    fn serialize<S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error>;
    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<T, D::Error>;

    /// The value with which a field is left out, if there is one.
    const LEFT_OUT: Option<LeftOut<T>> = None;
}

/// A value that is not written: how to know it, and how to make it again.
pub(crate) struct LeftOut<T> {
    is: fn(&T) -> bool,
    make: fn() -> T,
}

/// The usual way. Lists and options take it, or any other, item by item.
pub(crate) struct PlainForm;

/// 64 bits without a meaning as a number: readers in other languages would round them.
pub(crate) struct Hex;

/// Many small numbers.
pub(crate) struct PackedNumbers;

/// Two values as a list.
pub(crate) type Pair = (PlainForm, PlainForm);

/// A value in one of its forms, for serde.
pub(crate) struct FieldValue<T, F = PlainForm>(T, PhantomData<F>);

impl<T, F> FieldValue<T, F> {
    pub(crate) fn new(value: T) -> Self {
        Self(value, PhantomData)
    }
}

impl<T, F: FieldForm<T>> Serialize for FieldValue<&T, F> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        F::serialize(self.0, to)
    }
}

impl<'de, T, F: FieldForm<T>> Deserialize<'de> for FieldValue<T, F> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        F::deserialize(from).map(Self::new)
    }
}

macro_rules! hex {
    ($($type:ty: $digits:literal),*) => {$(
        impl FieldForm<$type> for Hex {
            fn serialize<S: Serializer>(value: &$type, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(&format!($digits, value))
            }

            fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<$type, D::Error> {
                <$type>::from_str_radix(&text(from)?, 16).map_err(D::Error::custom)
            }
        }
    )*};
}

hex!(u32: "{:08x}", u64: "{:016x}", u128: "{:032x}");

impl<A, B, F: FieldForm<A>, G: FieldForm<B>> FieldForm<(A, B)> for (F, G) {
    fn serialize<S: Serializer>((first, second): &(A, B), to: S) -> Result<S::Ok, S::Error> {
        (FieldValue::<_, F>::new(first), FieldValue::<_, G>::new(second)).serialize(to)
    }

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<(A, B), D::Error> {
        let (first, second): (FieldValue<A, F>, FieldValue<B, G>) = Deserialize::deserialize(from)?;
        Ok((first.0, second.0))
    }
}

impl FieldForm<Arc<[u32]>> for PackedNumbers {
    fn serialize<S: Serializer>(value: &Arc<[u32]>, to: S) -> Result<S::Ok, S::Error> {
        let bytes: Vec<u8> = value.iter().flat_map(|number| number.to_le_bytes()).collect();
        to.serialize_str(&BASE64.encode(bytes))
    }

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<[u32]>, D::Error> {
        let bytes = BASE64.decode(&*text(from)?).map_err(D::Error::custom)?;
        let (numbers, []) = bytes.as_chunks::<4>() else {
            return Err(D::Error::custom("not a list of 32 bit numbers"));
        };
        Ok(numbers.iter().map(|number| u32::from_le_bytes(*number)).collect())
    }
}

impl<T, F: FieldForm<T>> FieldForm<Option<T>> for F {
    fn serialize<S: Serializer>(value: &Option<T>, to: S) -> Result<S::Ok, S::Error> {
        value.as_ref().map(FieldValue::<_, F>::new).serialize(to)
    }

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
        let value: Option<FieldValue<T, F>> = Deserialize::deserialize(from)?;
        Ok(value.map(|value| value.0))
    }

    const LEFT_OUT: Option<LeftOut<Option<T>>> = Some(LeftOut { is: Option::is_none, make: || None });
}

impl<T, F: FieldForm<T>> FieldForm<Vec<T>> for F {
    fn serialize<S: Serializer>(value: &Vec<T>, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(value.iter().map(FieldValue::<_, F>::new))
    }

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<T>, D::Error> {
        let list: Vec<FieldValue<T, F>> = Deserialize::deserialize(from)?;
        Ok(list.into_iter().map(|item| item.0).collect())
    }

    const LEFT_OUT: Option<LeftOut<Vec<T>>> = Some(LeftOut { is: Vec::is_empty, make: Vec::new });
}

impl<K, V, F: FieldForm<V>> FieldForm<BTreeMap<K, V>> for F
where
    K: Ord + Serialize + for<'a> Deserialize<'a>,
{
    fn serialize<S: Serializer>(value: &BTreeMap<K, V>, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(value.iter().map(|(key, value)| (key, FieldValue::<_, F>::new(value))))
    }

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<K, V>, D::Error> {
        let map: BTreeMap<K, FieldValue<V, F>> = Deserialize::deserialize(from)?;
        Ok(map.into_iter().map(|(key, value)| (key, value.0)).collect())
    }

    const LEFT_OUT: Option<LeftOut<BTreeMap<K, V>>> =
        Some(LeftOut { is: BTreeMap::is_empty, make: BTreeMap::new });
}

macro_rules! pointers {
    ($($pointer:ident),*) => {$(
        impl<T, F: FieldForm<T>> FieldForm<$pointer<T>> for F {
            fn serialize<S: Serializer>(value: &$pointer<T>, to: S) -> Result<S::Ok, S::Error> {
                <F as FieldForm<T>>::serialize(value, to)
            }

            fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<$pointer<T>, D::Error> {
                <F as FieldForm<T>>::deserialize(from).map($pointer::new)
            }
        }
    )*};
}

pointers!(Arc, Box);

macro_rules! by_serde {
    ($($type:ty $(= $left_out:expr)?),*) => {$(
        impl FieldForm<$type> for PlainForm {
            fn serialize<S: Serializer>(value: &$type, to: S) -> Result<S::Ok, S::Error> {
                Serialize::serialize(value, to)
            }

            fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<$type, D::Error> {
                Deserialize::deserialize(from)
            }

            $(const LEFT_OUT: Option<LeftOut<$type>> = Some($left_out);)?
        }
    )*};
}

by_serde!(bool = LeftOut { is: |value| !value, make: || false });
by_serde!(u16, u32, u64, usize, i64, String, Arc<str>, Ipv4Addr, Ipv6Addr, CacheCreation, ServerToolUse);
by_serde!(RequestId, CallId, TimerId, ForkId, HookId, StoreId, LookId, MessageId, Role, Speaker, Priority);
by_serde!(CallKind, HookEnding, HookFailureKind, CompactTrigger, FailureClass, Interrupt, StartSource);
by_serde!(CommandEffect, PathNaming, Verdict, Behaviour, SettingsDestination, Repair, HoldingLine, Terminal);

/// A number, or for what is none its name.
impl FieldForm<f64> for PlainForm {
    fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        if value.is_finite() { to.serialize_f64(*value) } else { to.collect_str(value) }
    }

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        // The JSON parser rounds some numbers the wrong way; the standard library does not.
        parse(<&RawValue as Deserialize>::deserialize(from)?.get().trim_matches('"'))
    }
}

impl FieldForm<Uuid> for PlainForm {
    fn serialize<S: Serializer>(value: &Uuid, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(value.hyphenated().encode_lower(&mut Uuid::encode_buffer()))
    }

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Uuid, D::Error> {
        parse(&text(from)?)
    }
}

/// A string; a path that is not valid UTF-8 as `{"base64":…}`.
impl FieldForm<PathBuf> for PlainForm {
    fn serialize<S: Serializer>(value: &PathBuf, to: S) -> Result<S::Ok, S::Error> {
        match value.to_str() {
            Some(path) => to.serialize_str(path),
            None => to.collect_map([("base64", BASE64.encode(value.as_os_str().as_bytes()))]),
        }
    }

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum PathForm {
            Text(PathBuf),
            Bytes { base64: String },
        }
        match <PathForm as Deserialize>::deserialize(from)? {
            PathForm::Text(path) => Ok(path),
            PathForm::Bytes { base64 } => {
                Ok(OsString::from_vec(BASE64.decode(base64).map_err(D::Error::custom)?).into())
            }
        }
    }
}

/// As it was written; as a string that holds it if it spans lines.
impl FieldForm<Block> for PlainForm {
    fn serialize<S: Serializer>(value: &Block, to: S) -> Result<S::Ok, S::Error> {
        if spans_lines(value.json()) { to.serialize_str(value.json()) } else { value.serialize(to) }
    }

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Block, D::Error> {
        let raw: &RawValue = Deserialize::deserialize(from)?;
        let json =
            if raw.get().starts_with('"') { text(raw).map_err(D::Error::custom)? } else { raw.get().into() };
        Block::from_log(&json).map_err(D::Error::custom)
    }
}

/// How a value begins that stands in a string, since it spans lines or would be taken for something else.
const HELD_IN_TEXT: &str = r#"{"windlass:json":"#;

impl FieldForm<Arc<RawValue>> for PlainForm {
    fn serialize<S: Serializer>(value: &Arc<RawValue>, to: S) -> Result<S::Ok, S::Error> {
        serialize_raw(value, to)
    }

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<RawValue>, D::Error> {
        deserialize_raw(from).map(Arc::from)
    }
}

impl FieldForm<RawValueEq> for PlainForm {
    fn serialize<S: Serializer>(value: &RawValueEq, to: S) -> Result<S::Ok, S::Error> {
        serialize_raw(&value.0, to)
    }

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<RawValueEq, D::Error> {
        deserialize_raw(from).map(RawValueEq)
    }
}

fn serialize_raw<S: Serializer>(raw: &RawValue, to: S) -> Result<S::Ok, S::Error> {
    let json = raw.get();
    if spans_lines(json) || json == "null" || json.starts_with(HELD_IN_TEXT) {
        to.collect_map([("windlass:json", json)])
    } else {
        raw.serialize(to)
    }
}

fn deserialize_raw<'de, D: Deserializer<'de>>(from: D) -> Result<Box<RawValue>, D::Error> {
    let raw: &RawValue = Deserialize::deserialize(from)?;
    let held = raw.get().strip_prefix(HELD_IN_TEXT).and_then(|rest| rest.strip_suffix('}'));
    match held {
        Some(text) => serde_json::from_str(text).and_then(RawValue::from_string).map_err(D::Error::custom),
        None => Ok(raw.to_owned()),
    }
}

/// Whether there is an end of a line between the tokens.
pub(crate) fn spans_lines(json: &str) -> bool {
    memchr::memchr2(b'\n', b'\r', json.as_bytes()).is_some()
}

/// The text of a JSON string.
pub(crate) fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Cow<'de, str>, D::Error> {
    /// A `Cow<str>` on its own never borrows with serde; behind this it does.
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    Deserialize::deserialize(from).map(|Text(text)| text)
}

fn parse<T: FromStr<Err: Display>, E: serde::de::Error>(text: &str) -> Result<T, E> {
    text.parse().map_err(E::custom)
}

/// Appends the JSON of a value. Text, numbers and JSON that was checked before cannot fail to be written.
pub(crate) fn put_json<T: Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}

/// Writes a field, unless its value is one that is left out.
pub(crate) fn put_field<T, F: FieldForm<T>, M: SerializeMap>(
    map: &mut M,
    name: &str,
    value: &T,
) -> Result<(), M::Error> {
    match F::LEFT_OUT {
        Some(left_out) if (left_out.is)(value) => Ok(()),
        _ => map.serialize_entry(name, &FieldValue::<_, F>::new(value)),
    }
}

/// The fields of an object that is being read.
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct JsonFields<'a>(#[serde(borrow)] RawObject<'a>);

impl<'a> JsonFields<'a> {
    pub(crate) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.0.get(name)
    }

    /// A field in the usual form.
    pub(crate) fn plain<T, E: serde::de::Error>(&self, name: &str) -> Result<T, E>
    where
        PlainForm: FieldForm<T>,
    {
        self.read::<T, PlainForm, E>(name)
    }

    pub(crate) fn read<T, F: FieldForm<T>, E: serde::de::Error>(&self, name: &str) -> Result<T, E> {
        match self.0.get(name) {
            Some(value) => F::deserialize(value).map_err(|why| E::custom(format_args!("`{name}`: {why}"))),
            None => match F::LEFT_OUT {
                Some(left_out) => Ok((left_out.make)()),
                None => Err(E::custom(format_args!("`{name}` is missing"))),
            },
        }
    }
}

/// The form of a field: the usual one unless another is named.
macro_rules! form {
    () => {
        $crate::format::field_forms::PlainForm
    };
    ($form:ty) => {
        $form
    };
}

/// The name of a field: its own unless another is given.
macro_rules! field_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $name:literal) => {
        $name
    };
}

/// A struct as an object: `object!(Type { field, field: Form, field = "name" })`; `without` names fields left out.
macro_rules! object {
    ($type:ident { $($field:ident $(= $name:literal)? $(: $form:ty)?),* $(,)? } $(without { $($left:ident),* })?) => {
        impl $crate::format::field_forms::FieldForm<$type> for $crate::format::field_forms::PlainForm {
            fn serialize<S: serde::Serializer>(value: &$type, to: S) -> Result<S::Ok, S::Error> {
                let $type { $($field,)* $($($left: _),*)? } = value;
                let mut map = serde::Serializer::serialize_map(to, None)?;
                $( $crate::format::field_forms::put_field::<_, $crate::format::field_forms::form!($($form)?), _>(&mut map, $crate::format::field_forms::field_name!($field $($name)?), $field)?; )*
                serde::ser::SerializeMap::end(map)
            }

            fn deserialize<'de, D: serde::Deserializer<'de>>(from: D) -> Result<$type, D::Error> {
                let fields = <$crate::format::field_forms::JsonFields<'_> as serde::Deserialize>::deserialize(from)?;
                Ok($type {
                    $( $field: fields.read::<_, $crate::format::field_forms::form!($($form)?), _>($crate::format::field_forms::field_name!($field $($name)?))?, )*
                    $($( $left: Default::default(), )*)?
                })
            }
        }
    };
}

/// An enum as an object whose field `is` names the variant: `choice!(Type { "a" = A, "b" = B(inside), "c" = C { field } })`.
/// `"d" = D[one, two]` names the fields of a variant that has none for them.
macro_rules! choice {
    ($type:ident {
        $( $name:literal = $variant:ident $(($one:ident $(: $one_form:ty)?))? $([$($item:ident),*])? $({ $($field:ident $(= $field_name:literal)? $(: $form:ty)?),* $(,)? })? ),* $(,)?
    }) => {
        impl $crate::format::field_forms::FieldForm<$type> for $crate::format::field_forms::PlainForm {
            fn serialize<S: serde::Serializer>(value: &$type, to: S) -> Result<S::Ok, S::Error> {
                let mut map = to.serialize_map(None)?;
                match value {
                    $( $type::$variant $(($one))? $(($($item),*))? $({ $($field),* })? => {
                        serde::ser::SerializeMap::serialize_entry(&mut map, "is", $name)?;
                        $( $crate::format::field_forms::put_field::<_, $crate::format::field_forms::form!($($one_form)?), _>(&mut map, "of", $one)?; )?
                        $( $( $crate::format::field_forms::put_field::<_, PlainForm, _>(&mut map, stringify!($item), $item)?; )* )?
                        $( $( $crate::format::field_forms::put_field::<_, $crate::format::field_forms::form!($($form)?), _>(&mut map, $crate::format::field_forms::field_name!($field $($field_name)?), $field)?; )* )?
                    } )*
                }
                serde::ser::SerializeMap::end(map)
            }

            fn deserialize<'de, D: serde::Deserializer<'de>>(from: D) -> Result<$type, D::Error> {
                let fields = <$crate::format::field_forms::JsonFields<'_> as serde::Deserialize>::deserialize(from)?;
                match &*fields.plain::<String, D::Error>("is")? {
                    $( $name => Ok($type::$variant
                        $(({ let $one = fields.read::<_, $crate::format::field_forms::form!($($one_form)?), _>("of")?; $one }))?
                        $(( $( fields.plain::<_, D::Error>(stringify!($item))? ),* ))?
                        $({ $($field: fields.read::<_, $crate::format::field_forms::form!($($form)?), _>($crate::format::field_forms::field_name!($field $($field_name)?))?),* })?
                    ), )*
                    other => Err(serde::de::Error::custom(format_args!("unknown value `{other}`"))),
                }
            }
        }
    };
}

pub(crate) use {choice, field_name, form, object};

#[cfg(test)]
mod tests {
    use windlass_protocol::ModelEvent;

    use super::*;

    fn check<T: std::fmt::Debug>(value: &T, expected: &str)
    where
        PlainForm: FieldForm<T>,
    {
        assert_eq!(serde_json::to_string(&FieldValue::<_, PlainForm>::new(value)).unwrap(), expected);
        let back: FieldValue<T> = serde_json::from_str(expected).unwrap();
        assert_eq!(format!("{:?}", back.0), format!("{value:?}"));
    }

    fn raw(json: &str) -> RawValueEq {
        RawValueEq(RawValue::from_string(json.into()).unwrap())
    }

    #[test]
    fn values_have_one_form_and_come_back_exactly() {
        check(&0.1_f64, "0.1");
        check(&-0.0_f64, "-0.0");
        check(&5e-324_f64, "5e-324");
        check(&f64::NAN, r#""NaN""#);
        check(&f64::NEG_INFINITY, r#""-inf""#);
        check(&u64::MAX, "18446744073709551615");
        check(&PathBuf::from("/a b/ü"), r#""/a b/ü""#);
        check(&PathBuf::from(OsString::from_vec(b"/a\xff".to_vec())), r#"{"base64":"L2H/"}"#);
        check(&Some(raw("[1, 2]")), "[1, 2]");
        check(&Some(raw("null")), r#"{"windlass:json":"null"}"#);
        check(&raw("{\"a\":\n1}"), r#"{"windlass:json":"{\"a\":\n1}"}"#);
        check(&raw(r#"{"windlass:json":7}"#), r#"{"windlass:json":"{\"windlass:json\":7}"}"#);
        check(&Block::text("x\n"), r#"{"type":"text","text":"x\n"}"#);
        check(
            &Block::from_json("{\"type\":\"text\",\n\"text\":\"x\"}").unwrap(),
            r#""{\"type\":\"text\",\n\"text\":\"x\"}""#,
        );
    }

    #[test]
    fn a_block_keeps_its_bytes_in_an_enum_where_derived_code_cannot_read_it() {
        #[derive(Deserialize)]
        #[serde(tag = "is", rename_all = "snake_case")]
        enum Derived {
            Block { block: Box<RawValue> },
        }
        let json = r#"{"is":"block","index":0,"block":{"type":"text","text":"\u00e9", "n":1.50}}"#;
        assert!(serde_json::from_str(json).map(|Derived::Block { block }| block).is_err());
        let event: FieldValue<ModelEvent> = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&FieldValue::<_, PlainForm>::new(&event.0)).unwrap(), json);
    }

    #[test]
    fn hashes_are_text_and_lists_of_numbers_are_packed() {
        let numbers: Arc<[u32]> = [1, u32::MAX].into();
        assert_eq!(
            serde_json::to_string(&FieldValue::<_, Hex>::new(&7_u64)).unwrap(),
            r#""0000000000000007""#
        );
        assert_eq!(
            serde_json::to_string(&FieldValue::<_, PackedNumbers>::new(&numbers)).unwrap(),
            r#""AQAAAP////8=""#
        );
        let packed: serde_json::Result<FieldValue<Arc<[u32]>, PackedNumbers>> =
            serde_json::from_str(r#""AQAAAP////8=""#);
        assert_eq!(packed.unwrap().0, numbers);
        assert!(serde_json::from_str::<FieldValue<Arc<[u32]>, PackedNumbers>>(r#""AQAAAP//""#).is_err());
    }
}
