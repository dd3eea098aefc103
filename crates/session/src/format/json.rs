//! How the log says a value as JSON and takes it back, exactly. The types are those of `protocol`, which knows nothing of a
//! disk; a list of fields here gives both directions, and a field that is missing in the list does not compile.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Display;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;
use windlass_protocol::{Block, RawObject, RawValueEq};

/// Why a text is not the value it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unfit(pub(crate) String);

impl Unfit {
    pub(crate) fn new(why: impl Display) -> Self {
        Self(why.to_string())
    }

    fn inside(self, field: &str) -> Self {
        Self(format!("`{field}`: {}", self.0))
    }
}

/// A value that has one JSON form.
pub(crate) trait Json: Sized {
    /// Appends the form.
    fn put(&self, out: &mut Vec<u8>);

    /// Takes the value from its form.
    fn take(json: &str) -> Result<Self, Unfit>;

    /// Whether a field with this value is left out.
    fn is_left_out(&self) -> bool {
        false
    }

    /// What a field that is not there stands for.
    fn when_left_out() -> Option<Self> {
        None
    }
}

/// One way to write a value of type `T`, where it is not the usual one.
pub(crate) trait Form<T> {
    fn put(value: &T, out: &mut Vec<u8>);
    fn take(json: &str) -> Result<T, Unfit>;

    fn is_left_out(_: &T) -> bool {
        false
    }

    fn when_left_out() -> Option<T> {
        None
    }
}

/// The usual way.
pub(crate) struct Plain;

/// 64 bits without a meaning as a number: readers in other languages would round them.
pub(crate) struct Hex;

/// Each item of a list in its own way.
pub(crate) struct Each<F>(F);

/// Many small numbers.
pub(crate) struct Packed;

impl<T: Json> Form<T> for Plain {
    fn put(value: &T, out: &mut Vec<u8>) {
        value.put(out);
    }

    fn take(json: &str) -> Result<T, Unfit> {
        T::take(json)
    }

    fn is_left_out(value: &T) -> bool {
        value.is_left_out()
    }

    fn when_left_out() -> Option<T> {
        T::when_left_out()
    }
}

impl Form<u64> for Hex {
    fn put(value: &u64, out: &mut Vec<u8>) {
        put_serde(&format!("{value:016x}"), out);
    }

    fn take(json: &str) -> Result<u64, Unfit> {
        u64::from_str_radix(&text(json)?, 16).map_err(Unfit::new)
    }
}

impl Form<u128> for Hex {
    fn put(value: &u128, out: &mut Vec<u8>) {
        put_serde(&format!("{value:032x}"), out);
    }

    fn take(json: &str) -> Result<u128, Unfit> {
        u128::from_str_radix(&text(json)?, 16).map_err(Unfit::new)
    }
}

impl Form<u32> for Hex {
    fn put(value: &u32, out: &mut Vec<u8>) {
        put_serde(&format!("{value:08x}"), out);
    }

    fn take(json: &str) -> Result<u32, Unfit> {
        u32::from_str_radix(&text(json)?, 16).map_err(Unfit::new)
    }
}

impl<T, F: Form<T>> Form<Vec<T>> for Each<F> {
    fn put(value: &Vec<T>, out: &mut Vec<u8>) {
        put_list(value.iter(), out, F::put);
    }

    fn take(json: &str) -> Result<Vec<T>, Unfit> {
        list(json)?.into_iter().map(|item| F::take(item.get())).collect()
    }

    fn is_left_out(value: &Vec<T>) -> bool {
        value.is_empty()
    }

    fn when_left_out() -> Option<Vec<T>> {
        Some(Vec::new())
    }
}

impl<A, B, F: Form<A>, G: Form<B>> Form<(A, B)> for (F, G) {
    fn put((first, second): &(A, B), out: &mut Vec<u8>) {
        out.push(b'[');
        F::put(first, out);
        out.push(b',');
        G::put(second, out);
        out.push(b']');
    }

    fn take(json: &str) -> Result<(A, B), Unfit> {
        match list(json)?[..] {
            [first, second] => Ok((F::take(first.get())?, G::take(second.get())?)),
            _ => Err(Unfit::new("not a pair")),
        }
    }
}

impl Form<Arc<[u32]>> for Packed {
    fn put(value: &Arc<[u32]>, out: &mut Vec<u8>) {
        let bytes: Vec<u8> = value.iter().flat_map(|number| number.to_le_bytes()).collect();
        put_serde(&BASE64.encode(bytes), out);
    }

