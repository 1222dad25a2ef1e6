//! The performance manager: a few counters of hosts and VMs, read off what they take now.
//!
//! There is no past: every sample of an interval shows the present value.

use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};
use roost_vim_wire::{Array, Element, MoRef, MoType, Request, Value};

use crate::call::{CallContext, CallResult, Failure};
use crate::inventory::Record;
use crate::model::{self, calls};
use crate::property::{Found, no_such};
use crate::world::World;

struct Counter {
    key: i32,
    group: &'static str,
    name: &'static str,
    label: &'static str,
    unit: &'static str,
    rollup: &'static str,
    /// Where its value stands, and what it is multiplied with.
    source: Option<(&'static str, i64)>,
}

const fn counter(
    key: i32,
    (group, name, rollup): (&'static str, &'static str, &'static str),
    label: &'static str,
    unit: &'static str,
    source: Option<(&'static str, i64)>,
) -> Counter {
    Counter { key, group, name, label, unit, rollup, source }
}

const CPU: &str = "summary.quickStats.overallCpuUsage";
const HOST_MEMORY: &str = "summary.quickStats.overallMemoryUsage";

const COUNTERS: &[Counter] = &[
    counter(2, ("cpu", "usage", "average"), "Usage", "percent", None),
    counter(6, ("cpu", "usagemhz", "average"), "Usage in MHz", "megaHertz", Some((CPU, 1))),
    counter(24, ("mem", "usage", "average"), "Usage", "percent", None),
    counter(98, ("mem", "consumed", "average"), "Consumed", "kiloBytes", Some((HOST_MEMORY, 1024))),
    counter(125, ("disk", "usage", "average"), "Usage", "kiloBytesPerSecond", None),
    counter(143, ("net", "usage", "average"), "Usage", "kiloBytesPerSecond", None),
    counter(
        155,
        ("sys", "uptime", "latest"),
        "Uptime",
        "second",
        Some(("summary.quickStats.uptime", 1)),
    ),
];

/// Hosts and VMs are sampled every so many seconds, everything else only in history.
const REAL_TIME: i32 = 20;

/// Key, sampling period, name and how long it is kept.
const INTERVALS: &[(i32, i32, &str, i32)] = &[
    (1, 300, "Past day", 86_400),
    (2, 1_800, "Past week", 604_800),
    (3, 7_200, "Past month", 2_592_000),
    (4, 86_400, "Past year", 31_536_000),
];

fn description(label: &str, key: &str) -> Record {
    Record::of("ElementDescription").text("label", label).text("summary", label).text("key", key)
}

fn info(counter: &Counter) -> Record {
    let kind = if counter.rollup == "latest" { "absolute" } else { "rate" };
    Record::of("PerfCounterInfo")
        .set("key", &counter.key)
        .record("nameInfo", description(counter.label, counter.name))
        .record("groupInfo", description(counter.group, counter.group))
        .record("unitInfo", description(counter.unit, counter.unit))
        .text("rollupType", counter.rollup)
        .text("statsType", kind)
        .set("level", &1)
        .set("perDeviceLevel", &3)
}

pub(crate) fn property(path: &str) -> Found {
    let value = match path {
        "perfCounter" => {
            let all = COUNTERS.iter().map(|counter| info(counter).value()).collect();
            Value::Array(Array::new("PerfCounterInfo", all))
        }
        "historicalInterval" => {
            let all = INTERVALS.iter().map(|(key, period, name, length)| {
                Record::of("PerfInterval")
                    .set("key", key)
                    .set("samplingPeriod", period)
                    .text("name", name)
                    .set("length", length)
                    .set("level", &1)
                    .set("enabled", &true)
                    .value()
            });
            Value::Array(Array::new("PerfInterval", all.collect()))
        }
        "description" => return Ok(None),
        _ => return no_such(path),
    };
    Ok(Some(value))
}

pub(crate) fn call(
    request: &Request<'_>,
    _: &MoRef,
    world: &mut World,
    cx: &CallContext<'_>,
) -> Option<CallResult> {
    calls! { request;
        QueryPerfProviderSummary => |asked| {
            need(world, &asked.entity)?;
            let is_sampled = is_sampled(&asked.entity);
            let summary = Record::of("PerfProviderSummary")
                .set("entity", &asked.entity)
                .set("currentSupported", &is_sampled)
                .set("summarySupported", &true)
                .set("refreshRate", &is_sampled.then_some(REAL_TIME));
            Ok(summary.element("returnval").unwrap_or_default())
        },
        QueryAvailablePerfMetric => |asked| {
            need(world, &asked.entity)?;
            let fits = |_: &&Counter| is_sampled(&asked.entity);
            let ids = COUNTERS.iter().filter(fits);
            Ok(ids.filter_map(|counter| metric_id(counter.key).element("returnval")).collect())
        },
        QueryPerfCounter => |asked| {
            let find = |key: &i32| COUNTERS.iter().find(|counter| counter.key == *key);
            let missing = || Failure::invalid_argument("counterId");
            let found: Option<Vec<&Counter>> = asked.counter_id.iter().map(find).collect();
            let found = found.ok_or_else(missing)?.into_iter();
            Ok(found.filter_map(|counter| info(counter).element("returnval")).collect())
        },
        QueryPerfCounterByLevel => |_| {
            let all = COUNTERS.iter().filter_map(|counter| info(counter).element("returnval"));
            Ok(all.collect())
        },
        QueryPerf => |asked| {
            asked.query_spec.iter().map(|spec| sample(world, cx.now, spec)).collect()
        },
    }
}

fn is_sampled(obj: &MoRef) -> bool {
    matches!(obj.kind, MoType::HostSystem | MoType::VirtualMachine)
}

fn need(world: &World, obj: &MoRef) -> Result<(), Failure> {
    if world.inventory.contains(obj) { Ok(()) } else { Err(Failure::not_found(obj)) }
}

fn metric_id(key: i32) -> Record {
    Record::of("PerfMetricId").set("counterId", &key).text("instance", "")
}

fn value(world: &World, obj: &MoRef, counter: &Counter) -> i64 {
    let number = |path: &str| {
        let found = model::property(world, obj, path).ok().flatten();
        found.and_then(|value| value.as_i64()).unwrap_or(0)
    };
    if let Some((path, factor)) = counter.source {
        return number(path).saturating_mul(factor);
    }
    // Hundredths of a percent of what the host has.
    let row = world.inventory.hosts.get(obj);
    let share = |part: i64, whole: i64| part.saturating_mul(10_000) / whole.max(1);
    match (counter.group, row.map(crate::inventory::Host::capacity)) {
        ("cpu", Some(capacity)) => share(number(CPU), capacity.mhz),
        ("mem", Some(capacity)) => share(number(HOST_MEMORY) << 20, capacity.memory),
        _ => 0,
    }
}

fn sample(world: &World, now: Timestamp, spec: &Element) -> Result<Element, Failure> {
    let wrong = || Failure::invalid_argument("querySpec");
    let entity = spec.child("entity").and_then(Element::moref).ok_or_else(wrong)?;
    need(world, &entity)?;
    let number = |name: &str| spec.text_of(name).and_then(|text| text.parse::<i64>().ok());
    let interval = number("intervalId").filter(|id| *id > 0).unwrap_or(REAL_TIME.into());
    let count = number("maxSample").filter(|count| *count > 0).unwrap_or(1).min(180);
    let asked: Vec<i32> = spec
        .children_named("metricId")
        .filter_map(|id| id.text_of("counterId")?.parse().ok())
        .collect();
    let wanted = |counter: &&Counter| asked.is_empty() || asked.contains(&counter.key);
    let times = (0..count).rev().filter_map(|back| {
        now.checked_sub(SignedDuration::from_secs(back.saturating_mul(interval))).ok()
    });
    let times: Vec<Timestamp> = times.collect();
    let period = i32::try_from(interval).unwrap_or(REAL_TIME);
    let is_csv = spec.text_of("format") == Some("csv");
    let class = if is_csv { "PerfEntityMetricCSV" } else { "PerfEntityMetric" };
    let mut metric = Element::new("returnval").typed(class).with_field("entity", &entity);
    if is_csv {
        let mut text = String::new();
        for time in &times {
            let comma = if text.is_empty() { "" } else { "," };
            // Writing to a string cannot fail.
            let _ = write!(text, "{comma}{period},{time}");
        }
        metric = metric.with_field("sampleInfoCSV", &text);
    } else {
        for time in &times {
            let info = Element::new("sampleInfo")
                .with_field("timestamp", time)
                .with_field("interval", &period);
            metric = metric.with(info);
        }
    }
    for counter in COUNTERS.iter().filter(wanted) {
        let value = value(world, &entity, counter);
        let id = metric_id(counter.key).element("id").unwrap_or_default();
        let mut series = Element::new("value").typed(if is_csv {
            "PerfMetricSeriesCSV"
        } else {
            "PerfMetricIntSeries"
        });
        series = series.with(id);
        if is_csv {
            let all = vec![value.to_string(); times.len()];
            series = series.with_field("value", &all.join(","));
        } else {
            series = times.iter().fold(series, |series, _| series.with_field("value", &value));
        }
        metric = metric.with(series);
    }
    Ok(metric)
}
