//! SOAP around a call: one envelope, one body, one method or fault.

use crate::xml::{Event, Reader, Start, Writer};
use crate::{Fault, Field, LocalizedMethodFault, Method, WireError};

const REQUEST_HEAD: &str = concat!(
    r#"<?xml version="1.0" encoding="UTF-8"?>"#,
    "\n",
    r#"<Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">"#
);

const REPLY_HEAD: &str = concat!(
    r#"<?xml version="1.0" encoding="UTF-8"?>"#,
    "\n",
    r#"<soapenv:Envelope xmlns:soapenc="http://schemas.xmlsoap.org/soap/encoding/" xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">"#,
    "\n<soapenv:Body>"
);

const REPLY_TAIL: &str = "</soapenv:Body></soapenv:Envelope>";

/// The body of a request. `operation_id` shows up in the server's logs.
pub fn encode_request<M: Method>(method: &M, operation_id: Option<&str>) -> Vec<u8> {
    encode_request_in(method, operation_id, None)
}

/// The body of a request to a service that takes the value of vim25's session cookie in a SOAP header, not as a cookie.
pub fn encode_request_in<M: Method>(
    method: &M,
    operation_id: Option<&str>,
    session: Option<&str>,
) -> Vec<u8> {
    let mut w = Writer::with_capacity(1024);
    w.raw(REQUEST_HEAD);
    if operation_id.is_some() || session.is_some() {
        w.open("Header");
        if let Some(id) = operation_id {
            w.leaf("operationID", id);
        }
        if let Some(session) = session {
            w.leaf("vcSessionCookie", session);
        }
        w.close("Header");
    }
    w.raw("<Body><");
    w.raw(M::NAME);
    w.raw(" xmlns=\"");
    w.raw(M::SERVICE.namespace());
    w.raw("\">");
    method.write_arguments(&mut w);
    w.close(M::NAME);
    w.raw("</Body></Envelope>");
    w.into_bytes()
}

/// The body of a successful answer.
pub fn encode_reply<M: Method>(output: &M::Output) -> Vec<u8> {
    let mut w = Writer::with_capacity(1024);
    reply_head(&mut w, M::NAME, M::SERVICE.namespace());
    output.write(&mut w, "returnval");
    reply_tail(w, M::NAME)
}

/// The body of a successful answer to `method` whose `returnval` is written by `write`: for answers that are too large to be
/// built first.
pub fn encode_reply_with<E>(
    method: &str,
    capacity: usize,
    write: impl FnOnce(&mut Writer) -> Result<(), E>,
) -> Result<Vec<u8>, E> {
    let mut w = Writer::with_capacity(capacity);
    reply_head(&mut w, method, "urn:vim25");
    write(&mut w)?;
    Ok(reply_tail(w, method))
}

fn reply_head(w: &mut Writer, method: &str, namespace: &str) {
    w.raw(REPLY_HEAD);
    w.raw("<");
    w.raw(method);
    w.raw("Response xmlns=\"");
    w.raw(namespace);
    w.raw("\">");
}

fn reply_tail(mut w: Writer, method: &str) -> Vec<u8> {
    w.raw("</");
    w.raw(method);
    w.raw("Response>");
    w.raw(REPLY_TAIL);
    w.into_bytes()
}

/// The body of a failed answer, sent with HTTP status 500.
pub fn encode_fault(fault: &Fault, message: &str) -> Vec<u8> {
    let mut w = Writer::with_capacity(512);
    w.raw(REPLY_HEAD);
    w.raw("<soapenv:Fault><faultcode>ServerFaultCode</faultcode>");
    w.leaf("faultstring", message);
    w.raw("<detail><");
    w.raw(&fault.class);
    w.raw(r#"Fault xmlns="urn:vim25" xsi:type=""#);
    w.raw(&fault.class);
    w.raw("\">");
    crate::DataObject::write_fields(fault, &mut w);
    w.raw("</");
    w.raw(&fault.class);
    w.raw("Fault></detail></soapenv:Fault>");
    w.raw(REPLY_TAIL);
    w.into_bytes()
}

/// What a server answered to one call.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply<T> {
    Output(T),
    Fault(LocalizedMethodFault),
}

