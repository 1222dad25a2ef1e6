//! Content libraries: what is in them, getting files in and out, and making VMs of OVF templates.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Uri};
use roost_vim_wire::types::VirtualMachineConfigSpec;
use roost_vim_wire::xml::Writer;
use roost_vim_wire::{DataObject as _, MoRef, MoType};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::rest::{RestCall, escape, id};
use crate::transfer::{Peer, Transfer};
use crate::{CallClass, Client, Observer, RestError, TransferProgress, UploadSource};

/// Between two looks at a file that is being prepared.
const PREPARING: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Library {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub description: String,
    /// `LOCAL` or `SUBSCRIBED`.
    #[serde(rename = "type", default)]
    pub kind: String,
    #[serde(default)]
    pub version: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LibraryItem {
    pub id: String,
    pub library_id: String,
    pub name: String,
    #[serde(default)]
    pub description: String,
    /// `ovf`, `iso`, `vm-template`.
    #[serde(rename = "type", default)]
    pub kind: String,
    #[serde(default)]
    pub version: String,
    #[serde(default)]
    pub content_version: String,
    #[serde(default)]
    pub size: u64,
    /// Whether its files are here; those of a library on demand are only after a sync.
    #[serde(default = "yes")]
    pub cached: bool,
    /// The item of the published library that it is a copy of.
    #[serde(default)]
    pub source_id: Option<String>,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ItemFile {
    pub name: String,
    #[serde(default)]
    pub size: u64,
    #[serde(default = "yes")]
    pub cached: bool,
}

/// Where a file of an item lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemStorage {
    pub name: String,
    pub size: u64,
    pub datastore: Option<MoRef>,
    /// Addresses such as `ds:///vmfs/volumes/...`.
    pub uris: Vec<String>,
}

/// A library to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLibrary {
    pub name: String,
    pub description: String,
    pub datastore: MoRef,
}

/// What a deployment of an OVF template has to decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OvfFilter {
    pub name: String,
    pub networks: Vec<String>,
    pub eulas: Vec<String>,
    pub properties: Vec<OvfProperty>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct OvfProperty {
    #[serde(default)]
    pub class_id: String,
    #[serde(default)]
    pub instance_id: String,
    pub id: String,
    #[serde(rename = "type", default)]
    pub kind: String,
    #[serde(default)]
    pub value: String,
}

/// A VM to be made of an OVF template in a library.
#[derive(Debug, Clone, PartialEq)]
pub struct DeployOvf {
    pub item: String,
    pub name: String,
    pub pool: MoRef,
    pub folder: Option<MoRef>,
    pub host: Option<MoRef>,
    /// Where it goes, unless a storage policy decides.
    pub datastore: Option<MoRef>,
    pub storage_policy: Option<String>,
    /// `thin`, `thick` or `eagerZeroedThick`.
    pub provisioning: Option<String>,
    /// Network of the template, network of the inventory.
    pub networks: Vec<(String, MoRef)>,
    pub properties: Vec<OvfProperty>,
    /// Goes before what the template says.
    pub config: Option<VirtualMachineConfigSpec>,
}

impl DeployOvf {
    pub fn new(item: impl Into<String>, name: impl Into<String>, pool: MoRef) -> Self {
        Self {
            item: item.into(),
            name: name.into(),
            pool,
            folder: None,
            host: None,
            datastore: None,
            storage_policy: None,
            provisioning: None,
            networks: Vec::new(),
            properties: Vec::new(),
            config: None,
        }
    }

