//! The part of Go's templates that vApp properties use: values of the VM and of its network, and functions on addresses.
//!
//! `{{ V1alpha6_FirstIP }}`, `{{ V1alpha6_FormatIP "10.0.0.2" "255.255.255.0" }}`, `{{ (index .V1alpha6.Net.Devices 0).MacAddress }}`. A text with
//! anything else in braces is left as it is, as a whole.

use std::net::IpAddr;

use super::network::{GuestCard, GuestNetwork};
use crate::api::VirtualMachine;

/// The text with its templates filled in, or as it is if one of them cannot be.
pub fn render(text: &str, vm: &VirtualMachine, network: &GuestNetwork) -> String {
    let world = World { vm, network };
    fill(text, &world).unwrap_or_else(|| text.to_owned())
}

struct World<'a> {
    vm: &'a VirtualMachine,
    network: &'a GuestNetwork,
}

fn fill(text: &str, world: &World<'_>) -> Option<String> {
    let (mut done, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("{{") {
        let (expression, after) = after.split_once("}}")?;
        done.push_str(before);
        let tokens = tokens(expression.trim().trim_matches('-').trim())?;
        let (value, tail) = world.call(&tokens)?;
        if !tail.is_empty() {
            return None;
        }
        done.push_str(&value.text()?);
        rest = after;
    }
    Some(done + rest)
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Open,
    Close,
    Text(String),
    Number(i64),
    Name(String),
    /// `.Field`, behind a value or at the beginning.
    Field(String),
}

fn tokens(text: &str) -> Option<Vec<Token>> {
    let (mut all, mut rest) = (Vec::new(), text);
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() {
            rest = rest.trim_start();
            continue;
        }
        match first {
            '(' => all.push(Token::Open),
            ')' => all.push(Token::Close),
            '"' => {
                let (inner, tail) = rest[1..].split_once('"')?;
                all.push(Token::Text(inner.to_owned()));
                rest = tail;
                continue;
            }
            '.' => {
                let end = rest[1..].find(|c| !is_word(c)).map_or(rest.len(), |end| end + 1);
                all.push(Token::Field(rest[1..end].to_owned()));
                rest = &rest[end..];
                continue;
            }
            _ => {
                let sign = usize::from(first == '-');
                let end = rest[sign..].find(|c| !is_word(c)).map_or(rest.len(), |end| end + sign);
                let word = &rest[..end];
                if word.is_empty() {
                    return None;
                }
                all.push(match word.parse() {
                    Ok(number) => Token::Number(number),
                    Err(_) => Token::Name(word.to_owned()),
                });
                rest = &rest[end..];
                continue;
            }
        }
        rest = &rest[1..];
    }
    Some(all)
}

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Text(String),
    Number(i64),
    List(Vec<Value>),
    Json(serde_json::Value),
    Card(Box<GuestCard>),
    Root,
    Version,
    Net,
}

impl Value {
    fn text(&self) -> Option<String> {
        match self {
            Self::Text(text) | Self::Json(serde_json::Value::String(text)) => Some(text.clone()),
            Self::Number(number) => Some(number.to_string()),
            Self::Json(value @ (serde_json::Value::Number(_) | serde_json::Value::Bool(_))) => {
                Some(value.to_string())
            }
            Self::List(items) => {
                let texts: Option<Vec<_>> = items.iter().map(Self::text).collect();
                Some(format!("[{}]", texts?.join(" ")))
            }
            _ => None,
        }
    }

    fn texts(items: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::List(items.into_iter().map(|item| Self::Text(item.into())).collect())
    }
}

