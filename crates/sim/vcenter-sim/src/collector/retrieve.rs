//! One-shot reads, in pages.

use std::collections::{BTreeMap, VecDeque};

use roost_vim_wire::methods::{
    CancelRetrievePropertiesEx, ContinueRetrievePropertiesEx, Fetch, RetrieveProperties,
    RetrievePropertiesEx,
};
use roost_vim_wire::types::PropertyFilterSpec;
use roost_vim_wire::xml::Writer;
use roost_vim_wire::{Fault, Field, Method, MoRef, Request, encode_reply_with};

use super::spec::Spec;
use super::walk::{invalid_property, walk};
use crate::call::{CallContext, CallResult, Failure, ReplyBody, decode};
use crate::permission;
use crate::property::Reading;
use crate::world::World;

/// Answers of a session that are not read to their end, by token.
#[derive(Debug, Default)]
pub(crate) struct Pages(BTreeMap<String, Rest>);

/// What is left of one answer. The values are read when they are asked for; objects that are gone by then are left out.
#[derive(Debug)]
struct Rest {
    collector: MoRef,
    specs: Vec<Spec>,
    objects: VecDeque<Selected>,
}

#[derive(Debug)]
enum Selected {
    /// An object, and which of the specifications selected it.
    Object(MoRef, usize),
    Missing(MoRef),
}

/// What a rule has made of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ReadAs {
    #[default]
    Now,
    /// The inventory has been exchanged for an earlier one.
    Stale,
    /// As if nothing were selected.
    Empty,
}

pub(crate) fn call(
    request: &Request<'_>,
    this: &MoRef,
    world: &mut World,
    cx: &CallContext<'_>,
    read_as: ReadAs,
) -> Option<CallResult> {
    Some(match request.method {
        Fetch::NAME => fetch(request, this, world, cx, read_as),
        RetrievePropertiesEx::NAME => decode(request).and_then(|asked: RetrievePropertiesEx| {
            let max = page_size(asked.options.max_objects, cx.handle.options.page_limit)?;
            retrieve(
                RetrievePropertiesEx::NAME,
                this,
                asked.spec_set,
                Some(max),
                world,
                cx,
                read_as,
            )
        }),
        RetrieveProperties::NAME => decode(request).and_then(|asked: RetrieveProperties| {
            retrieve(RetrieveProperties::NAME, this, asked.spec_set, None, world, cx, read_as)
        }),
        ContinueRetrievePropertiesEx::NAME => {
            decode(request).and_then(|asked: ContinueRetrievePropertiesEx| {
                let rest = take_rest(world, cx, this, &asked.token)?;
                let reply =
                    Reply { method: request.method, this, max: Some(cx.handle.options.page_limit) };
                answer(&reply, rest.specs, rest.objects, world, cx, read_as == ReadAs::Stale)
            })
        }
        CancelRetrievePropertiesEx::NAME => {
            decode(request).and_then(|asked: CancelRetrievePropertiesEx| {
                take_rest(world, cx, this, &asked.token)?;
                Ok(ReplyBody::of::<CancelRetrievePropertiesEx>(&()))
            })
        }
        _ => return None,
    })
}

fn page_size(asked: Option<i32>, limit: usize) -> Result<usize, Failure> {
    match asked.map(usize::try_from) {
        None => Ok(limit),
        Some(Ok(max)) if max > 0 => Ok(max.min(limit)),
        Some(_) => Err(Failure::invalid_argument("options.maxObjects")),
    }
}

fn fetch(
    request: &Request<'_>,
    this: &MoRef,
    world: &mut World,
    cx: &CallContext<'_>,
    read_as: ReadAs,
) -> CallResult {
    let asked: Fetch = decode(request)?;
    world.counters.property_reads += 1;
    if !world.permissions.is_unrestricted()
        && !world.permissions.allows(permission::READ, this, &world.inventory)
    {
        return Err(permission::no_permission(this, permission::READ));
    }
    let reading = Reading {
        world,
        session: Some(cx.session),
        now: cx.now,
        is_stale: read_as == ReadAs::Stale,
    };
    let value = reading.get(this, &asked.prop).map_err(|error| invalid_property(&error))?;
    Ok(ReplyBody::of::<Fetch>(&value))
}