    /// The request as it goes to the server.
    fn body(&self) -> Value {
        let mut spec = json!({ "name": self.name, "accept_all_EULA": true });
        let mut set = |field: &str, value: Option<&str>| {
            if let Some(value) = value {
                spec[field] = json!(value);
            }
        };
        set("default_datastore_id", self.datastore.as_ref().map(|at| &*at.id));
        set("storage_profile_id", self.storage_policy.as_deref());
        set("storage_provisioning", self.provisioning.as_deref());
        if !self.networks.is_empty() {
            let pair = |(name, at): &(String, MoRef)| json!({ "key": name, "value": &*at.id });
            let pairs: Vec<Value> = self.networks.iter().map(pair).collect();
            spec["network_mappings"] = json!(pairs);
        }
        if !self.properties.is_empty() {
            let all: Vec<Value> = self
                .properties
                .iter()
                .map(|property| {
                    json!({
                        "class_id": property.class_id,
                        "instance_id": property.instance_id,
                        "id": property.id,
                        "type": property.kind,
                        "value": property.value,
                    })
                })
                .collect();
            spec["additional_parameters"] = json!([{
                "@class": "com.vmware.vcenter.ovf.property_params",
                "type": "PropertyParams",
                "properties": all,
            }]);
        }
        if let Some(config) = &self.config {
            use base64::Engine as _;
            let xml = base64::engine::general_purpose::STANDARD.encode(config_xml(config));
            spec["vm_config_spec"] = json!({ "provider": "XML", "xml": xml });
        }
        let mut target = json!({ "resource_pool_id": &*self.pool.id });
        for (field, at) in [("folder_id", &self.folder), ("host_id", &self.host)] {
            if let Some(at) = at {
                target[field] = json!(&*at.id);
            }
        }
        json!({ "target": target, "deployment_spec": spec })
    }
}

/// A configuration as a document of its own.
fn config_xml(config: &VirtualMachineConfigSpec) -> Vec<u8> {
    let mut writer = Writer::default();
    config.write_fields(&mut writer);
    let mut xml = concat!(
        r#"<?xml version="1.0" encoding="UTF-8"?><obj xmlns="urn:vim25" xmlns:xsd="http://www.w3.org/2001/XMLSchema" "#,
        r#"xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="VirtualMachineConfigSpec">"#
    )
    .as_bytes()
    .to_vec();
    xml.extend(writer.into_bytes());
    xml.extend(b"</obj>");
    xml
}

fn parse<T: for<'de> Deserialize<'de>>(what: &'static str, value: Value) -> Result<T, RestError> {
    serde_json::from_value(value).map_err(|source| RestError::Answer { what, source })
}