    fn take(json: &str) -> Result<Arc<[u32]>, Unfit> {
        let bytes = BASE64.decode(&*text(json)?).map_err(Unfit::new)?;
        let (numbers, []) = bytes.as_chunks::<4>() else {
            return Err(Unfit::new("not a list of 32 bit numbers"));
        };
        Ok(numbers.iter().map(|number| u32::from_le_bytes(*number)).collect())
    }
}

impl<T: Json> Json for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Some(value) => value.put(out),
            None => out.extend_from_slice(b"null"),
        }
    }

    fn take(json: &str) -> Result<Self, Unfit> {
        if json == "null" { Ok(None) } else { T::take(json).map(Some) }
    }

    fn is_left_out(&self) -> bool {
        self.is_none()
    }

    fn when_left_out() -> Option<Self> {
        Some(None)
    }
}

impl<T: Json> Json for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        Each::<Plain>::put(self, out);
    }

    fn take(json: &str) -> Result<Self, Unfit> {
        Each::<Plain>::take(json)
    }

    fn is_left_out(&self) -> bool {
        self.is_empty()
    }

    fn when_left_out() -> Option<Self> {
        Some(Self::new())
    }
}

impl<K: Json + Ord + AsRef<str> + From<String>, V: Json> Json for BTreeMap<K, V> {
    fn put(&self, out: &mut Vec<u8>) {
        let mut object = Object::open(out);
        for (key, value) in self {
            object.write::<_, Plain>(key.as_ref(), value);
        }
        object.close();
    }

    fn take(json: &str) -> Result<Self, Unfit> {
        let object = RawObject::parse(json).map_err(Unfit::new)?;
        let entry = |(key, value): (&str, &RawValue)| Ok((K::from(key.to_owned()), V::take(value.get())?));
        object.iter().map(entry).collect()
    }

    fn is_left_out(&self) -> bool {
        self.is_empty()
    }

    fn when_left_out() -> Option<Self> {
        Some(Self::new())
    }
}

impl<A: Json, B: Json> Json for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        <(Plain, Plain)>::put(self, out);
    }

    fn take(json: &str) -> Result<Self, Unfit> {
        <(Plain, Plain)>::take(json)
    }
}

impl<T: Json> Json for Box<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (**self).put(out);
    }

    fn take(json: &str) -> Result<Self, Unfit> {
        T::take(json).map(Self::new)
    }
}

impl<T: Json> Json for Arc<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (**self).put(out);
    }

    fn take(json: &str) -> Result<Self, Unfit> {
        T::take(json).map(Self::new)
    }
}

macro_rules! by_serde {
    ($($type:ty),*) => {$(
        impl Json for $type {
            fn put(&self, out: &mut Vec<u8>) {
                put_serde(self, out);
            }

            fn take(json: &str) -> Result<Self, Unfit> {
                serde_json::from_str(json).map_err(Unfit::new)
            }
        }
    )*};
}

by_serde!(u16, u32, u64, usize, i64, String, Arc<str>);

impl Json for bool {
    fn put(&self, out: &mut Vec<u8>) {
        put_serde(self, out);
    }

    fn take(json: &str) -> Result<Self, Unfit> {
        serde_json::from_str(json).map_err(Unfit::new)
    }

    fn is_left_out(&self) -> bool {
        !self
    }

    fn when_left_out() -> Option<Self> {
        Some(false)
    }
}

/// A number, or for what is none its name.
impl Json for f64 {
    fn put(&self, out: &mut Vec<u8>) {
        if self.is_finite() { put_serde(self, out) } else { put_serde(&self.to_string(), out) }
    }

    fn take(json: &str) -> Result<Self, Unfit> {
        // The JSON parser rounds some numbers the wrong way; the standard library does not.
        json.trim_matches('"').parse().map_err(Unfit::new)
    }
}

impl Json for Uuid {
    fn put(&self, out: &mut Vec<u8>) {
        put_serde(self.hyphenated().encode_lower(&mut Self::encode_buffer()), out);
    }

    fn take(json: &str) -> Result<Self, Unfit> {
        Self::parse_str(&text(json)?).map_err(Unfit::new)
    }
}

/// A string; a path that is not valid UTF-8 as `{"base64":…}`.
impl Json for PathBuf {
    fn put(&self, out: &mut Vec<u8>) {
        if let Some(path) = self.to_str() {
            return put_serde(path, out);
        }
        let mut object = Object::open(out);
        object.write::<_, Plain>("base64", &BASE64.encode(self.as_os_str().as_bytes()));
        object.close();
    }

    fn take(json: &str) -> Result<Self, Unfit> {
        if !json.starts_with('{') {
            return Ok(text(json)?.into_owned().into());
        }
        let bytes: String = Fields::parse(json)?.read::<_, Plain>("base64")?;
        Ok(OsString::from_vec(BASE64.decode(bytes).map_err(Unfit::new)?).into())
    }
}

