//! What an expression is worth.

use std::collections::BTreeMap;

use super::function;
use super::parse::{Expr, Literal};
use super::value::Value;

/// Names and what they stand for; the last one of a name counts.
pub(super) type Scope = Vec<(String, Value)>;

pub(super) fn evaluate(expr: &Expr, scope: &mut Scope) -> Result<Value, String> {
    Ok(match expr {
        Expr::Literal(literal) => constant(literal),
        Expr::Name(name) => {
            if let Some((_, value)) = scope.iter().rev().find(|(known, _)| known == name) {
                value.clone()
            } else {
                Value::Type(
                    type_named(name).ok_or_else(|| format!("undeclared reference to '{name}'"))?,
                )
            }
        }
        Expr::Select(of, name) => field(&evaluate(of, scope)?, name)?,
        Expr::Has(of, name) => Value::Bool(field(&evaluate(of, scope)?, name).is_ok()),
        Expr::Index(of, index) => {
            let (of, index) = (evaluate(of, scope)?, evaluate(index, scope)?);
            element(&of, &index)?
        }
        Expr::Call(name, arguments) => {
            let values: Result<Vec<_>, _> =
                arguments.iter().map(|argument| evaluate(argument, scope)).collect();
            function::call(name, &values?)?
        }
        Expr::Loop { over, macro_name, variable, body, result } => {
            let over = evaluate(over, scope)?;
            run_loop(macro_name, items(over)?, variable, body, result.as_deref(), scope)?
        }
        Expr::Unary("!", of) => match evaluate(of, scope)? {
            Value::Bool(is) => Value::Bool(!is),
            other => return Err(format!("no such overload: !{}", other.type_name())),
        },
        Expr::Unary(_, of) => match evaluate(of, scope)? {
            Value::Int(number) => Value::Int(number.checked_neg().ok_or("integer overflow")?),
            Value::Double(number) => Value::Double(-number),
            other => return Err(format!("no such overload: -{}", other.type_name())),
        },
        Expr::Binary("&&", left, right) => {
            logic(false, evaluate(left, scope), || evaluate(right, scope))?
        }
        Expr::Binary("||", left, right) => {
            logic(true, evaluate(left, scope), || evaluate(right, scope))?
        }
        Expr::Binary(sign, left, right) => {
            let (left, right) = (evaluate(left, scope)?, evaluate(right, scope)?);
            binary(sign, &left, &right)?
        }
        Expr::Choice(condition, yes, no) => match evaluate(condition, scope)? {
            Value::Bool(true) => evaluate(yes, scope)?,
            Value::Bool(false) => evaluate(no, scope)?,
            other => return Err(format!("no such overload: {} ? :", other.type_name())),
        },
        Expr::List(items) => {
            Value::List(items.iter().map(|item| evaluate(item, scope)).collect::<Result<_, _>>()?)
        }
        Expr::Map(entries) => {
            let mut map = BTreeMap::new();
            for (key, value) in entries {
                let Value::Text(key) = evaluate(key, scope)? else {
                    return Err("only text is a key here".to_owned());
                };
                map.insert(key, evaluate(value, scope)?);
            }
            Value::Map(map)
        }
    })
}

fn constant(literal: &Literal) -> Value {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(is) => Value::Bool(*is),
        Literal::Int(number) => Value::Int(*number),
        Literal::Uint(number) => Value::Uint(*number),
        Literal::Double(number) => Value::Double(*number),
        Literal::Text(text) => Value::Text(text.clone()),
    }
}

fn type_named(name: &str) -> Option<&'static str> {
    ["bool", "int", "uint", "double", "string", "list", "map", "null_type", "type"]
        .into_iter()
        .find(|known| *known == name)
}

/// `and` (deciding: false) and `or` (deciding: true). One side that decides makes up for an error of the other.
fn logic(
    deciding: bool,
    left: Result<Value, String>,
    right: impl FnOnce() -> Result<Value, String>,
) -> Result<Value, String> {
    if left == Ok(Value::Bool(deciding)) {
        return left;
    }
    let right = right();
    if right == Ok(Value::Bool(deciding)) {
        return right;
    }
    match (left?, right?) {
        (Value::Bool(_), Value::Bool(_)) => Ok(Value::Bool(!deciding)),
        (left, right) => {
            Err(format!("no such overload: {} and {}", left.type_name(), right.type_name()))
        }
    }
}

fn field(of: &Value, name: &str) -> Result<Value, String> {
    let Value::Map(fields) = of else {
        return Err(format!("no such overload: {}.{name}", of.type_name()));
    };
    fields.get(&unescape(name)).cloned().ok_or_else(|| format!("no such key: {name}"))
}

/// Field names that are no CEL names are written with these escapes.
fn unescape(name: &str) -> String {
    if !name.contains("__") {
        return name.to_owned();
    }
    let plain = name
        .replace("__dot__", ".")
        .replace("__dash__", "-")
        .replace("__slash__", "/")
        .replace("__underscores__", "__");
    match plain.strip_prefix("__").and_then(|inner| inner.strip_suffix("__")) {
        Some(keyword) => keyword.to_owned(),
        None => plain,
    }
}

