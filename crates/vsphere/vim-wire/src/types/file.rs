//! Datastore browsing.

use jiff::Timestamp;

use crate::{Element, MoRef};

data! {
    struct HostDatastoreBrowserSearchSpec {
        query: Vec<Element>,
        details: Option<FileQueryFlags>,
        search_case_insensitive "searchCaseInsensitive": Option<bool>,
        match_pattern "matchPattern": Vec<String>,
        sort_folders_first "sortFoldersFirst": Option<bool>,
    }

    struct FileQueryFlags {
        file_type "fileType": bool,
        file_size "fileSize": bool,
        modification: bool,
        file_owner "fileOwner": bool,
    }

    struct HostDatastoreBrowserSearchResults {
        datastore: Option<MoRef>,
        folder_path "folderPath": Option<String>,
        file: Vec<FileInfo>,
    }

    /// A `FolderFileInfo`, `IsoImageFileInfo`, `VmDiskFileInfo` and so on.
    open FileInfo {
        path: String,
        friendly_name "friendlyName": Option<String>,
        file_size "fileSize": Option<i64>,
        modification: Option<Timestamp>,
        owner: Option<String>,
    }
}
