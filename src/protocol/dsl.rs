//! The macros behind the schema table. One line is one field:
//!
//! ```text
//! name: type, "versions" [, null "versions"] [, tag number] [= default];
//! ```
//!
//! Versions are written as in Kafka's schema files (`"3+"`, `"0-12"`, `"4"`). Types are Kafka's
//! `bool int8 int16 uint16 int32 uint32 int64 float64 uuid string bytes records`, a struct's name,
//! or `[type]` for an array; `text` is a string that the struct owns (for records, which outlive
//! the batch that they came in) where `string` is a slice of the frame; `stored` are records of an
//! answer that may be sent from their file. A field with `null` is an `Option`. Without a default a field starts as its type's own default, a nullable one as
//! `Some` of it, as Kafka's do.
//!
//! A struct with versions is a whole message; those without belong to the message above them.
//! - `messages!` declares the table, the Rust structs and their codec.
//! - `schemas!` declares the table of what the kafka-protocol crate decodes.

/// Declares messages: table, structs, codec.
macro_rules! messages {
    ($(
        $(#[$doc:meta])*
        struct $name:ident $($versions:literal flexible $flexible:literal)? { $($fields:tt)* }
    )+) => {$(
        $crate::protocol::dsl::structure! { $(#[$doc])* $name { $($fields)* } }
        $crate::protocol::dsl::describe! { own $name { $($fields)* } }
        $(
            $crate::protocol::dsl::describe! { message $name $versions $flexible }
            $crate::protocol::dsl::whole! { $name }
        )?
    )+};
}

/// Declares the table of messages whose structs are kafka-protocol's, all of one of its modules.
macro_rules! schemas {
    ($module:ident: $(
        struct $name:ident $($versions:literal flexible $flexible:literal)? { $($fields:tt)* }
    )+) => {
        mod $module {
            use kafka_protocol::messages::$module::*;
            $(
                $crate::protocol::dsl::describe! { foreign $name { $($fields)* } }
                $($crate::protocol::dsl::describe! { message $name $versions $flexible })?
            )+
        }
    };
}

/// A Rust struct with its defaults and its place on the wire.
macro_rules! structure {
    ($(#[$doc:meta])* $name:ident { $(
        $field:ident: $kind:tt, $versions:literal
            $(, null $null:literal)? $(, tag $tag:literal)? $(= $default:expr)?;
    )* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $(pub $field: $crate::protocol::dsl::rust_type!($kind $(, null $null)?),)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($field: $crate::protocol::dsl::default_value!(
                        $(null $null)? $(= $default)?
                    ),)*
                }
            }
        }

        impl $crate::protocol::codec::Wire for $name {
            fn read(
                bytes: &mut bytes::Bytes,
                at: $crate::protocol::codec::At,
            ) -> Result<Self, $crate::protocol::wire::DecodeError> {
                use $crate::protocol::codec;
                let mut this = Self::default();
                let _fields = &mut this; // underscored: a struct may have none
                $({
                    const FIELD: &$crate::protocol::schema::Field = &$crate::protocol::dsl::field!(
                        $field: $kind, $versions $(, null $null)? $(, tag $tag)?
                    );
                    if FIELD.is_in_order(at.version) {
                        _fields.$field = codec::read_field(bytes, at, FIELD)?;
                    }
                })*
                if at.flexible {
                    codec::read_tagged(bytes, |_tag, _value| {
                        $({
                            const FIELD: &$crate::protocol::schema::Field = &$crate::protocol::dsl::field!(
                                $field: $kind, $versions $(, null $null)? $(, tag $tag)?
                            );
                            if FIELD.is_tagged_as(_tag, at.version) {
                                _fields.$field = codec::read_field(_value, at, FIELD)?;
                            }
                        })*
                        Ok(())
                    })?;
                }
                Ok(this)
            }

            fn write<O: $crate::protocol::wire::Out>(
                &self,
                out: &mut O,
                at: $crate::protocol::codec::At,
            ) -> Result<(), $crate::protocol::wire::EncodeError> {
                use $crate::protocol::codec;
                let mut _tagged = codec::Tagged::new();
                $({
                    const FIELD: &$crate::protocol::schema::Field = &$crate::protocol::dsl::field!(
                        $field: $kind, $versions $(, null $null)? $(, tag $tag)?
                    );
                    if FIELD.is_in_order(at.version) {
                        codec::write_field(&self.$field, out, at, FIELD)?;
                    } else if FIELD.tag.is_some() && FIELD.versions.contains(at.version) {
                        let default = $crate::protocol::dsl::default_value!(
                            $(null $null)? $(= $default)?
                        );
                        _tagged.write(&self.$field, default, at, FIELD)?;
                    }
                })*
                if at.flexible {
                    _tagged.finish(out);
                }
                Ok(())
            }

            fn read_nullable(
                bytes: &mut bytes::Bytes,
                at: $crate::protocol::codec::At,
            ) -> Result<Option<Self>, $crate::protocol::wire::DecodeError> {
                $crate::protocol::codec::read_nullable_struct(bytes, at)
            }

            fn write_nullable<O: $crate::protocol::wire::Out>(
                value: Option<&Self>,
                out: &mut O,
                at: $crate::protocol::codec::At,
            ) -> Result<(), $crate::protocol::wire::EncodeError> {
                $crate::protocol::codec::write_nullable_struct(value, out, at)
            }
        }
    };
}