fn element(of: &Value, index: &Value) -> Result<Value, String> {
    let found = match (of, index) {
        (Value::List(items), Value::Int(at)) => {
            usize::try_from(*at).ok().and_then(|at| items.get(at))
        }
        (Value::Map(fields), Value::Text(key)) => fields.get(key),
        _ => return Err(format!("no such overload: {}[{}]", of.type_name(), index.type_name())),
    };
    found.cloned().ok_or_else(|| match index {
        Value::Int(at) => format!("index out of bounds: {at}"),
        _ => "no such key".to_owned(),
    })
}

fn binary(sign: &str, left: &Value, right: &Value) -> Result<Value, String> {
    let ordered = |fits: fn(std::cmp::Ordering) -> bool| {
        left.order(right).map(|order| Value::Bool(fits(order))).ok_or_else(|| {
            format!("no such overload: {} {sign} {}", left.type_name(), right.type_name())
        })
    };
    match sign {
        "==" => Ok(Value::Bool(left.is_equal(right))),
        "!=" => Ok(Value::Bool(!left.is_equal(right))),
        "<" => ordered(std::cmp::Ordering::is_lt),
        "<=" => ordered(std::cmp::Ordering::is_le),
        ">" => ordered(std::cmp::Ordering::is_gt),
        ">=" => ordered(std::cmp::Ordering::is_ge),
        "in" => match (left, right) {
            (_, Value::List(items)) => {
                Ok(Value::Bool(items.iter().any(|item| item.is_equal(left))))
            }
            (Value::Text(key), Value::Map(fields)) => Ok(Value::Bool(fields.contains_key(key))),
            _ => Err(format!("no such overload: {} in {}", left.type_name(), right.type_name())),
        },
        _ => arithmetic(sign, left, right),
    }
}

pub(super) fn arithmetic(sign: &str, left: &Value, right: &Value) -> Result<Value, String> {
    let overflow = || "integer overflow".to_owned();
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => match sign {
            "+" => a.checked_add(*b),
            "-" => a.checked_sub(*b),
            "*" => a.checked_mul(*b),
            "/" | "%" if *b == 0 => return Err("division by zero".to_owned()),
            "/" => a.checked_div(*b),
            _ => a.checked_rem(*b),
        }
        .map(Value::Int)
        .ok_or_else(overflow),
        (Value::Uint(a), Value::Uint(b)) => match sign {
            "+" => a.checked_add(*b),
            "-" => a.checked_sub(*b),
            "*" => a.checked_mul(*b),
            "/" | "%" if *b == 0 => return Err("division by zero".to_owned()),
            "/" => a.checked_div(*b),
            _ => a.checked_rem(*b),
        }
        .map(Value::Uint)
        .ok_or_else(overflow),
        (Value::Double(a), Value::Double(b)) if sign != "%" => Ok(Value::Double(match sign {
            "+" => a + b,
            "-" => a - b,
            "*" => a * b,
            _ => a / b,
        })),
        (Value::Text(a), Value::Text(b)) if sign == "+" => Ok(Value::Text(format!("{a}{b}"))),
        (Value::List(a), Value::List(b)) if sign == "+" => {
            Ok(Value::List([a.clone(), b.clone()].concat()))
        }
        _ => Err(format!("no such overload: {} {sign} {}", left.type_name(), right.type_name())),
    }
}

/// What a macro runs over: the items of a list, the keys of a map.
fn items(over: Value) -> Result<Vec<Value>, String> {
    match over {
        Value::List(items) => Ok(items),
        Value::Map(fields) => Ok(fields.into_keys().map(Value::Text).collect()),
        other => Err(format!("{} is no list and no map", other.type_name())),
    }
}

fn run_loop(
    macro_name: &str,
    items: Vec<Value>,
    variable: &str,
    body: &Expr,
    result: Option<&Expr>,
    scope: &mut Scope,
) -> Result<Value, String> {
    let mut results = Vec::with_capacity(items.len());
    for item in items {
        scope.push((variable.to_owned(), item.clone()));
        let worth = evaluate(body, scope);
        let mapped = match (&worth, result) {
            (Ok(Value::Bool(true)), Some(result)) => Some(evaluate(result, scope)),
            _ => None,
        };
        scope.pop();
        results.push((item, worth, mapped.transpose()?));
    }
    let truths = |results: &[(Value, Result<Value, String>, Option<Value>)]| {
        results.iter().filter(|(_, worth, _)| *worth == Ok(Value::Bool(true))).count()
    };
    match macro_name {
        "all" => results.into_iter().try_fold(Value::Bool(true), |so_far, (_, worth, _)| {
            logic(false, Ok(so_far), || worth)
        }),
        "exists" => results.into_iter().try_fold(Value::Bool(false), |so_far, (_, worth, _)| {
            logic(true, Ok(so_far), || worth)
        }),
        "exists_one" => Ok(Value::Bool(truths(&results) == 1)),
        "filter" => Ok(Value::List(
            results
                .into_iter()
                .filter(|(_, worth, _)| *worth == Ok(Value::Bool(true)))
                .map(|(item, _, _)| item)
                .collect(),
        )),
        // With two expressions the first one filters.
        _ if result.is_some() => {
            Ok(Value::List(results.into_iter().filter_map(|(_, _, mapped)| mapped).collect()))
        }
        _ => Ok(Value::List(
            results.into_iter().map(|(_, worth, _)| worth).collect::<Result<_, _>>()?,
        )),
    }
}