/// As it was written; as a string that holds it if it spans lines.
impl Json for Block {
    fn put(&self, out: &mut Vec<u8>) {
        let json = self.json();
        if spans_lines(json) { put_serde(json, out) } else { out.extend_from_slice(json.as_bytes()) }
    }

    fn take(json: &str) -> Result<Self, Unfit> {
        let json = if json.starts_with('"') { text(json)? } else { json.into() };
        Self::from_json(&json).map_err(Unfit::new)
    }
}

/// How a value begins that stands in a string, since it spans lines or would be taken for something else.
const HELD_IN_TEXT: &str = r#"{"windlass:json":"#;

impl Json for RawValueEq {
    fn put(&self, out: &mut Vec<u8>) {
        put_raw(&self.0, out);
    }

    fn take(json: &str) -> Result<Self, Unfit> {
        take_raw(json).map(Self)
    }
}

impl Json for Arc<RawValue> {
    fn put(&self, out: &mut Vec<u8>) {
        put_raw(self, out);
    }

    fn take(json: &str) -> Result<Self, Unfit> {
        take_raw(json).map(Self::from)
    }
}

fn put_raw(raw: &RawValue, out: &mut Vec<u8>) {
    let json = raw.get();
    if !spans_lines(json) && json != "null" && !json.starts_with(HELD_IN_TEXT) {
        return out.extend_from_slice(json.as_bytes());
    }
    out.extend_from_slice(HELD_IN_TEXT.as_bytes());
    put_serde(json, out);
    out.push(b'}');
}

fn take_raw(json: &str) -> Result<Box<RawValue>, Unfit> {
    let held = json.strip_prefix(HELD_IN_TEXT).and_then(|rest| rest.strip_suffix('}'));
    let json = held.map_or(Ok(json.into()), text)?;
    RawValue::from_string(json.into_owned()).map_err(Unfit::new)
}

/// Whether there is an end of a line between the tokens.
pub(crate) fn spans_lines(json: &str) -> bool {
    memchr::memchr2(b'\n', b'\r', json.as_bytes()).is_some()
}

/// The text of a JSON string.
pub(crate) fn text(json: &str) -> Result<Cow<'_, str>, Unfit> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str(json).map(|Text(text)| text).map_err(Unfit::new)
}

/// The items of a JSON list.
pub(crate) fn list(json: &str) -> Result<Vec<&RawValue>, Unfit> {
    serde_json::from_str(json).map_err(Unfit::new)
}

/// Text, numbers and JSON that was checked before cannot fail to be written.
pub(crate) fn put_serde<T: Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}

fn put_list<'a, T: 'a>(items: impl Iterator<Item = &'a T>, out: &mut Vec<u8>, put: fn(&T, &mut Vec<u8>)) {
    out.push(b'[');
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        put(item, out);
    }
    out.push(b']');
}

/// An object that is being written.
pub(crate) struct Object<'a> {
    out: &'a mut Vec<u8>,
    is_empty: bool,
}

impl<'a> Object<'a> {
    pub(crate) fn open(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, is_empty: true }
    }

    /// A field, unless its value is one that is left out.
    pub(crate) fn field<T, F: Form<T>>(&mut self, name: &str, value: &T) {
        if !F::is_left_out(value) {
            self.write::<T, F>(name, value);
        }
    }

    /// A field, whatever its value.
    pub(crate) fn write<T, F: Form<T>>(&mut self, name: &str, value: &T) {
        F::put(value, self.name(name));
    }

    pub(crate) fn text(&mut self, name: &str, value: &str) {
        put_serde(value, self.name(name));
    }

    /// The name of a field whose value the caller writes.
    pub(crate) fn name(&mut self, name: &str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.is_empty) {
            self.out.push(b',');
        }
        put_serde(name, self.out);
        self.out.push(b':');
        self.out
    }

    /// Further fields, as JSON without braces.
    pub(crate) fn splice(&mut self, fields: &[u8]) {
        if !std::mem::take(&mut self.is_empty) {
            self.out.push(b',');
        }
        self.out.extend_from_slice(fields);
    }

    pub(crate) fn close(self) {
        self.out.push(b'}');
    }
}

/// The fields of an object that is being read.
pub(crate) struct Fields<'a>(RawObject<'a>);

impl<'a> Fields<'a> {
    pub(crate) fn parse(json: &'a str) -> Result<Self, Unfit> {
        RawObject::parse(json).map(Self).map_err(Unfit::new)
    }