fn retrieve(
    method: &'static str,
    this: &MoRef,
    spec_set: Vec<PropertyFilterSpec>,
    max: Option<usize>,
    world: &mut World,
    cx: &CallContext<'_>,
    read_as: ReadAs,
) -> CallResult {
    let (mut specs, mut objects) = (Vec::new(), VecDeque::new());
    let reading = Reading {
        world,
        session: Some(cx.session),
        now: cx.now,
        is_stale: read_as == ReadAs::Stale,
    };
    for (index, source) in spec_set.into_iter().enumerate() {
        let mut spec = Spec::compile(source)?;
        let found = walk(&reading, &mut spec)?;
        objects.extend(found.objects.into_iter().map(|obj| Selected::Object(obj, index)));
        objects.extend(found.missing.into_iter().map(Selected::Missing));
        specs.push(spec);
    }
    if read_as == ReadAs::Empty {
        objects.clear();
    }
    answer(&Reply { method, this, max }, specs, objects, world, cx, read_as == ReadAs::Stale)
}

#[derive(Debug)]
struct Reply<'a> {
    method: &'a str,
    this: &'a MoRef,
    /// `None` for the old method, which knows no pages.
    max: Option<usize>,
}

fn answer(
    reply: &Reply<'_>,
    mut specs: Vec<Spec>,
    mut objects: VecDeque<Selected>,
    world: &mut World,
    cx: &CallContext<'_>,
    is_stale: bool,
) -> CallResult {
    let count = objects.len().min(reply.max.unwrap_or(usize::MAX));
    let page: Vec<Selected> = objects.drain(..count).collect();
    let token = (!objects.is_empty()).then(|| world.sessions.secret());
    let reading = Reading { world, session: Some(cx.session), now: cx.now, is_stale };
    let mut reads = 0;
    let element = if reply.max.is_some() { "objects" } else { "returnval" };
    let body = encode_reply_with(reply.method, 512 + count * 512, |w| {
        if reply.max.is_some() && count > 0 {
            w.open("returnval");
        }
        token.write(w, "token");
        for selected in &page {
            match selected {
                Selected::Object(obj, spec) => {
                    write_object(&reading, obj, &mut specs[*spec], element, w, &mut reads)?;
                }
                Selected::Missing(obj) => write_missing_start(obj, element, w),
            }
        }
        if reply.max.is_some() && count > 0 {
            w.close("returnval");
        }
        Ok::<_, Failure>(())
    })?;
    world.counters.property_reads += reads;
    if let (Some(token), Some(session)) = (token, world.sessions.get_mut(cx.session)) {
        session.pages.0.insert(token, Rest { collector: reply.this.clone(), specs, objects });
    }
    Ok(ReplyBody(body))
}

fn write_object(
    reading: &Reading<'_>,
    obj: &MoRef,
    spec: &mut Spec,
    element: &str,
    w: &mut Writer,
    reads: &mut u64,
) -> Result<(), Failure> {
    if !reading.world.has(obj, reading.session.unwrap_or_default()) {
        return Ok(());
    }
    let asked = spec.asked(&obj.kind).unwrap_or_default();
    let denied = reading.world.permissions.read_fault(obj, &reading.world.inventory);
    w.open(element);
    obj.write(w, "obj");
    for path in asked.iter().filter(|_| denied.is_none()) {
        *reads += 1;
        if let Some(value) = reading.get(obj, path).map_err(|error| invalid_property(&error))? {
            w.open("propSet");
            w.leaf("name", path);
            value.write(w, "val");
            w.close("propSet");
        }
    }
    if let Some(fault) = denied {
        for path in asked.iter() {
            write_missing(path, &fault, w);
        }
    }
    w.close(element);
    Ok(())
}

pub(super) fn write_missing(path: &str, fault: &impl Field, w: &mut Writer) {
    w.open("missingSet");
    w.leaf("path", path);
    fault.write(w, "fault");
    w.close("missingSet");
}

/// A start that does not exist shows as an object whose every property, named by the empty path, is missing.
fn write_missing_start(obj: &MoRef, element: &str, w: &mut Writer) {
    w.open(element);
    obj.write(w, "obj");
    write_missing("", &Failure::not_found(obj).localized(), w);
    w.close(element);
}

/// Tokens are good once, on the collector that gave them, in their session.
fn take_rest(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    token: &str,
) -> Result<Rest, Failure> {
    let pages = world.sessions.get_mut(cx.session).map(|session| &mut session.pages.0);
    let rest = pages.and_then(|pages| pages.remove(token));
    rest.filter(|rest| rest.collector == *this).ok_or_else(|| {
        Failure::new(
            Fault::of("InvalidProperty").with("name", &"token".to_owned()),
            "The token is not valid.",
        )
    })
}
