//! Functions and methods.

use super::value::Value;

pub(super) const FUNCTIONS: &[&str] =
    &["size", "type", "int", "uint", "double", "string", "bool", "dyn"];

pub(super) const METHODS: &[&str] = &[
    "size",
    "startsWith",
    "endsWith",
    "contains",
    "matches",
    "lowerAscii",
    "upperAscii",
    "trim",
    "split",
    "join",
    "replace",
    "indexOf",
    "lastIndexOf",
    "charAt",
    "substring",
    "find",
    "isSorted",
    "sum",
    "min",
    "max",
];

pub(super) fn call(name: &str, arguments: &[Value]) -> Result<Value, String> {
    let unfit = || {
        let types: Vec<_> = arguments.iter().map(Value::type_name).collect();
        format!("no such overload: {name}({})", types.join(", "))
    };
    Ok(match (name, arguments) {
        ("size", [Value::Text(text)]) => count(text.chars().count()),
        ("size", [Value::List(items)]) => count(items.len()),
        ("size", [Value::Map(fields)]) => count(fields.len()),
        ("type", [value]) => Value::Type(value.type_name()),
        ("dyn", [value]) => value.clone(),
        ("int" | "uint" | "double" | "string" | "bool", [value]) => {
            convert(name, value).ok_or_else(unfit)?
        }
        ("startsWith", [Value::Text(text), Value::Text(start)]) => {
            Value::Bool(text.starts_with(start))
        }
        ("endsWith", [Value::Text(text), Value::Text(end)]) => Value::Bool(text.ends_with(end)),
        ("contains", [Value::Text(text), Value::Text(part)]) => Value::Bool(text.contains(part)),
        ("matches", [Value::Text(text), Value::Text(pattern)]) => {
            Value::Bool(regex(pattern)?.is_match(text))
        }
        ("find", [Value::Text(text), Value::Text(pattern)]) => Value::Text(
            regex(pattern)?.find(text).map(|found| found.as_str().to_owned()).unwrap_or_default(),
        ),
        ("lowerAscii", [Value::Text(text)]) => Value::Text(text.to_ascii_lowercase()),
        ("upperAscii", [Value::Text(text)]) => Value::Text(text.to_ascii_uppercase()),
        ("trim", [Value::Text(text)]) => Value::Text(text.trim().to_owned()),
        ("split", [Value::Text(text), Value::Text(by)]) => {
            Value::List(text.split(by.as_str()).map(|part| Value::Text(part.to_owned())).collect())
        }
        ("join", [Value::List(items), rest @ ..]) => {
            let by = match rest {
                [] => "",
                [Value::Text(by)] => by.as_str(),
                _ => return Err(unfit()),
            };
            let parts: Option<Vec<_>> = items
                .iter()
                .map(|item| if let Value::Text(text) = item { Some(text.as_str()) } else { None })
                .collect();
            Value::Text(parts.ok_or_else(unfit)?.join(by))
        }
        ("replace", [Value::Text(text), Value::Text(from), Value::Text(to)]) => {
            Value::Text(text.replace(from, to))
        }
        ("indexOf", [Value::Text(text), Value::Text(part)]) => {
            position(text, text.find(part.as_str()))
        }
        ("lastIndexOf", [Value::Text(text), Value::Text(part)]) => {
            position(text, text.rfind(part.as_str()))
        }
        ("indexOf", [Value::List(items), item]) => {
            items.iter().position(|other| other.is_equal(item)).map_or(Value::Int(-1), count)
        }
        ("charAt", [Value::Text(text), Value::Int(at)]) => Value::Text(
            usize::try_from(*at)
                .ok()
                .and_then(|at| text.chars().nth(at))
                .map(String::from)
                .unwrap_or_default(),
        ),
        ("substring", [Value::Text(text), Value::Int(from), rest @ ..]) => {
            let letters: Vec<char> = text.chars().collect();
            let from = usize::try_from(*from).map_err(|_| unfit())?;
            let to = match rest {
                [] => letters.len(),
                [Value::Int(to)] => usize::try_from(*to).map_err(|_| unfit())?,
                _ => return Err(unfit()),
            };
            let part =
                letters.get(from..to).ok_or_else(|| format!("index out of range: {from}"))?;
            Value::Text(part.iter().collect())
        }
        ("isSorted", [Value::List(items)]) => Value::Bool(
            items.is_sorted_by(|a, b| a.order(b).is_some_and(std::cmp::Ordering::is_le)),
        ),
        ("sum", [Value::List(items)]) => items
            .iter()
            .try_fold(Value::Int(0), |sum, item| super::evaluate::arithmetic("+", &sum, item))?,
        ("min" | "max", [Value::List(items)]) => {
            let wanted =
                if name == "min" { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater };
            let best = items
                .iter()
                .reduce(|best, item| if item.order(best) == Some(wanted) { item } else { best });
            best.cloned().ok_or_else(|| format!("{name} called on empty list"))?
        }
        _ => return Err(unfit()),
    })
}

fn regex(pattern: &str) -> Result<regex::Regex, String> {
    regex::Regex::new(pattern).map_err(|_| format!("{pattern:?} is no regular expression"))
}

fn count(count: usize) -> Value {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

fn position(text: &str, at: Option<usize>) -> Value {
    at.map_or(Value::Int(-1), |at| count(text[..at].chars().count()))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "conversion is what was asked for"
)]
fn convert(to: &str, value: &Value) -> Option<Value> {
    Some(match (to, value) {
        ("int", Value::Int(number)) => Value::Int(*number),
        ("int", Value::Uint(number)) => Value::Int(i64::try_from(*number).ok()?),
        ("int", Value::Double(number)) => Value::Int(*number as i64),
        ("int", Value::Text(text)) => Value::Int(text.parse().ok()?),
        ("uint", Value::Int(number)) => Value::Uint(u64::try_from(*number).ok()?),
        ("uint", Value::Text(text)) => Value::Uint(text.parse().ok()?),
        ("double", Value::Int(number)) => Value::Double(*number as f64),
        ("double", Value::Double(number)) => Value::Double(*number),
        ("double", Value::Text(text)) => Value::Double(text.parse().ok()?),
        ("string", Value::Text(text)) => Value::Text(text.clone()),
        ("string", Value::Int(number)) => Value::Text(number.to_string()),
        ("string", Value::Uint(number)) => Value::Text(number.to_string()),
        ("string", Value::Double(number)) => Value::Text(number.to_string()),
        ("string", Value::Bool(is)) => Value::Text(is.to_string()),
        ("bool", Value::Bool(is)) => Value::Bool(*is),
        ("bool", Value::Text(text)) => Value::Bool(text.parse().ok()?),
        _ => return None,
    })
}
