use proptest::prelude::*;

use super::*;
use crate::types::{
    DynamicProperty, ObjectUpdateKind, PropertyFilterUpdate, RetrieveResult, UpdateSet,
};
use crate::{MoType, Value, encode_fault, encode_reply, methods};

fn collect(body: &[u8], chunk: usize) -> Result<Vec<Item>, WireError> {
    let (mut decoder, mut items) = (PageDecoder::new(), Vec::new());
    for chunk in body.chunks(chunk.max(1)) {
        decoder.feed(chunk, |item| items.push(item))?;
    }
    decoder.finish(|item| items.push(item))?;
    Ok(items)
}

fn retrieve_answer(objects: usize) -> Vec<u8> {
    let objects = (0..objects).map(|n| ObjectContent {
        obj: MoRef::vm(format!("vm-{n}")),
        prop_set: vec![DynamicProperty {
            name: "name".into(),
            val: Value::string(format!("worker <{n}>")),
        }],
        missing_set: Vec::new(),
    });
    let result = RetrieveResult { token: Some("0".into()), objects: objects.collect() };
    encode_reply::<methods::RetrievePropertiesEx>(&Some(result))
}

#[test]
fn a_page_comes_out_whole_however_it_is_cut() {
    let body = retrieve_answer(20);
    let whole = collect(&body, usize::MAX).unwrap();
    assert_eq!(whole.len(), 21);
    assert_eq!(whole[0], Item::Token("0".into()));
    for chunk in 1..=body.len() {
        assert_eq!(collect(&body, chunk).unwrap(), whole, "in chunks of {chunk}");
    }
}

#[test]
fn updates_come_with_their_filter_and_version() {
    let filter = MoRef::new(MoType::PropertyFilter, "f");
    let leave = ObjectUpdate {
        kind: ObjectUpdateKind::Leave,
        obj: MoRef::vm("vm-1"),
        ..Default::default()
    };
    let set = UpdateSet {
        version: "7".into(),
        filter_set: vec![PropertyFilterUpdate {
            filter: filter.clone(),
            object_set: vec![leave.clone()],
            missing_set: vec![],
        }],
        truncated: Some(true),
    };
    let body = encode_reply::<methods::WaitForUpdatesEx>(&Some(set));
    let want = [
        Item::Version("7".into()),
        Item::Filter(filter),
        Item::Update(leave),
        Item::Truncated(true),
    ];
    assert_eq!(collect(&body, 7).unwrap(), want);
}

#[test]
fn an_empty_answer_and_empty_containers_are_no_items() {
    for body in [
        r#"<e:Envelope><e:Body><WaitForUpdatesExResponse xmlns="urn:vim25"></WaitForUpdatesExResponse></e:Body></e:Envelope>"#,
        r#"<?xml version="1.0"?><e:Envelope><e:Header/><e:Body><WaitForUpdatesExResponse xmlns="urn:vim25"/></e:Body></e:Envelope>"#,
        r"<Envelope><Body><RetrievePropertiesExResponse><returnval/></RetrievePropertiesExResponse></Body></Envelope>",
        r"<Envelope><Body><WaitForUpdatesExResponse><returnval><filterSet/><new><x/></new></returnval></WaitForUpdatesExResponse></Body></Envelope>",
    ] {
        for chunk in [1, 3, 1000] {
            assert_eq!(collect(body.as_bytes(), chunk).unwrap(), [], "{body}");
        }
    }
}

/// Found by fuzzing: the outcome depended on whether the rest came in the same chunk.
#[test]
fn what_follows_the_envelope_is_ignored_however_it_is_cut() {
    let body = b"<Envelope>||</Envelope>||||||||<Body><x";
    for chunk in 1..body.len() {
        assert_eq!(collect(body, chunk), Ok(Vec::new()), "in chunks of {chunk}");
    }
}

#[test]
fn a_fault_is_an_item() {
    let body = encode_fault(&crate::Fault::of("InvalidCollectorVersion"), "stale");
    let items = collect(&body, 10).unwrap();
    let [Item::Fault(fault)] = items.as_slice() else { panic!("{items:?}") };
    assert_eq!(
        (fault.fault.class.as_str(), fault.localized_message.as_deref()),
        ("InvalidCollectorVersion", Some("stale"))
    );
}

#[test]
fn a_body_that_stops_in_the_middle_is_an_error() {
    let body = retrieve_answer(3);
    for cut in [0, 10, body.len() / 2, body.len() - 1] {
        assert_eq!(collect(&body[..cut], 64).unwrap_err(), WireError::Incomplete, "cut at {cut}");
    }
}

#[test]
fn memory_holds_an_element_and_a_chunk_and_never_the_body() {
    let body = retrieve_answer(10_000);
    let (mut decoder, mut most) = (PageDecoder::new(), 0);
    for chunk in body.chunks(16 << 10) {
        decoder.feed(chunk, |_| {}).unwrap();
        most = most.max(decoder.buffer.capacity());
    }
    assert!(most < 128 << 10, "{most} of {} bytes were held", body.len());
}

#[test]
fn an_element_without_end_is_refused_at_a_bound() {
    let mut decoder = PageDecoder::new();
    let head = b"<Envelope><Body><R><returnval><objects><obj>";
    decoder.feed(head, |_| {}).unwrap();
    let chunk = vec![b'x'; 4 << 20];
    let refused = (0..64).find_map(|_| decoder.feed(&chunk, |_| {}).err());
    assert_eq!(refused, Some(WireError::TooLarge { limit: MAX_ITEM }));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(input in proptest::collection::vec(any::<u8>(), 0..600), chunk in 1_usize..64) {
        let _ = collect(&input, chunk);
    }

    /// A real answer with bytes changed: any outcome is fine but a panic.
    #[test]
    fn a_damaged_answer_never_panics(at in 0_usize..2000, with in any::<u8>(), chunk in 1_usize..200) {
        let mut body = retrieve_answer(10);
        let at = at % body.len();
        body[at] = with;
        let _ = collect(&body, chunk);
    }
}
