//! Server-sent events out of pieces that may be cut anywhere.

/// One event; its data is all of its lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) data: String,
}

#[derive(Debug, Default)]
pub(super) struct Events {
    /// A line of which the end has not come yet.
    rest: Vec<u8>,
    event: Event,
}

/// No event of ours comes near it; whoever sends more is no Roost.
const LARGEST_EVENT: usize = 64 << 20;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the service sends an event without an end")]
pub(super) struct TooLong;

impl Events {
    /// The events that are whole with this piece.
    pub(super) fn feed(&mut self, piece: &[u8]) -> Result<Vec<Event>, TooLong> {
        let mut events = Vec::new();
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            self.rest.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.rest);
                events.extend(
                    self.line(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n'])),
                );
            }
            if self.rest.len() + self.event.data.len() > LARGEST_EVENT {
                return Err(TooLong);
            }
        }
        Ok(events)
    }

    /// An empty line ends an event; one that begins with a colon only keeps the connection alive.
    fn line(&mut self, line: &str) -> Option<Event> {
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return (!event.data.is_empty()).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event.name),
            "data" => {
                if !self.event.data.is_empty() {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_may_be_cut_anywhere() {
        let stream = ": hello\n\nevent: overview\ndata: {\"a\":\ndata: \"é\"}\n\nevent: decision\r\nid: 7\r\ndata: {}\r\n\r\nevent: empty\n\n";
        let want = [("overview", "{\"a\":\n\"é\"}"), ("decision", "{}")];
        for size in 1..stream.len() {
            let mut events = Events::default();
            let pieces = stream.as_bytes().chunks(size);
            let found: Vec<Event> = pieces.flat_map(|piece| events.feed(piece).unwrap()).collect();
            let found: Vec<_> =
                found.iter().map(|event| (event.name.as_str(), event.data.as_str())).collect();
            assert_eq!(found, want, "in pieces of {size}");
        }
    }
    /// Only lines were bounded, so that lines without an end of the event filled the memory.
    #[test]
    fn an_event_without_an_end_is_given_up() {
        let line = [b"data: ".as_slice(), &vec![b'x'; 1 << 20], b"\n"].concat();
        for piece in [&line[..], &line[..line.len() - 1]] {
            let mut events = Events::default();
            let fed = (0..100).map(|_| events.feed(piece)).find(Result::is_err);
            assert_eq!(fed, Some(Err(TooLong)));
        }
    }
}