    pub(crate) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.0.get(name)
    }

    pub(crate) fn read<T, F: Form<T>>(&self, name: &str) -> Result<T, Unfit> {
        match self.0.get(name) {
            Some(value) => F::take(value.get()).map_err(|unfit| unfit.inside(name)),
            None => F::when_left_out().ok_or_else(|| Unfit(format!("`{name}` is missing"))),
        }
    }

    /// The name of the variant.
    pub(crate) fn variant(&self) -> Result<Cow<'a, str>, Unfit> {
        let name = self.0.get("is").ok_or_else(|| Unfit::new("`is` is missing"))?;
        text(name.get())
    }
}

/// The form of a field: the usual one unless another is named.
macro_rules! form {
    () => {
        $crate::format::json::Plain
    };
    ($form:ty) => {
        $form
    };
}

/// A struct as an object: `object!(Type { field, field: Form })`.
macro_rules! object {
    ($type:ty { $($field:ident $(: $form:ty)?),* $(,)? }) => {
        impl $crate::format::json::Json for $type {
            fn put(&self, out: &mut Vec<u8>) {
                let Self { $($field),* } = self;
                let mut object = $crate::format::json::Object::open(out);
                $( object.field::<_, $crate::format::json::form!($($form)?)>(stringify!($field), $field); )*
                object.close();
            }

            fn take(json: &str) -> Result<Self, $crate::format::json::Unfit> {
                let fields = $crate::format::json::Fields::parse(json)?;
                Ok(Self {
                    $( $field: fields.read::<_, $crate::format::json::form!($($form)?)>(stringify!($field))?, )*
                })
            }
        }
    };
}

/// An enum as an object whose field `is` names the variant: `choice!(Type { "a" = A, "b" = B(inside), "c" = C { field } })`.
macro_rules! choice {
    ($type:ty {
        $( $name:literal = $variant:ident $(($one:ident $(: $one_form:ty)?))? $({ $($field:ident $(: $form:ty)?),* $(,)? })? ),* $(,)?
    }) => {
        impl $crate::format::json::Json for $type {
            fn put(&self, out: &mut Vec<u8>) {
                let mut object = $crate::format::json::Object::open(out);
                match self {
                    $( Self::$variant $(($one))? $({ $($field),* })? => {
                        object.text("is", $name);
                        $( object.field::<_, $crate::format::json::form!($($one_form)?)>("of", $one); )?
                        $( $( object.field::<_, $crate::format::json::form!($($form)?)>(stringify!($field), $field); )* )?
                    } )*
                }
                object.close();
            }

            fn take(json: &str) -> Result<Self, $crate::format::json::Unfit> {
                let fields = $crate::format::json::Fields::parse(json)?;
                match &*fields.variant()? {
                    $( $name => Ok(Self::$variant
                        $(({ let $one = fields.read::<_, $crate::format::json::form!($($one_form)?)>("of")?; $one }))?
                        $({ $($field: fields.read::<_, $crate::format::json::form!($($form)?)>(stringify!($field))?),* })?
                    ), )*
                    other => Err($crate::format::json::Unfit(format!("unknown value `{other}`"))),
                }
            }
        }
    };
}

/// An enum without data as a string: `names!(Type { "a" = A })`.
macro_rules! names {
    ($type:ty { $($name:literal = $variant:ident),* $(,)? }) => {
        impl $crate::format::json::Json for $type {
            fn put(&self, out: &mut Vec<u8>) {
                let name = match self {
                    $( Self::$variant => $name, )*
                };
                $crate::format::json::put_serde(name, out);
            }

            fn take(json: &str) -> Result<Self, $crate::format::json::Unfit> {
                match &*$crate::format::json::text(json)? {
                    $( $name => Ok(Self::$variant), )*
                    other => Err($crate::format::json::Unfit(format!("unknown value `{other}`"))),
                }
            }
        }
    };
}

pub(crate) use {choice, form, names, object};

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Json + std::fmt::Debug>(value: &T, expected: &str) {
        let mut out = Vec::new();
        value.put(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        assert_eq!(format!("{:?}", T::take(expected).unwrap()), format!("{value:?}"));
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
    fn hashes_are_text_and_lists_of_numbers_are_packed() {
        let mut out = Vec::new();
        Hex::put(&7_u64, &mut out);
        Packed::put(&[1, u32::MAX].into(), &mut out);
        assert_eq!(out, br#""0000000000000007""AQAAAP////8=""#);
        assert_eq!(Packed::take(r#""AQAAAP////8=""#).unwrap()[..], [1, u32::MAX]);
        assert!(Packed::take(r#""AQAAAP//""#).is_err());
    }
}
