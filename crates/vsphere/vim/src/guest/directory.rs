use roost_vim_wire::methods::{DeleteFileInGuest, ListFilesInGuest, MakeDirectoryInGuest};
use roost_vim_wire::types::GuestFileInfo;

use super::error::{GuestError, GuestStep};
use super::{Guest, GuestObserver};
use crate::Faulted;

/// A file, directory or link in a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestFile {
    pub path: String,
    /// `file`, `directory` or `symlink`.
    pub kind: String,
    pub bytes: u64,
    /// The mode of a file on Linux.
    pub permissions: Option<u32>,
}

impl From<GuestFileInfo> for GuestFile {
    fn from(info: GuestFileInfo) -> Self {
        Self {
            path: info.path,
            kind: info.kind,
            bytes: info.size.try_into().unwrap_or_default(),
            permissions: info.attributes.permissions.and_then(|mode| mode.try_into().ok()),
        }
    }
}

impl GuestObserver {
    /// What is in a directory, or the one file that `path` names; all pages of it.
    pub async fn list_files(&self, path: &str) -> Result<Vec<GuestFile>, GuestError> {
        let mut files: Vec<GuestFile> = Vec::new();
        loop {
            let call = ListFilesInGuest {
                this: self.managers.file_manager.clone(),
                vm: self.vm.clone(),
                auth: self.credentials.to_wire(),
                file_path: path.into(),
                index: files.len().try_into().ok(),
                max_results: None,
                match_pattern: None,
            };
            let page = self.read(GuestStep::ListFiles, &call).await?;
            let is_last = page.remaining <= 0 || page.files.is_empty();
            files.extend(page.files.into_iter().map(GuestFile::from));
            if is_last {
                return Ok(files);
            }
        }
    }
}

impl Guest {
    /// Makes a directory with those above it. Succeeds when it is there.
    pub async fn make_directory(&self, path: &str) -> Result<(), GuestError> {
        let call = MakeDirectoryInGuest {
            this: self.managers.file_manager.clone(),
            vm: self.vm.clone(),
            auth: self.credentials.to_wire(),
            directory_path: path.into(),
            create_parent_directories: true,
        };
        match self.change(GuestStep::MakeDirectory, &call).await {
            Err(error) if error.already_exists() => Ok(()),
            other => other,
        }
    }

    /// Deletes a file. Succeeds when it is gone.
    pub async fn delete_file(&self, path: &str) -> Result<(), GuestError> {
        let call = DeleteFileInGuest {
            this: self.managers.file_manager.clone(),
            vm: self.vm.clone(),
            auth: self.credentials.to_wire(),
            file_path: path.into(),
        };
        match self.change(GuestStep::DeleteFile, &call).await {
            Err(error) if error.is_fault("FileNotFound") => Ok(()),
            other => other,
        }
    }
}
