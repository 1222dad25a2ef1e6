//! Bodies in protobuf, which `kubectl create` and Go clients send for a few built-in kinds. Only these are read; answers
//! are JSON, which all of them accept.

use base64::Engine as _;
use serde_json::{Map, Value, json};

/// What stands before the envelope.
const MAGIC: &[u8] = b"k8s\0";

/// What a field of a message holds.
#[derive(Debug, Clone, Copy)]
enum Holds {
    Text,
    Number,
    Flag,
    /// Text by text.
    Texts,
    /// Bytes by text.
    Blobs,
    Time,
    One(&'static Message),
    Many(&'static Message),
    ManyTexts,
}

/// Field numbers and names.
type Message = [(u64, &'static str, Holds)];

static META: &Message = &[
    (1, "name", Holds::Text),
    (2, "generateName", Holds::Text),
    (3, "namespace", Holds::Text),
    (5, "uid", Holds::Text),
    (6, "resourceVersion", Holds::Text),
    (11, "labels", Holds::Texts),
    (12, "annotations", Holds::Texts),
    (13, "ownerReferences", Holds::Many(OWNER)),
    (14, "finalizers", Holds::ManyTexts),
];
static OWNER: &Message = &[
    (1, "kind", Holds::Text),
    (3, "name", Holds::Text),
    (4, "uid", Holds::Text),
    (5, "apiVersion", Holds::Text),
    (6, "controller", Holds::Flag),
    (7, "blockOwnerDeletion", Holds::Flag),
];
static RESOURCE_ATTRIBUTES: &Message = &[
    (1, "namespace", Holds::Text),
    (2, "verb", Holds::Text),
    (3, "group", Holds::Text),
    (4, "version", Holds::Text),
    (5, "resource", Holds::Text),
    (6, "subresource", Holds::Text),
    (7, "name", Holds::Text),
];
static PATH_ATTRIBUTES: &Message = &[(1, "path", Holds::Text), (2, "verb", Holds::Text)];
static SELF_ACCESS: &Message = &[
    (1, "resourceAttributes", Holds::One(RESOURCE_ATTRIBUTES)),
    (2, "nonResourceAttributes", Holds::One(PATH_ATTRIBUTES)),
];
static ACCESS: &Message = &[
    (1, "resourceAttributes", Holds::One(RESOURCE_ATTRIBUTES)),
    (2, "nonResourceAttributes", Holds::One(PATH_ATTRIBUTES)),
    (3, "user", Holds::Text),
    (4, "groups", Holds::ManyTexts),
    (6, "uid", Holds::Text),
];
static TOKEN: &Message = &[(1, "token", Holds::Text), (2, "audiences", Holds::ManyTexts)];
static TOKEN_REQUEST: &Message =
    &[(1, "audiences", Holds::ManyTexts), (4, "expirationSeconds", Holds::Number)];
static NAMESPACE_SPEC: &Message = &[(1, "finalizers", Holds::ManyTexts)];
static RULES_SPEC: &Message = &[(1, "namespace", Holds::Text)];
static LEASE: &Message = &[
    (1, "holderIdentity", Holds::Text),
    (2, "leaseDurationSeconds", Holds::Number),
    (3, "acquireTime", Holds::Time),
    (4, "renewTime", Holds::Time),
    (5, "leaseTransitions", Holds::Number),
];

/// The message of a kind.
fn message(kind: &str) -> Option<Vec<(u64, &'static str, Holds)>> {
    let mut fields = vec![(1, "metadata", Holds::One(META))];
    fields.extend(match kind {
        "ConfigMap" => vec![
            (2, "data", Holds::Texts),
            (3, "binaryData", Holds::Blobs),
            (4, "immutable", Holds::Flag),
        ],
        "Secret" => vec![
            (2, "data", Holds::Blobs),
            (3, "type", Holds::Text),
            (4, "stringData", Holds::Texts),
            (5, "immutable", Holds::Flag),
        ],
        "Namespace" => vec![(2, "spec", Holds::One(NAMESPACE_SPEC))],
        "ServiceAccount" => vec![(4, "automountServiceAccountToken", Holds::Flag)],
        "SelfSubjectAccessReview" => vec![(2, "spec", Holds::One(SELF_ACCESS))],
        "SubjectAccessReview" | "LocalSubjectAccessReview" => vec![(2, "spec", Holds::One(ACCESS))],
        "SelfSubjectRulesReview" => vec![(2, "spec", Holds::One(RULES_SPEC))],
        "SelfSubjectReview" | "Eviction" => Vec::new(),
        "TokenReview" => vec![(2, "spec", Holds::One(TOKEN))],
        "TokenRequest" => vec![(2, "spec", Holds::One(TOKEN_REQUEST))],
        "Lease" => vec![(2, "spec", Holds::One(LEASE))],
        _ => return None,
    });
    Some(fields)
}

/// The object in a body; the error says why there is none.
pub(crate) fn object(body: &[u8]) -> Result<Value, String> {
    let envelope = body.strip_prefix(MAGIC).ok_or("the body has no protobuf envelope")?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for (number, field) in fields(envelope)? {
        match (number, field) {
            (1, Field::Bytes(bytes)) => {
                for (number, field) in fields(bytes)? {
                    match (number, field) {
                        (1, Field::Bytes(text)) => {
                            api_version = String::from_utf8_lossy(text).into_owned();
                        }
                        (2, Field::Bytes(text)) => {
                            kind = String::from_utf8_lossy(text).into_owned();
                        }
                        _ => {}
                    }
                }
            }
            (2, Field::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let message =
        message(&kind).ok_or_else(|| format!("{kind} in protobuf is not known here, send JSON"))?;
    let mut object = read(raw, &message)?;
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    Ok(object)
}

fn read(bytes: &[u8], message: &Message) -> Result<Value, String> {
    let mut object = Map::new();
    for (number, field) in fields(bytes)? {
        let Some((_, name, holds)) = message.iter().find(|(known, _, _)| *known == number) else {
            continue;
        };
        let name = (*name).to_owned();
        match (holds, field) {
            (Holds::Text, Field::Bytes(text)) => {
                // The empty text is how protobuf says nothing.
                if !text.is_empty() {
                    object.insert(name, json!(String::from_utf8_lossy(text)));
                }
            }
            (Holds::Number, Field::Number(number)) => {
                object.insert(name, json!(number.cast_signed()));
            }
            (Holds::Flag, Field::Number(number)) => {
                object.insert(name, json!(number != 0));
            }
            (Holds::Time, Field::Bytes(bytes)) => {
                object.insert(name, json!(time(bytes)?));
            }
            (Holds::One(message), Field::Bytes(bytes)) => {
                object.insert(name, read(bytes, message)?);
            }
            (Holds::Many(message), Field::Bytes(bytes)) => {
                push(&mut object, name, read(bytes, message)?);
            }
            (Holds::ManyTexts, Field::Bytes(text)) => {
                push(&mut object, name, json!(String::from_utf8_lossy(text)));
            }
            (Holds::Texts | Holds::Blobs, Field::Bytes(entry)) => {
                let (mut key, mut value) = (String::new(), &[][..]);
                for (number, field) in fields(entry)? {
                    match (number, field) {
                        (1, Field::Bytes(text)) => key = String::from_utf8_lossy(text).into_owned(),
                        (2, Field::Bytes(bytes)) => value = bytes,
                        _ => {}
                    }
                }
                let value = if matches!(holds, Holds::Blobs) {
                    encoded(value)
                } else {
                    json!(String::from_utf8_lossy(value))
                };
                object.entry(name).or_insert_with(|| json!({}))[key] = value;
            }
            _ => return Err(format!("{name} has an unexpected form")),
        }
    }
    Ok(Value::Object(object))
}

fn push(object: &mut Map<String, Value>, name: String, value: Value) {
    if let Value::Array(items) = object.entry(name).or_insert_with(|| json!([])) {
        items.push(value);
    }
}

fn encoded(bytes: &[u8]) -> Value {
    json!(base64::engine::general_purpose::STANDARD.encode(bytes))
}

/// Seconds and nanoseconds as a timestamp with microseconds.
fn time(bytes: &[u8]) -> Result<String, String> {
    let (mut seconds, mut nanos) = (0_i64, 0_i32);
    for (number, field) in fields(bytes)? {
        match (number, field) {
            (1, Field::Number(number)) => seconds = number.cast_signed(),
            (2, Field::Number(number)) => nanos = i32::try_from(number).unwrap_or(0),
            _ => {}
        }
    }
    let at = jiff::Timestamp::new(seconds, nanos).map_err(|error| error.to_string())?;
    Ok(at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string())
}

enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message in their order.
fn fields(mut bytes: &[u8]) -> Result<Vec<(u64, Field<'_>)>, String> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = number(&mut bytes)?;
        let field = match tag & 7 {
            0 => Field::Number(number(&mut bytes)?),
            2 => {
                let length =
                    usize::try_from(number(&mut bytes)?).map_err(|error| error.to_string())?;
                let (value, rest) = bytes.split_at_checked(length).ok_or("a field is cut off")?;
                bytes = rest;
                Field::Bytes(value)
            }
            other => return Err(format!("wire type {other} is not used by Kubernetes")),
        };
        found.push((tag >> 3, field));
    }
    Ok(found)
}

fn number(bytes: &mut &[u8]) -> Result<u64, String> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().ok_or("a number is cut off")?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err("a number is too long".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(number: u8, text: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(text.len()).unwrap()], text].concat()
    }

    #[test]
    fn a_config_map_is_read() {
        let entry = [text(1, b"k"), text(2, b"v")].concat();
        let raw = [text(1, &text(1, b"name")), text(2, &entry), vec![4 << 3, 1]].concat();
        let kind = [text(1, b"v1"), text(2, b"ConfigMap")].concat();
        let body = [MAGIC.to_vec(), text(1, &kind), text(2, &raw)].concat();
        let want = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "name"}, "data": {"k": "v"}, "immutable": true,
        });
        assert_eq!(object(&body), Ok(want));
        assert!(object(b"{}").is_err());
        assert!(object(&body[..body.len() - 1]).is_err());
    }
}