impl World<'_> {
    /// A function with its arguments, or a value.
    fn call<'t>(&self, tokens: &'t [Token]) -> Option<(Value, &'t [Token])> {
        let Some(Token::Name(name)) = tokens.first() else { return self.value(tokens) };
        let (mut arguments, mut rest) = (Vec::new(), &tokens[1..]);
        while !rest.is_empty() && rest[0] != Token::Close {
            let (argument, tail) = match &rest[0] {
                Token::Name(name) => (self.function(name, &[])?, &rest[1..]),
                _ => self.value(rest)?,
            };
            arguments.push(argument);
            rest = tail;
        }
        Some((self.function(name, &arguments)?, rest))
    }

    fn value<'t>(&self, tokens: &'t [Token]) -> Option<(Value, &'t [Token])> {
        let (mut value, mut rest) = match tokens.first()? {
            Token::Text(text) => (Value::Text(text.clone()), &tokens[1..]),
            Token::Number(number) => (Value::Number(*number), &tokens[1..]),
            Token::Field(_) => (Value::Root, tokens),
            Token::Open => {
                let (value, rest) = self.call(&tokens[1..])?;
                (value, rest.split_first().filter(|(first, _)| **first == Token::Close)?.1)
            }
            Token::Close | Token::Name(_) => return None,
        };
        while let Some((Token::Field(name), tail)) = rest.split_first() {
            value = self.field(&value, name)?;
            rest = tail;
        }
        Some((value, rest))
    }

    fn field(&self, value: &Value, name: &str) -> Option<Value> {
        Some(match (value, name) {
            (Value::Root, version) if is_version(version) => Value::Version,
            (Value::Version, "Net") => Value::Net,
            (Value::Version, "VM") => Value::Json(serde_json::to_value(self.vm).ok()?),
            (Value::Net, "Devices") => {
                let cards = self.network.cards.iter();
                Value::List(cards.map(|card| Value::Card(Box::new(card.clone()))).collect())
            }
            (Value::Net, "Nameservers") => Value::texts(self.network.nameservers.clone()),
            (Value::Card(card), "IPAddresses") => Value::texts(card.addresses.clone()),
            (Value::Card(card), "Gateway4") => {
                Value::Text(card.gateway4.clone().unwrap_or_default())
            }
            (Value::Card(card), "MacAddress") => Value::Text(card.mac.clone()),
            (Value::Json(object), name) => {
                // Go's names begin with a capital, those of the object do not.
                let mut letters = name.chars();
                let first = letters.next()?.to_lowercase().collect::<String>();
                let lower = format!("{first}{}", letters.as_str());
                let fields = object.as_object()?;
                let own =
                    ["metadata", "spec"].iter().find_map(|part| fields.get(*part)?.get(&lower));
                Value::Json(fields.get(&lower).or(own)?.clone())
            }
            _ => return None,
        })
    }

    fn function(&self, name: &str, arguments: &[Value]) -> Option<Value> {
        if name == "index" {
            let [Value::List(items), Value::Number(at)] = arguments else { return None };
            return items.get(usize::try_from(*at).ok()?).cloned();
        }
        let (version, function) = name.split_once('_')?;
        if !is_version(version) {
            return None;
        }
        let cards = &self.network.cards;
        let card = |at: &Value| match at {
            Value::Number(at) => cards.get(usize::try_from(*at).ok()?),
            _ => None,
        };
        let text = |at: usize| match arguments.get(at)? {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        };
        let first = |card: Option<&GuestCard>, family: Option<bool>| {
            let found = card?.addresses.iter().find(|text| {
                let address = bare(text).parse::<IpAddr>().ok();
                address.is_some_and(|address| family.is_none_or(|v4| address.is_ipv4() == v4))
            });
            found.cloned()
        };
        Some(match (function, arguments) {
            ("FirstIP", []) => Value::Text(first(cards.first(), None)?),
            ("FirstIPv4", []) => Value::Text(bare(&first(cards.first(), Some(true))?).to_owned()),
            ("FirstIPv6", []) => Value::Text(bare(&first(cards.first(), Some(false))?).to_owned()),
            ("FirstIPFromNIC", [at]) => Value::Text(first(card(at), None)?),
            ("FirstIPv4FromNIC", [at]) => {
                Value::Text(bare(&first(card(at), Some(true))?).to_owned())
            }
            ("FirstIPv6FromNIC", [at]) => {
                Value::Text(bare(&first(card(at), Some(false))?).to_owned())
            }
            ("IPsFromNIC", [at]) => Value::texts(card(at)?.addresses.clone()),
            ("FirstNicMacAddr", []) => Value::Text(cards.first()?.mac.clone()),
            ("FormatIP", [_, _]) => Value::Text(format_ip(text(0)?, text(1)?)?),
            ("IP", [_]) => Value::Text(
                bare(text(0)?)
                    .parse::<IpAddr>()
                    .ok()
                    .map(|_| bare(text(0).unwrap_or_default()).to_owned())?,
            ),
            ("SubnetMask", [_]) => Value::Text(subnet_mask(prefix(text(0)?)?)?),
            ("PrefixLength", [_]) => Value::Number(prefix(text(0)?)?.into()),
            ("IsUsableIP", [_]) => {
                let address: Option<IpAddr> = bare(text(0)?).parse().ok();
                let usable = address.is_some_and(|of| !of.is_unspecified() && !of.is_loopback());
                Value::Json(usable.into())
            }
            ("FormatNameservers", [Value::Number(count), Value::Text(between)]) => {
                let all = &self.network.nameservers;
                let count = usize::try_from(*count).unwrap_or(all.len()).min(all.len());
                Value::Text(all[..count].join(between))
            }
            _ => return None,
        })
    }
}