/// `decode` and `encode` of a whole message.
macro_rules! whole {
    ($name:ident) => {
        impl $name {
            /// Reads one from the front of `bytes`; strings, bytes and records are slices of it.
            ///
            /// # Errors
            /// [`DecodeError`](crate::protocol::wire::DecodeError): not a message of `version`.
            pub fn decode(
                bytes: &mut bytes::Bytes,
                version: i16,
            ) -> Result<Self, $crate::protocol::wire::DecodeError> {
                $crate::protocol::codec::decode_whole(bytes, version)
            }

            /// Appends it to `out`. Fields that `version` has not are left out.
            ///
            /// # Errors
            /// [`EncodeError`](crate::protocol::wire::EncodeError): `out` then holds a part of it.
            pub fn encode<O: $crate::protocol::wire::Out>(
                &self,
                out: &mut O,
                version: i16,
            ) -> Result<(), $crate::protocol::wire::EncodeError> {
                $crate::protocol::codec::encode_whole(self, out, version)
            }
        }
    };
}

/// The table's side of a struct (`own` codec or the crate's) and of a message.
macro_rules! describe {
    (own $name:ident $fields:tt) => {
        $crate::protocol::dsl::describe! { @struct $name $fields false }
    };
    (foreign $name:ident $fields:tt) => {
        $crate::protocol::dsl::describe! { @struct $name $fields true }
    };
    (message $name:ident $versions:literal $flexible:literal) => {
        impl $crate::protocol::schema::DescribedMessage for $name {
            const MESSAGE: $crate::protocol::schema::Message = $crate::protocol::schema::Message {
                schema: &<$name as $crate::protocol::schema::Described>::SCHEMA,
                versions: $crate::protocol::schema::Versions::parse($versions),
                flexible: $crate::protocol::schema::Versions::parse($flexible),
            };
        }
    };
    (@struct $name:ident { $(
        $field:ident: $kind:tt, $versions:literal
            $(, null $null:literal)? $(, tag $tag:literal)? $(= $default:expr)?;
    )* } $is_foreign:literal) => {
        impl $crate::protocol::schema::Described for $name {
            const SCHEMA: $crate::protocol::schema::Schema = $crate::protocol::schema::Schema {
                name: stringify!($name),
                fields: &[$($crate::protocol::dsl::field!(
                    $field: $kind, $versions $(, null $null)? $(, tag $tag)? $(= $default)?
                ),)*],
                decoded_bytes: size_of::<$name>(),
                foreign: $is_foreign,
            };
        }
    };
}

/// One [`Field`](crate::protocol::schema::Field).
macro_rules! field {
    ($name:ident: $kind:tt, $versions:literal
        $(, null $null:literal)? $(, tag $tag:literal)? $(= $default:expr)?) => {
        $crate::protocol::schema::Field {
            name: stringify!($name),
            kind: $crate::protocol::dsl::kind!($kind),
            versions: $crate::protocol::schema::Versions::parse($versions),
            nullable: $crate::protocol::schema::Versions::parse(
                $crate::protocol::dsl::or!("none" $(, $null)?)
            ),
            tag: $crate::protocol::dsl::or!(None $(, Some($tag))?),
            default: $crate::protocol::dsl::or!("" $(, stringify!($default))?),
        }
    };
}

/// The Rust type of a field; `null` and the versions in which it may be null come second.
macro_rules! rust_type {
    ($kind:tt, null $versions:literal) => { Option<$crate::protocol::dsl::rust_type!($kind)> };
    (int8) => { i8 };
    (int16) => { i16 };
    (uint16) => { u16 };
    (int32) => { i32 };
    (uint32) => { u32 };
    (int64) => { i64 };
    (float64) => { f64 };
    (uuid) => { uuid::Uuid };
    (string) => { $crate::protocol::StrBytes };
    (text) => { std::sync::Arc<str> };
    (bytes) => { bytes::Bytes };
    (records) => { bytes::Bytes };
    (stored) => { $crate::protocol::wire::Stored };
    ([$element:ident]) => { Vec<$crate::protocol::dsl::rust_type!($element)> };
    ($name:ident) => { $name };
}

/// The [`Kind`](crate::protocol::schema::Kind) of a field.
macro_rules! kind {
    (bool) => {
        $crate::protocol::schema::Kind::Bool
    };
    (int8) => {
        $crate::protocol::schema::Kind::Int8
    };
    (int16) => {
        $crate::protocol::schema::Kind::Int16
    };
    (uint16) => {
        $crate::protocol::schema::Kind::Uint16
    };
    (int32) => {
        $crate::protocol::schema::Kind::Int32
    };
    (uint32) => {
        $crate::protocol::schema::Kind::Uint32
    };
    (int64) => {
        $crate::protocol::schema::Kind::Int64
    };
    (float64) => {
        $crate::protocol::schema::Kind::Float64
    };
    (uuid) => {
        $crate::protocol::schema::Kind::Uuid
    };
    (string) => {
        $crate::protocol::schema::Kind::String
    };
    (text) => {
        $crate::protocol::schema::Kind::String
    };
    (bytes) => {
        $crate::protocol::schema::Kind::Bytes
    };
    (records) => {
        $crate::protocol::schema::Kind::Records
    };
    (stored) => {
        $crate::protocol::schema::Kind::Records
    };
    ([$element:ident]) => {
        $crate::protocol::schema::Kind::Array(&$crate::protocol::dsl::kind!($element))
    };
    ($name:ident) => {
        $crate::protocol::schema::Kind::Struct(
            &<$name as $crate::protocol::schema::Described>::SCHEMA,
        )
    };
}

/// What a field starts as.
macro_rules! default_value {
    ($(null $null:literal)? = $default:expr) => {
        $default
    };
    (null $null:literal) => {
        Some(Default::default())
    };
    () => {
        Default::default()
    };
}

/// The second value where there is one.
macro_rules! or {
    ($first:expr) => {
        $first
    };
    ($first:expr, $second:expr) => {
        $second
    };
}

pub(crate) use {
    default_value, describe, field, kind, messages, or, rust_type, schemas, structure, whole,
};
