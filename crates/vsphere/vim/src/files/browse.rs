use jiff::Timestamp;
use roost_vim_wire::Value;
use roost_vim_wire::methods::{SearchDatastoreSubFoldersTask, SearchDatastoreTask};
use roost_vim_wire::types::{
    FileInfo, FileQueryFlags, HostDatastoreBrowserSearchResults, HostDatastoreBrowserSearchSpec,
};

use super::DatastoreObserver;
use super::error::{FileError, FileStep};
use super::path::DatastorePath;
use crate::{CallError, Faulted, Task, TaskError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    Directory,
    Iso,
    Disk,
    Other,
}

/// A file or directory that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatastoreFile {
    pub path: DatastorePath,
    pub kind: FileKind,
    /// Unknown for directories.
    pub bytes: Option<u64>,
    pub modified: Option<Timestamp>,
}

impl DatastoreFile {
    fn new(directory: &DatastorePath, info: &FileInfo) -> Self {
        let kind = match info.class.as_str() {
            "FolderFileInfo" => FileKind::Directory,
            "IsoImageFileInfo" => FileKind::Iso,
            "VmDiskFileInfo" => FileKind::Disk,
            _ => FileKind::Other,
        };
        let bytes = info.file_size.and_then(|bytes| bytes.try_into().ok());
        Self { path: directory.join(&info.path), kind, bytes, modified: info.modification }
    }
}

impl DatastoreObserver {
    /// What is in a directory; `None` if there is no such directory. `pattern` may have `*` and `?`.
    pub async fn list(
        &self,
        directory: &DatastorePath,
        pattern: Option<&str>,
    ) -> Result<Option<Vec<DatastoreFile>>, FileError> {
        let call = SearchDatastoreTask {
            this: self.browser.clone(),
            datastore_path: directory.to_string(),
            search_spec: Some(search_spec(pattern)),
        };
        let result = self.search(directory, self.observer.submit_read(&call).await).await?;
        Ok(result.map(|result| found(directory, &result)))
    }

    /// As [`DatastoreObserver::list`], with all directories below.
    pub async fn list_below(
        &self,
        directory: &DatastorePath,
        pattern: Option<&str>,
    ) -> Result<Option<Vec<DatastoreFile>>, FileError> {
        let call = SearchDatastoreSubFoldersTask {
            this: self.browser.clone(),
            datastore_path: directory.to_string(),
            search_spec: Some(search_spec(pattern)),
        };
        let result = self.search(directory, self.observer.submit_read(&call).await).await?;
        Ok(result
            .map(|result| result.items().iter().flat_map(|item| found(directory, item)).collect()))
    }

    /// One file or directory; `None` if there is none of that name.
    pub async fn stat(&self, path: &DatastorePath) -> Result<Option<DatastoreFile>, FileError> {
        // The name is a pattern to the server, so that what else it matches is left out here.
        let files = self.list(&path.parent(), Some(path.file_name())).await?;
        Ok(files.into_iter().flatten().find(|file| file.path == *path))
    }

    pub async fn exists(&self, path: &DatastorePath) -> Result<bool, FileError> {
        self.stat(path).await.map(|file| file.is_some())
    }

    async fn search(
        &self,
        directory: &DatastorePath,
        submitted: Result<Task, CallError>,
    ) -> Result<Option<Value>, FileError> {
        let path = || directory.to_string();
        let task = match submitted {
            Ok(task) => task,
            Err(error) if error.is_fault("FileNotFound") => return Ok(None),
            Err(source) => {
                return Err(FileError::Call { step: FileStep::List, path: path(), source });
            }
        };
        match task.wait().await {
            Ok(result) => Ok(result),
            Err(TaskError::Failed { fault, .. }) if fault.fault.is("FileNotFound") => Ok(None),
            Err(source) => Err(FileError::Task { step: FileStep::List, path: path(), source }),
        }
    }
}

fn search_spec(pattern: Option<&str>) -> HostDatastoreBrowserSearchSpec {
    HostDatastoreBrowserSearchSpec {
        details: Some(FileQueryFlags {
            file_type: true,
            file_size: true,
            modification: true,
            file_owner: true,
        }),
        // Not every server takes no pattern for any.
        match_pattern: vec![pattern.unwrap_or("*").into()],
        ..Default::default()
    }
}

/// The files of one directory's result, which says itself which directory that is.
fn found(asked: &DatastorePath, result: &Value) -> Vec<DatastoreFile> {
    let Some(result) = result.as_data::<HostDatastoreBrowserSearchResults>() else {
        return Vec::new();
    };
    let directory = result.folder_path.as_deref().and_then(|path| path.parse().ok());
    let directory = directory.unwrap_or_else(|| asked.clone());
    result.file.iter().map(|info| DatastoreFile::new(&directory, info)).collect()
}

#[cfg(test)]
mod tests {
    use roost_vim_wire::{MoRef, MoType, encode_request};

    use super::*;
    use crate::device::compact;

    #[test]
    fn a_search_is_written_as_it_was_recorded() {
        let call = SearchDatastoreTask {
            this: MoRef::new(MoType::HostDatastoreBrowser, "hostdatastorebrowser-60"),
            datastore_path: "[LocalDS_0] iso/a/b".into(),
            search_spec: Some(search_spec(Some("boot.iso"))),
        };
        let xml = String::from_utf8(encode_request(&call, None)).unwrap();
        let sample = compact(
            r#"<SearchDatastore_Task xmlns="urn:vim25"><_this type="HostDatastoreBrowser">hostdatastorebrowser-60</_this><datastorePath>[LocalDS_0] iso/a/b</datastorePath>
            <searchSpec><details><fileType>true</fileType><fileSize>true</fileSize><modification>true</modification><fileOwner>true</fileOwner></details>
            <matchPattern>boot.iso</matchPattern></searchSpec></SearchDatastore_Task>"#,
        );
        assert!(xml.contains(&sample), "{xml}");
    }

    #[test]
    fn results_are_placed_where_they_were_found() {
        let iso = FileInfo {
            path: "boot.iso".into(),
            file_size: Some(9),
            ..FileInfo::of("IsoImageFileInfo")
        };
        let result = HostDatastoreBrowserSearchResults {
            folder_path: Some("[LocalDS_0] iso/a/".into()),
            file: vec![iso, FileInfo { path: "sub".into(), ..FileInfo::of("FolderFileInfo") }],
            ..Default::default()
        };
        let files = found(&DatastorePath::new("LocalDS_0", "iso"), &Value::data(result));
        assert_eq!(files[0].path.to_string(), "[LocalDS_0] iso/a/boot.iso");
        assert_eq!((files[0].kind, files[0].bytes), (FileKind::Iso, Some(9)));
        assert_eq!(files[1].kind, FileKind::Directory);
    }
}
