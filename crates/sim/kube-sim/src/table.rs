//! Objects as rows, for `kubectl get`.

use serde_json::{Value, json};

use crate::kind::Kind;
use crate::present::Include;

pub(crate) fn table(
    _kind: &Kind,
    _version: &str,
    objects: &[&Value],
    _include: Include,
    _now: jiff::Timestamp,
) -> Value {
    let rows: Vec<_> = objects
        .iter()
        .map(|object| json!({"cells": [crate::object::name(object)], "object": object}))
        .collect();
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "columnDefinitions": [], "rows": rows})
}