impl Observer {
    /// All libraries.
    pub async fn libraries(&self) -> Result<Vec<Library>, RestError> {
        const WHAT: &str = "listing libraries";
        let ids: Vec<String> = parse(WHAT, self.rest_get(WHAT, "content/library").await?)?;
        let mut all = Vec::new();
        for own in ids {
            match self.rest_get(WHAT, &format!("content/library/{}", id(&own))).await {
                Ok(found) => all.push(parse(WHAT, found)?),
                Err(error) if error.is_gone() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    /// The ids of the items of a library.
    pub async fn library_item_ids(&self, library: &str) -> Result<Vec<String>, RestError> {
        const WHAT: &str = "listing the items of a library";
        let path = format!("content/library/item?library_id={}", escape(library));
        parse(WHAT, self.rest_get(WHAT, &path).await?)
    }

    pub async fn library_item(&self, item: &str) -> Result<LibraryItem, RestError> {
        const WHAT: &str = "reading a library item";
        parse(WHAT, self.rest_get(WHAT, &format!("content/library/item/{}", id(item))).await?)
    }

    pub async fn item_files(&self, item: &str) -> Result<Vec<ItemFile>, RestError> {
        const WHAT: &str = "listing the files of a library item";
        let path = format!("content/library/item/file?library_item_id={}", escape(item));
        parse(WHAT, self.rest_get(WHAT, &path).await?)
    }

    /// Where the files of an item lie.
    pub async fn item_storage(&self, item: &str) -> Result<Vec<ItemStorage>, RestError> {
        const WHAT: &str = "reading where a library item lies";
        #[derive(Deserialize)]
        struct Backing {
            datastore_id: Option<String>,
        }
        #[derive(Deserialize)]
        struct Row {
            name: String,
            #[serde(default)]
            size: u64,
            storage_backing: Backing,
            #[serde(default)]
            storage_uris: Vec<String>,
        }
        let path = format!("content/library/item/storage?library_item_id={}", escape(item));
        let rows: Vec<Row> = parse(WHAT, self.rest_get(WHAT, &path).await?)?;
        let row = |row: Row| ItemStorage {
            name: row.name,
            size: row.size,
            datastore: row.storage_backing.datastore_id.map(|id| MoRef::new(MoType::Datastore, id)),
            uris: row.storage_uris,
        };
        Ok(rows.into_iter().map(row).collect())
    }

    /// A small file of an item, such as its descriptor.
    pub async fn item_file_content(
        &self,
        item: &str,
        name: &str,
        limit: u64,
    ) -> Result<Bytes, RestError> {
        const WHAT: &str = "downloading a file of a library item";
        let body = json!({ "create_spec": { "library_item_id": item } });
        let session = self.rest_query(WHAT, "content/library/item/download-session", &body).await?;
        let session: String = parse(WHAT, session)?;
        let content = self.fetch(WHAT, &session, name, limit).await;
        let end = RestCall {
            what: WHAT,
            class: CallClass::Read,
            method: Method::DELETE,
            path: &format!("content/library/item/download-session/{}", id(&session)),
            body: None,
        };
        // A session that stays is ended by the server.
        let _ = self.rest(end).await;
        content
    }

    /// Has a file of a download session prepared, which may take the server a while, and reads it.
    async fn fetch(
        &self,
        what: &'static str,
        session: &str,
        name: &str,
        limit: u64,
    ) -> Result<Bytes, RestError> {
        let at = format!("content/library/item/downloadsession/file/{}", id(session));
        let body = json!({ "file_name": name });
        self.rest_query(what, &format!("{at}?~action=prepare"), &body).await?;
        let deadline = Instant::now() + self.deadline(CallClass::Upload);
        let file = loop {
            let file = self.rest_query(what, &format!("{at}?~action=get"), &body).await?;
            match file["status"].as_str() {
                Some("PREPARED") => break file,
                Some("ERROR") => {
                    let words = file["error_message"]["default_message"].as_str();
                    let message = words.unwrap_or("the file cannot be read").to_owned();
                    return Err(RestError::Failed { what, message });
                }
                _ if Instant::now() >= deadline => {
                    let message = "the file was not prepared in time".to_owned();
                    return Err(RestError::Failed { what, message });
                }
                _ => tokio::time::sleep(PREPARING).await,
            }
        };
        let uri = endpoint(what, &file["download_endpoint"]["uri"])?;
        let transfer =
            Transfer { observer: self, name: "GET /cls/data", peer: Peer::Host, uri: &uri };
        let failed = |source| RestError::Transfer { what, source };
        let download = transfer.get().await.map_err(failed)?;
        download.bytes(limit).await.map_err(failed)
    }

    /// What a deployment of this item has to decide.
    pub async fn ovf_filter(&self, item: &str, pool: &MoRef) -> Result<OvfFilter, RestError> {
        const WHAT: &str = "looking into an OVF template";
        let path = format!("vcenter/ovf/library-item/{}?~action=filter", id(item));
        let body = json!({ "target": { "resource_pool_id": &*pool.id } });
        let answer = self.rest_query(WHAT, &path, &body).await?;
        let list = |names: [&str; 2]| {
            let found = names.into_iter().find_map(|name| answer.get(name)?.as_array());
            let texts = found.into_iter().flatten().filter_map(Value::as_str);
            texts.map(ToOwned::to_owned).collect::<Vec<_>>()
        };
        let parameters = answer.get("additional_params").and_then(Value::as_array);
        let properties = parameters
            .into_iter()
            .flatten()
            .filter_map(|row| row.get("properties").cloned())
            .map(|all| parse::<Vec<OvfProperty>>(WHAT, all));
        let properties: Vec<Vec<OvfProperty>> = properties.collect::<Result<_, _>>()?;
        Ok(OvfFilter {
            name: answer["name"].as_str().unwrap_or_default().to_owned(),
            networks: list(["networks", "Networks"]),
            eulas: list(["EULAs", "eulas"]),
            properties: properties.into_iter().flatten().collect(),
        })
    }
}

fn endpoint(what: &'static str, uri: &Value) -> Result<Uri, RestError> {
    let none = || RestError::Failed { what, message: "the server named no address".into() };
    uri.as_str().and_then(|uri| uri.parse().ok()).ok_or_else(none)
}

impl Client {
    /// Makes a local library. Its name need not be unique to the server, so look before.
    pub async fn create_library(&self, new: &NewLibrary) -> Result<String, RestError> {
        const WHAT: &str = "making a library";
        let spec = json!({ "create_spec": {
            "name": new.name,
            "description": new.description,
            "type": "LOCAL",
            "storage_backings": [{ "type": "DATASTORE", "datastore_id": &*new.datastore.id }],
        } });
        let made = self.rest_change(WHAT, Method::POST, "content/local-library", Some(&spec));
        parse(WHAT, made.await?)
    }

    /// Makes an empty item of a type such as `ovf` or `iso`.
    pub async fn create_library_item(
        &self,
        library: &str,
        name: &str,
        kind: &str,
    ) -> Result<String, RestError> {
        const WHAT: &str = "making a library item";
        let spec = json!({ "create_spec": {
            "library_id": library,
            "name": name,
            "description": "",
            "type": kind,
        } });
        let made = self.rest_change(WHAT, Method::POST, "content/library/item", Some(&spec));
        parse(WHAT, made.await?)
    }

    /// Puts files into an item: all of them, or none.
    pub async fn upload_item_files(
        &self,
        item: &str,
        files: &[(&str, &dyn UploadSource)],
    ) -> Result<(), RestError> {
        const WHAT: &str = "uploading files of a library item";
        let body = json!({ "create_spec": { "library_item_id": item } });
        let path = "content/library/item/update-session";
        let session = self.rest_change(WHAT, Method::POST, path, Some(&body)).await?;
        let session: String = parse(WHAT, session)?;
        let add = format!("content/library/item/updatesession/file/{}?~action=add", id(&session));
        for (name, source) in files {
            let spec = json!({ "name": name, "source_type": "PUSH", "size": source.length() });
            let body = json!({ "file_spec": spec });
            let file = self.rest_change(WHAT, Method::POST, &add, Some(&body)).await?;
            let uri = endpoint(WHAT, &file["upload_endpoint"]["uri"])?;
            let transfer =
                Transfer { observer: self, name: "PUT /cls/data", peer: Peer::Host, uri: &uri };
            let (progress, _) = watch::channel(TransferProgress::default());
            let sent = transfer.put(*source, &progress).await;
            sent.map_err(|source| RestError::Transfer { what: WHAT, source })?;
        }
        let path = format!("content/library/item/update-session/{}?~action=complete", id(&session));
        self.rest_change(WHAT, Method::POST, &path, None).await.map(drop)
    }

    /// Succeeds when it is gone.
    pub async fn delete_library_item(&self, item: &str) -> Result<(), RestError> {
        let path = format!("content/library/item/{}", id(item));
        match self.rest_change("deleting a library item", Method::DELETE, &path, None).await {
            Err(error) if error.is_gone() => Ok(()),
            other => other.map(drop),
        }
    }

    /// Fetches the files of an item whose library keeps them elsewhere until they are needed.
    pub async fn sync_library_item(&self, item: &str) -> Result<(), RestError> {
        let path = format!("content/library/subscribed-item/{}?~action=sync", id(item));
        let body = json!({ "force_sync_content": true });
        self.rest_change("syncing a library item", Method::POST, &path, Some(&body)).await.map(drop)
    }

    /// Makes a VM of an OVF template. The server answers when the VM is there, which may take as long as a task may.
    pub async fn deploy_ovf(&self, request: &DeployOvf) -> Result<MoRef, RestError> {
        const WHAT: &str = "deploying an OVF template";
        let body = request.body();
        let path = format!("vcenter/ovf/library-item/{}?~action=deploy", id(&request.item));
        let call = RestCall {
            what: WHAT,
            class: CallClass::TaskWait,
            method: Method::POST,
            path: &path,
            body: Some(&body),
        };
        let answer = self.rest(call).await?;
        let made = answer["resource_id"]["id"].as_str();
        if let Some(made) = made.filter(|_| answer["succeeded"].as_bool() == Some(true)) {
            let kind = answer["resource_id"]["type"].as_str().unwrap_or("VirtualMachine");
            return Ok(MoRef::new(MoType::from(kind), made));
        }
        let first = &answer["error"]["errors"][0];
        let words = first["error"]["messages"][0]["default_message"]
            .as_str()
            .or_else(|| first["message"]["default_message"].as_str());
        let message = words.unwrap_or("the server gave no reason").to_owned();
        Err(RestError::Failed { what: WHAT, message })
    }
}