fn is_version(text: &str) -> bool {
    text.strip_prefix("V1alpha")
        .is_some_and(|number| matches!(number, "1" | "2" | "3" | "4" | "5" | "6"))
}

fn bare(cidr: &str) -> &str {
    cidr.split_once('/').map_or(cidr, |(address, _)| address)
}

fn prefix(cidr: &str) -> Option<u8> {
    cidr.split_once('/')?.1.parse().ok().filter(|prefix| *prefix <= 128)
}

fn subnet_mask(prefix: u8) -> Option<String> {
    let bits = u32::MAX.checked_shl(32_u32.checked_sub(prefix.into())?).unwrap_or(0);
    Some(std::net::Ipv4Addr::from_bits(bits).to_string())
}

/// An address with another form of its mask: `/24`, `24`, `255.255.255.0`, or none.
fn format_ip(address: &str, mask: &str) -> Option<String> {
    let address = bare(address);
    address.parse::<IpAddr>().ok()?;
    if mask.is_empty() {
        return Some(address.to_owned());
    }
    if let Ok(mask) = mask.parse::<std::net::Ipv4Addr>() {
        return Some(format!("{address}/{}", mask.to_bits().leading_ones()));
    }
    let length: u8 = mask.trim_start_matches('/').parse().ok()?;
    Some(format!("{address}/{length}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::network::DnsDefaults;
    use super::super::tests::vm;
    use super::*;

    #[test]
    fn templates_are_filled_or_left_alone() {
        let vm = vm(
            json!({"className": "small", "network": {"nameservers": ["10.0.0.2", "10.0.0.3"], "interfaces": [
                {"name": "eth0", "addresses": ["10.0.0.21/24", "fd00::21/64"], "gateway4": "10.0.0.1"},
                {"name": "eth1", "addresses": ["10.1.0.21/22"]},
            ]}}),
        );
        let macs = ["00:50:56:00:00:01".to_owned()];
        let network = GuestNetwork::of(&vm, &macs, &DnsDefaults::default());
        for (text, want) in [
            ("plain", "plain"),
            ("{{ V1alpha6_FirstIP }}", "10.0.0.21/24"),
            ("ip={{V1alpha6_FirstIPv4}};", "ip=10.0.0.21;"),
            ("{{ V1alpha6_FirstIPv6FromNIC 0 }}", "fd00::21"),
            ("{{ V1alpha2_FirstIPFromNIC 1 }}", "10.1.0.21/22"),
            ("{{ V1alpha6_SubnetMask V1alpha6_FirstIP }}", "255.255.255.0"),
            ("{{ V1alpha6_PrefixLength (V1alpha6_FirstIPFromNIC 1) }}", "22"),
            ("{{ V1alpha6_IP V1alpha6_FirstIP }}", "10.0.0.21"),
            ("{{ V1alpha6_FormatIP \"10.0.0.9\" \"255.255.255.0\" }}", "10.0.0.9/24"),
            ("{{ V1alpha6_FormatIP V1alpha6_FirstIP \"\" }}", "10.0.0.21"),
            ("{{ V1alpha6_FormatNameservers -1 \",\" }}", "10.0.0.2,10.0.0.3"),
            ("{{ V1alpha6_FormatNameservers 1 \",\" }}", "10.0.0.2"),
            ("{{ V1alpha6_FirstNicMacAddr }}", "00:50:56:00:00:01"),
            ("{{ (index .V1alpha6.Net.Devices 0).Gateway4 }}", "10.0.0.1"),
            ("{{ (index (index .V1alpha6.Net.Devices 1).IPAddresses 0) }}", "10.1.0.21/22"),
            ("{{ index .V1alpha6.Net.Nameservers 1 }}", "10.0.0.3"),
            ("{{ .V1alpha6.VM.Name }}", "web-0"),
            ("{{ .V1alpha6.VM.Spec.ClassName }}", "small"),
            ("{{ V1alpha6_Unknown }}", "{{ V1alpha6_Unknown }}"),
            ("{{ V1alpha6_FirstIPFromNIC 7 }}", "{{ V1alpha6_FirstIPFromNIC 7 }}"),
            ("{{ open", "{{ open"),
            ("{{ V1alpha9_FirstIP }}", "{{ V1alpha9_FirstIP }}"),
            ("{{}}", "{{}}"),
        ] {
            assert_eq!(render(text, &vm, &network), want, "{text}");
        }
    }
}