/// Reads a whole answer, whatever the HTTP status.
pub fn decode_reply<M: Method>(body: &[u8]) -> Result<Reply<M::Output>, WireError> {
    let mut reader = Reader::new(body);
    let start = enter_body(&mut reader)?;
    if start.name == "Fault" {
        return read_fault(&mut reader).map(Reply::Fault);
    }
    if start.name.strip_suffix("Response") != Some(M::NAME) {
        return Err(WireError::Unexpected { wanted: M::NAME, found: start.name.into() });
    }
    let mut output = M::Output::default();
    while let Some(child) = reader.child()? {
        if child.name == "returnval" {
            output.read(&mut reader, &child)?;
        } else {
            reader.skip()?;
        }
    }
    Ok(Reply::Output(output))
}

/// The opening tag of what stands in the SOAP body.
pub(crate) fn enter_body<'a>(reader: &mut Reader<'a>) -> Result<Start<'a>, WireError> {
    let Event::Start(root) = reader.next()? else { return Err(WireError::Incomplete) };
    if root.name != "Envelope" {
        return Err(WireError::Unexpected { wanted: "SOAP envelope", found: root.name.into() });
    }
    while let Some(part) = reader.child()? {
        if part.name == "Body" {
            let empty = || WireError::Unexpected {
                wanted: "SOAP message",
                found: "empty SOAP body".into(),
            };
            return reader.child()?.ok_or_else(empty);
        }
        reader.skip()?;
    }
    Err(WireError::Unexpected {
        wanted: "SOAP message",
        found: "SOAP envelope without a body".into(),
    })
}

/// Reads `<Fault>`, whose opening tag has been read. A fault without detail becomes a `MethodFault` with the text.
pub(crate) fn read_fault(reader: &mut Reader<'_>) -> Result<LocalizedMethodFault, WireError> {
    let mut found =
        LocalizedMethodFault { fault: Fault::of("MethodFault"), localized_message: None };
    while let Some(child) = reader.child()? {
        match child.name {
            "faultstring" => found.localized_message.read(reader, &child)?,
            "detail" => {
                while let Some(detail) = reader.child()? {
                    found.fault.read(reader, &detail)?;
                    if found.fault.class.is_empty() {
                        // Some proxies drop the attribute; the element is called after the class.
                        found.fault.class =
                            detail.name.strip_suffix("Fault").unwrap_or(detail.name).into();
                    }
                }
            }
            _ => reader.skip()?,
        }
    }
    Ok(found)
}

/// The session that a request names in its SOAP header, if it does.
pub fn session_of_request(body: &[u8]) -> Option<String> {
    let mut reader = Reader::new(body);
    let Event::Start(root) = reader.next().ok()? else { return None };
    if root.name != "Envelope" {
        return None;
    }
    while let Some(part) = reader.child().ok()? {
        if part.name != "Header" {
            return None;
        }
        while let Some(child) = reader.child().ok()? {
            if child.name == "vcSessionCookie" {
                return reader.text().ok().map(|text| text.trim().trim_matches('"').to_owned());
            }
            reader.skip().ok()?;
        }
    }
    None
}

/// A request as the server reads it: first which method, then its arguments.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    pub method: &'a str,
    reader: Reader<'a>,
}

impl<'a> Request<'a> {
    pub fn parse(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let start = enter_body(&mut reader)?;
        Ok(Self { method: start.name, reader })
    }

    /// The arguments as those of `M`.
    pub fn decode<M: Method>(&self) -> Result<M, WireError> {
        let (mut reader, mut method) = (self.reader.clone(), M::default());
        while let Some(child) = reader.child()? {
            method.read_argument(&mut reader, &child)?;
        }
        Ok(method)
    }
}
