use bytes::Bytes;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

/// All frames of `wire`, fed in chunks; pieces of one data frame are joined again.
fn decode(wire: &[u8], chunk: usize) -> Result<Vec<Frame>, SpdyError> {
    let (mut decoder, mut frames) = (Decoder::default(), Vec::new());
    for chunk in wire.chunks(chunk.max(1)) {
        decoder.buffer().extend_from_slice(chunk);
        while let Some(frame) = decoder.next_frame()? {
            match (frames.last_mut(), frame) {
                (
                    Some(Frame::Data { id, fin, data }),
                    Frame::Data { id: next, fin: end, data: more },
                ) if *id == next && !*fin => {
                    *data = [data.as_ref(), more.as_ref()].concat().into();
                    *fin = end;
                }
                (_, frame) => frames.push(frame),
            }
        }
    }
    Ok(frames)
}

fn headers(pairs: &[(&str, &str)]) -> Headers {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn open(id: u32, kind: &str) -> Frame {
    Frame::SynStream { id: StreamId(id), fin: false, headers: headers(&[("streamtype", kind)]) }
}

#[test]
fn what_an_api_server_sends_is_understood() {
    let wire = bytes(
        "80 03 00 01 00 00 00 29 00 00 00 01 00 00 00 00 00 00 78 f9 e3 c6 a7 c2 62 60 60 60 04 a7 b3 92 a2 d4 c4 5c 68 51 c2 9a 0a 0a 68 00 00 00 00 ff ff
         80 03 00 01 00 00 00 19 00 00 00 03 00 00 00 00 00 00 c2 2a c5 56 5c 92 92 5f 5a 02 00 00 00 ff ff
         80 03 00 01 00 00 00 15 00 00 00 05 00 00 00 00 00 00 c2 29 97 5a 54 04 00 00 00 ff ff",
    );
    let wanted = vec![open(1, "error"), open(3, "stdout"), open(5, "stderr")];
    for chunk in [1, 7, wire.len()] {
        assert_eq!(decode(&wire, chunk), Ok(wanted.clone()), "in chunks of {chunk}");
    }
}

#[test]
fn a_small_block_that_unpacks_to_a_lot_is_refused() {
    let bomb = headers(&[("streamtype", &"x".repeat(1 << 20))]);
    let frame = Frame::SynStream { id: StreamId(1), fin: false, headers: bomb };
    let wire = Encoder::default().encode(&frame);
    assert!(wire.len() < 8 * 1024, "it is small: {}", wire.len());
    assert_eq!(decode(&wire, wire.len()), Err(SpdyError::HeadersTooLarge));
}

#[test]
fn what_is_no_spdy_is_refused_before_it_is_waited_for() {
    assert_eq!(decode(b"\xff\xffT / HTTP/1.1\r\n", 64), Err(SpdyError::Version(0x7fff)));
    assert_eq!(decode(&bytes("80 03 00 01 00 ff ff ff"), 8), Err(SpdyError::TooLong(0x00ff_ffff)));
    assert_eq!(decode(&bytes("80 03 00 06 00 00 00 02 00 00"), 10), Err(SpdyError::TooShort(6)));
}

fn frame() -> impl Strategy<Value = Frame> {
    let id = (1_u32..0x7fff_ffff).prop_map(StreamId);
    let headers = btree_map("[a-z]{1,12}", "[ -~]{0,30}", 0..5);
    prop_oneof![
        (id.clone(), any::<bool>(), headers.clone())
            .prop_map(|(id, fin, headers)| Frame::SynStream { id, fin, headers }),
        (id.clone(), any::<bool>(), headers).prop_map(|(id, fin, headers)| Frame::SynReply {
            id,
            fin,
            headers
        }),
        (id.clone(), vec(any::<u8>(), 0..300)).prop_map(|(id, data)| Frame::Data {
            id,
            fin: true,
            data: data.into()
        }),
        (id.clone(), any::<u32>()).prop_map(|(id, code)| Frame::Reset { id, code }),
        any::<u32>().prop_map(|id| Frame::Ping { id }),
        (id, any::<u32>()).prop_map(|(last, status)| Frame::GoAway { last, status }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn frames_come_back_as_they_were_however_they_are_cut(frames in vec(frame(), 0..20), chunk in 1_usize..64) {
        let mut encoder = Encoder::default();
        let wire: Vec<u8> = frames.iter().flat_map(|frame| encoder.encode(frame)).collect();
        prop_assert_eq!(decode(&wire, chunk), Ok(frames));
    }

    #[test]
    fn no_bytes_break_the_decoder(mut wire in vec(any::<u8>(), 0..400), is_control: bool, chunk in 1_usize..64) {
        if is_control && wire.len() > 5 {
            wire[..3].copy_from_slice(&[0x80, 3, 0]);
            wire[3] %= 10;
            wire[5] = 0;
        }
        let whole = decode(&wire, wire.len());
        let cut = decode(&wire, chunk);
        prop_assert_eq!(whole.is_ok(), cut.is_ok());
    }

    #[test]
    fn a_bent_bit_breaks_nothing(frames in vec(frame(), 1..6), at: prop::sample::Index, bit in 0..8_u8) {
        let mut encoder = Encoder::default();
        let mut wire: Vec<u8> = frames.iter().flat_map(|frame| encoder.encode(frame)).collect();
        let at = at.index(wire.len());
        wire[at] ^= 1 << bit;
        let _ = decode(&wire, 16);
    }
}

/// The client's side of a connection, in frames.
struct Client {
    connection: tokio::io::DuplexStream,
    encoder: Encoder,
    decoder: Decoder,
}

impl Client {
    fn connect() -> (Self, Session) {
        let (near, far) = tokio::io::duplex(1 << 16);
        let client =
            Self { connection: near, encoder: Encoder::default(), decoder: Decoder::default() };
        (client, Session::serve(far))
    }

    async fn say(&mut self, frame: Frame) {
        self.connection.write_all(&self.encoder.encode(&frame)).await.unwrap();
    }

    async fn hear(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.decoder.next_frame().unwrap() {
                return Some(frame);
            }
            if self.connection.read_buf(self.decoder.buffer()).await.unwrap() == 0 {
                return None;
            }
        }
    }
}

fn data(id: u32, data: &'static [u8], fin: bool) -> Frame {
    Frame::Data { id: StreamId(id), fin, data: Bytes::from_static(data) }
}

fn reply(id: u32) -> Frame {
    Frame::SynReply { id: StreamId(id), fin: false, headers: Headers::new() }
}

#[tokio::test]
async fn a_stream_carries_both_ways_and_ends_on_each_side_alone() {
    let (mut client, mut session) = Client::connect();
    client.say(open(1, "data")).await;
    client.say(data(1, b"hello", false)).await;
    client.say(data(1, b"", true)).await;
    let mut stream = session.accept().await.unwrap();
    assert_eq!(stream.headers["streamtype"], "data");
    assert_eq!(client.hear().await, Some(reply(1)));
    assert_eq!(stream.incoming.next().await.as_deref(), Some(&b"hello"[..]));
    assert_eq!(stream.incoming.next().await, None);
    stream.outgoing.send(Bytes::from_static(b"late")).await.unwrap();
    stream.outgoing.finish().await.unwrap();
    assert_eq!(client.hear().await, Some(data(1, b"late", false)));
    assert_eq!(client.hear().await, Some(data(1, b"", true)));
    session.close().await;
    assert!(matches!(client.hear().await, Some(Frame::GoAway { .. })));
    assert_eq!(client.hear().await, None);
}

#[tokio::test]
async fn pings_are_answered_with_the_same_number() {
    let (mut client, _session) = Client::connect();
    client.say(Frame::Ping { id: 7 }).await;
    client.say(Frame::Ping { id: 8 }).await;
    client.say(Frame::Ping { id: 9 }).await;
    assert_eq!(client.hear().await, Some(Frame::Ping { id: 7 }));
    assert_eq!(client.hear().await, Some(Frame::Ping { id: 9 }), "8 answers us");
}

#[tokio::test]
async fn a_client_that_goes_ends_the_session_and_its_streams() {
    for goodbye in [true, false] {
        let (mut client, mut session) = Client::connect();
        client.say(open(1, "data")).await;
        let mut stream = session.accept().await.unwrap();
        if goodbye {
            client.say(Frame::GoAway { last: StreamId(0), status: 0 }).await;
        } else {
            drop(client);
        }
        session.ended().await;
        assert_eq!(stream.incoming.next().await, None);
        assert!(session.accept().await.is_none());
    }
}

#[tokio::test]
async fn ids_that_do_not_grow_end_the_session() {
    for second in [1, 2] {
        let (mut client, mut session) = Client::connect();
        client.say(open(1, "a")).await;
        client.say(open(second, "b")).await;
        assert!(session.accept().await.is_some());
        session.ended().await;
        assert!(session.accept().await.is_none());
    }
}

#[tokio::test]
async fn what_nobody_reads_any_more_is_passed_over() {
    let (mut client, mut session) = Client::connect();
    client.say(open(1, "a")).await;
    drop(session.accept().await.unwrap().incoming);
    for _ in 0..100 {
        client.say(data(1, b"unread", false)).await;
    }
    client.say(Frame::Ping { id: 1 }).await;
    assert_eq!(client.hear().await, Some(reply(1)));
    assert_eq!(client.hear().await, Some(Frame::Ping { id: 1 }));
}
