//! The archive that `cocoon` exports and imports: an envelope, then the files of the snapshot.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::manifest::{FileDetail, ManifestError, SnapshotConfig};
use super::tar::Entry;

pub(crate) const ENVELOPE: &str = "snapshot.json";
const SPARSE_MAP: &str = "COCOON.sparse.map";
const SPARSE_SIZE: &str = "COCOON.sparse.size";
/// Mode of files whose own is not known.
const MODE: u32 = 0o640;

/// The first file of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Envelope {
    /// The snapshot's record: all of its fields, also those that this version does not know.
    pub(crate) config: BTreeMap<String, Value>,
    pub(crate) version: u32,
}

/// Fields that the configuration blob spells differently from the record.
const RENAMED: [(&str, &str); 4] = [
    ("snapshotId", "id"),
    ("imageDigest", "image_digest"),
    ("imageType", "image_type"),
    ("imageBlobIds", "image_blob_ids"),
];
const SAME: [&str; 9] = [
    "description",
    "image",
    "hypervisor",
    "cpu",
    "memory",
    "storage",
    "nics",
    "network",
    "windows",
];

impl Envelope {
    /// What travels as the configuration blob. Fields of the record that it has no place for travel along under their own names.
    pub(super) fn to_config(
        &self,
        files: BTreeMap<String, FileDetail>,
        created: String,
    ) -> Result<SnapshotConfig, serde_json::Error> {
        let mut fields = serde_json::Map::new();
        for (name, value) in &self.config {
            let renamed = RENAMED.iter().find(|(_, record)| record == name);
            match renamed {
                Some((travels_as, _)) => fields.insert((*travels_as).to_owned(), value.clone()),
                None if name == "name" || name == "created_at" => None,
                None => fields.insert(name.clone(), value.clone()),
            };
        }
        fields.retain(|_, value| !value.is_null());
        let config: SnapshotConfig = serde_json::from_value(Value::Object(fields))?;
        Ok(SnapshotConfig { schema_version: "v1".to_owned(), files, created_at: created, ..config })
    }

    pub(super) fn from_config(
        config: &SnapshotConfig,
        name: &str,
    ) -> Result<Self, serde_json::Error> {
        let Value::Object(fields) = serde_json::to_value(config)? else {
            return Ok(Self::named(name));
        };
        let mut envelope = Self::named(name);
        for (field, value) in fields {
            let renamed = RENAMED.iter().find(|(travels_as, _)| *travels_as == field);
            let is_same = SAME.contains(&field.as_str()) || config.rest.contains_key(&field);
            match renamed {
                Some((_, record)) => envelope.config.insert((*record).to_owned(), value),
                None if is_same => envelope.config.insert(field, value),
                None => None,
            };
        }
        Ok(envelope)
    }

    #[must_use]
    pub(super) fn described(mut self, words: &str) -> Self {
        self.config.insert("description".to_owned(), Value::from(words));
        self
    }

    fn named(name: &str) -> Self {
        Self { config: [("name".to_owned(), Value::from(name))].into(), version: 1 }
    }

    pub(crate) fn to_text(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        Ok(text)
    }
}

/// What the configuration blob keeps of a file.
pub(super) fn detail(entry: &Entry) -> FileDetail {
    FileDetail {
        mode: entry.mode,
        sparse_map: entry.records.get(SPARSE_MAP).cloned(),
        sparse_size: entry.records.get(SPARSE_SIZE).and_then(|size| size.parse().ok()),
    }
}

#[derive(Deserialize)]
struct Segment {
    o: u64,
    l: u64,
}

/// The entry of a file that came as a layer of `size` bytes. A sparse map that does not add up is refused.
pub(super) fn entry(
    name: &str,
    size: u64,
    detail: Option<&FileDetail>,
) -> Result<Entry, ManifestError> {
    let bad = || ManifestError::BadSparseMap(name.to_owned());
    let mut records = BTreeMap::new();
    if let Some(map) = detail.and_then(|detail| detail.sparse_map.as_ref()) {
        let real = detail.and_then(|detail| detail.sparse_size).ok_or_else(bad)?;
        let segments: Vec<Segment> = serde_json::from_str(map).map_err(|_| bad())?;
        let mut total = 0_u64;
        for segment in &segments {
            let end = segment.o.checked_add(segment.l).ok_or_else(bad)?;
            if end > real {
                return Err(bad());
            }
            total = total.checked_add(segment.l).ok_or_else(bad)?;
        }
        if total != size {
            return Err(bad());
        }
        records.insert(SPARSE_MAP.to_owned(), map.clone());
        records.insert(SPARSE_SIZE.to_owned(), real.to_string());
    }
    let mode = detail.map(|detail| detail.mode).filter(|mode| *mode != 0).unwrap_or(MODE);
    Ok(Entry { name: name.to_owned(), size, mode, records })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_the_journey_with_fields_that_nobody_here_knows() {
        let text = r#"{"config":{"id":"S1","name":"old","cpu":2,"memory":1024,"image":"repo:1","image_digest":"sha256:aa",
            "image_type":"oci","hypervisor":"cloud-hypervisor","image_blob_ids":{"ff":{}},"no_direct_io":true,"queue_size":512},"version":1}"#;
        let envelope: Envelope = serde_json::from_str(text).unwrap();
        let config =
            envelope.to_config(BTreeMap::new(), "2026-01-01T00:00:00Z".to_owned()).unwrap();
        assert_eq!(
            (config.snapshot_id.as_str(), config.cpu, config.image_digest.as_str()),
            ("S1", 2, "sha256:aa")
        );
        let back = Envelope::from_config(&config, "new").unwrap();
        let mut wanted = envelope.config.clone();
        wanted.insert("name".to_owned(), Value::from("new"));
        assert_eq!(back.config, wanted);
    }

    #[test]
    fn sparse_maps_must_add_up() {
        let detail = |map: &str, size: Option<u64>| FileDetail {
            mode: 420,
            sparse_map: Some(map.to_owned()),
            sparse_size: size,
        };
        let map = r#"[{"o":0,"l":10},{"o":50,"l":10}]"#;
        assert!(entry("disk", 20, Some(&detail(map, Some(60)))).is_ok());
        for (case, size, detail) in [
            ("no real size", 20, detail(map, None)),
            ("layer of another size", 21, detail(map, Some(60))),
            ("a segment beyond the end", 20, detail(map, Some(59))),
            ("no JSON", 20, detail("x", Some(60))),
            ("overflow", 20, detail(r#"[{"o":18446744073709551615,"l":10}]"#, Some(60))),
        ] {
            assert!(entry("disk", size, Some(&detail)).is_err(), "{case}");
        }
        assert_eq!(entry("x", 3, None).unwrap().mode, 0o640);
    }
}
