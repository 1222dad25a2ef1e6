use proptest::prelude::*;

use super::*;

/// Every event as one line, the way both readers below can say it.
fn events(input: &str) -> Result<Vec<String>, WireError> {
    let mut reader = Reader::new(input.as_bytes());
    let mut lines = Vec::new();
    loop {
        match reader.next()? {
            Event::Start(start) => lines.push(format!("<{}", start.name)),
            Event::End => lines.push(">".into()),
            Event::Text(text) => lines.push(format!("\"{text}\"")),
            Event::Eof => return Ok(lines),
        }
    }
}

#[test]
fn both_spellings_of_the_schema_type_are_one() {
    for input in [
        r#"<val xsi:type="xsd:string">x</val>"#,
        r#"<val xmlns:_XMLSchema-instance="http://www.w3.org/2001/XMLSchema-instance" _XMLSchema-instance:type="xsd:string">x</val>"#,
        r"<ns1:val a:type='xsd:string' other='>'>x</ns1:val>",
    ] {
        let Event::Start(start) = Reader::new(input.as_bytes()).next().unwrap() else {
            panic!("no start: {input}")
        };
        assert_eq!(
            start,
            Start { name: "val", xsi_type: Some("string"), ref_type: None },
            "{input}"
        );
    }
}

#[test]
fn an_unprefixed_type_is_the_kind_of_a_reference() {
    let input = r#"<val type="Folder" xsi:type="ManagedObjectReference">group-2</val>"#;
    let Event::Start(start) = Reader::new(input.as_bytes()).next().unwrap() else {
        panic!("no start")
    };
    assert_eq!((start.ref_type, start.xsi_type), (Some("Folder"), Some("ManagedObjectReference")));
}

#[test]
fn text_is_unescaped_and_cdata_is_taken_as_it_is() {
    let mut reader =
        Reader::new(b"<a>1 &lt; 2 &amp;&#38;&#x26; <b>not this</b><![CDATA[<raw> & ]]></a>");
    reader.next().unwrap();
    assert_eq!(reader.text().unwrap(), "1 < 2 &&& <raw> & ");
}

#[test]
fn every_cut_of_a_document_is_incomplete_and_nothing_else() {
    let input =
        r#"<?xml version="1.0"?><!-- c --><a x='1'><b type="T">t &amp; u</b><c/><![CDATA[z]]></a>"#;
    for cut in 1..input.len() {
        let error = match events(&input[..cut]) {
            Err(error) => error,
            // Before the first tag there is nothing yet that could be incomplete.
            Ok(lines) => {
                assert!(lines.is_empty(), "{}", &input[..cut]);
                continue;
            }
        };
        assert!(matches!(error, WireError::Incomplete), "cut at {cut}: {error}");
    }
    assert!(events(input).is_ok());
}

#[test]
fn what_is_not_soap_is_refused() {
    for (input, what) in [
        ("<!DOCTYPE a [<!ENTITY x \"y\">]><a/>", "document type"),
        ("<a></b>", "closes nothing"),
        ("</a>", "closes nothing"),
        ("<a>&nbsp;</a>", "unknown entity"),
        ("<a>&#xD800;</a>", "unknown entity"),
        ("<a>fish & chips</a>", "bare '&'"),
        ("<a b></a>", "without a value"),
        ("<a b=c></a>", "without quotes"),
        ("hello", "outside the document"),
        ("hello<a/>", "outside the document"),
        ("<a/>hello<b/>", "outside the document"),
        ("< a/>", "without a name"),
    ] {
        let error = events(input).expect_err(input).to_string();
        assert!(error.contains(what), "{input}: {error}");
    }
}

#[test]
fn nesting_has_a_bound() {
    let deep = "<a>".repeat(100_000);
    assert!(events(&deep).unwrap_err().to_string().contains("too deep"));
}

/// The same lines from a reader that we did not write.
fn quick_xml_events(input: &str) -> Option<Vec<String>> {
    let mut reader = quick_xml::Reader::from_str(input);
    reader.config_mut().expand_empty_elements = true;
    let (mut lines, mut text) = (Vec::new(), String::new());
    loop {
        let event = reader.read_event().ok()?;
        match &event {
            quick_xml::events::Event::Text(more) => text.push_str(more),
            quick_xml::events::Event::GeneralRef(name) => {
                let name: &str = name;
                text.push_str(&quick_xml::escape::unescape(&format!("&{name};")).ok()?);
            }
            _ => {
                if !text.is_empty() {
                    lines.push(format!("\"{text}\""));
                    text.clear();
                }
            }
        }
        match event {
            quick_xml::events::Event::Start(start) => {
                lines.push(format!("<{}", start.local_name().as_ref()));
            }
            quick_xml::events::Event::End(_) => lines.push(">".into()),
            quick_xml::events::Event::Eof => return Some(lines),
            _ => {}
        }
    }
}

fn document() -> impl Strategy<Value = String> {
    let text = "[ -~é]{0,12}".prop_map(|text: String| {
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
    });
    let name = "([a-z]{1,3}:)?[A-Za-z_][A-Za-z0-9_.-]{0,8}";
    let leaf = (name, text.clone()).prop_map(|(name, text)| format!("<{name}>{text}</{name}>"));
    leaf.prop_recursive(4, 40, 5, move |inner| {
        (name, proptest::collection::vec(inner, 0..5), "[a-z]{0,6}").prop_map(
            |(name, children, value)| {
                format!("<{name} xmlns:q='u' q:type=\"xsd:{value}\">{}</{name}>", children.concat())
            },
        )
    })
}

proptest! {
    #[test]
    fn a_second_reader_sees_the_same_document(input in document()) {
        prop_assert_eq!(Some(events(&input).unwrap()), quick_xml_events(&input));
    }

    #[test]
    fn arbitrary_bytes_never_panic(input in proptest::collection::vec(any::<u8>(), 0..400)) {
        let mut reader = Reader::new(&input);
        while let Ok(event) = reader.next() {
            if matches!(event, Event::Eof) { break; }
        }
    }

    #[test]
    fn arbitrary_markup_never_panics(input in "[<>/=\"'&;a:!\\[\\]?-]{0,80}") {
        let mut reader = Reader::new(input.as_bytes());
        while let Ok(event) = reader.next() {
            if matches!(event, Event::Eof) { break; }
        }
    }
}
