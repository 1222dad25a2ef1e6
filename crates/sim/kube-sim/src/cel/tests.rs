use serde_json::{Value as Json, json};

use super::evaluate::evaluate;
use super::parse::parse;
use super::value::Value;

fn worth(text: &str, itself: &Json) -> Result<Value, String> {
    let expr = parse(text)?;
    evaluate(&expr, &mut vec![("self".to_owned(), Value::from(itself))])
}

#[test]
fn rules_as_definitions_write_them() {
    let itself = json!({
        "type": "VMXNet3", "count": 3, "ratio": 0.5, "modes": ["IPv4", "IPv6"], "name": "web-0", "map": {"a": 1},
        "none": null, "namespace": "n", "x-y": 1
    });
    for (text, want) in [
        ("has(self.type) && self.type == 'VMXNet3'", true),
        ("!has(self.vmxnet3) || self.type == 'VMXNet3'", true),
        ("self.count > 2 && self.count <= 3 && -self.count < 0", true),
        ("self.count * 2 + 1 == 7 && self.count % 2 == 1 && self.count / 2 == 1", true),
        ("self.modes.all(m, m == 'IPv4' || m == 'IPv6')", true),
        ("self.modes.exists(m, m == 'IPv7')", false),
        ("self.modes.exists_one(m, m.endsWith('6'))", true),
        ("self.modes.filter(m, m != 'IPv4') == ['IPv6']", true),
        ("self.modes.map(m, size(m)) == [4, 4]", true),
        ("size(self.modes) < 2 || self.modes[0] != self.modes[1]", true),
        ("self.name.matches(\"^web-[0-9]+$\") && self.name.startsWith('web')", true),
        ("type(self.count) == int && type(self.name) == string", true),
        ("type(self.count) != string || !self.count.endsWith('m')", true),
        ("'a' in self.map && 'IPv4' in self.modes && !('b' in self.map)", true),
        ("self.missing == 1 || true", true),
        ("self.count > 1 ? self.name == 'web-0' : false", true),
        ("self.none == null", true),
        ("self.ratio < 1.0 && self.ratio < 1", true),
        ("self.name.split('-')[1] == '0' && ['a', 'b'].join('/') == 'a/b'", true),
        ("string(self.count) + 'x' == '3x' && int('4') == 4", true),
        ("self.__namespace__ == 'n' && self.x__dash__y == 1", true),
        ("{'a': 1}.a == 1", true),
    ] {
        assert_eq!(worth(text, &itself), Ok(Value::Bool(want)), "{text}");
    }
}

#[test]
fn errors_are_said() {
    let itself = json!({"count": 3});
    for (text, want) in [
        ("self.missing == 1", "no such key: missing"),
        ("self.count / 0 == 1", "division by zero"),
        ("self.count.startsWith('a')", "no such overload: startsWith(int, string)"),
        ("quantity('1Gi') == 1", "undeclared reference to 'quantity'"),
        ("self.count ==", "the expression ends too early"),
        ("self.count 3", "unexpected Int(3) after the expression"),
    ] {
        assert_eq!(worth(text, &itself), Err(want.to_owned()), "{text}");
    }
}
