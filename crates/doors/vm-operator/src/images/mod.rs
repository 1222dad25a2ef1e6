//! Images: how their objects are named, what they are, and which one a name means.

mod descriptor;
pub mod ovf;

use std::fmt::Write as _;

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

pub(crate) use descriptor::{CONTENT_VERSION, Descriptors, VALUE, stored_descriptor};

use crate::api::vm::ImageReference;
use crate::api::{ClusterVirtualMachineImage, ImageType, VirtualMachineImage};

/// What names of image objects begin with.
pub const PREFIX: &str = "vmi-";
/// How many hex digits of the hash a name has.
const DIGITS: usize = 17;

/// The first 17 hex digits of the SHA-1 of a text. Names, no security.
pub fn short_hash(text: &str) -> String {
    let mut hex = String::new();
    for byte in digest(&SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()).as_ref() {
        let _ = write!(hex, "{byte:02x}");
    }
    hex.truncate(DIGITS);
    hex
}

/// The name of the object for a library item, by the item's uuid.
pub fn image_name(item_id: &str) -> String {
    format!("{PREFIX}{}", short_hash(&item_id.replace('-', "")))
}

/// The directory of an image's files on a datastore, by the image's name, the storage policy and the version of its content.
pub fn cache_directory(image_name: &str, profile_id: &str, version: &str) -> String {
    let mut directory = format!("{image_name}-{}", short_hash(profile_id));
    if !version.is_empty() {
        let _ = write!(directory, "-{}", short_hash(version));
    }
    directory
}

/// The name of a cached file: its own is hashed, what kind of file it is stays visible.
pub fn cache_file_name(file_name: &str) -> String {
    let base = file_name.rsplit('/').next().unwrap_or(file_name);
    match base.rsplit_once('.') {
        Some((stem, extension)) => format!("{}.{extension}", short_hash(stem)),
        None => short_hash(base),
    }
}

/// Whether a file is of this kind, in whatever case its name is written.
pub(crate) fn has_extension(file_name: &str, extension: &str) -> bool {
    file_name.rsplit_once('.').is_some_and(|(_, own)| own.eq_ignore_ascii_case(extension))
}

/// What a library item or a template is as an image. Items of other kinds are none.
pub fn image_type(item_type: &str) -> Option<ImageType> {
    match item_type.to_ascii_lowercase().as_str() {
        "ovf" | "ova" => Some(ImageType::Ovf),
        "iso" => Some(ImageType::Iso),
        "vm-template" | "vm" => Some(ImageType::Vm),
        _ => None,
    }
}

/// Is this image made of a VM in the inventory, rather than of a library item?
pub fn is_vm_backed(provider_item_id: &str) -> bool {
    provider_item_id.starts_with("vm-")
}

/// Properties of an OVF that are the platform's own.
pub fn is_system_property(id: &str) -> bool {
    id.starts_with("vmware-system")
}

/// Why a name means no image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageNameError {
    #[error("no VM image exists for {name:?} in namespace or cluster scope")]
    NotFound { name: String },
    #[error("multiple VM images exist for {name:?}: {}; name one of them", found.join(", "))]
    Ambiguous { name: String, found: Vec<String> },
}

/// An image object, as far as names go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedImage {
    pub name: String,
    pub display_name: String,
}

/// The image that a name means: that of an object (the namespace's before the cluster's), or the display name of exactly one.
pub fn resolve_image(
    wanted: &str,
    own: &[NamedImage],
    cluster: &[NamedImage],
) -> Result<ImageReference, ImageNameError> {
    let reference = |kind: &str, image: &NamedImage| ImageReference {
        kind: kind.to_owned(),
        name: image.name.clone(),
    };
    let scopes = [(VirtualMachineImage::KIND, own), (ClusterVirtualMachineImage::KIND, cluster)];
    if wanted.starts_with(PREFIX) {
        let found = scopes.iter().find_map(|(kind, images)| {
            let image = images.iter().find(|image| image.name == wanted)?;
            Some(reference(kind, image))
        });
        return found.ok_or_else(|| ImageNameError::NotFound { name: wanted.to_owned() });
    }
    let matching = scopes.iter().flat_map(|(kind, images)| {
        let named = images.iter().filter(|image| image.display_name == wanted);
        named.map(|image| reference(kind, image))
    });
    let found: Vec<ImageReference> = matching.collect();
    match &found[..] {
        [only] => Ok(only.clone()),
        [] => Err(ImageNameError::NotFound { name: wanted.to_owned() }),
        several => Err(ImageNameError::Ambiguous {
            name: wanted.to_owned(),
            found: several.iter().map(|image| format!("{}/{}", image.kind, image.name)).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_beginning_of_a_hash() {
        // printf %s "$(uuid without dashes)" | sha1sum | cut -c1-17
        assert_eq!(short_hash(""), "da39a3ee5e6b4b0d3");
        assert_eq!(short_hash("abc"), "a9993e364706816ab");
        let id = "8c8e2a54-2c1a-4a0a-9b3b-0a4ee0f9d0d1";
        assert_eq!(
            image_name(id),
            format!("vmi-{}", short_hash("8c8e2a542c1a4a0a9b3b0a4ee0f9d0d1"))
        );
        assert_eq!(image_name(id).len(), 21);
    }

    #[test]
    fn cached_files_have_names_of_their_own() {
        let (policy, version) = (short_hash("policy"), short_hash("2"));
        assert_eq!(cache_directory("vmi-0", "policy", "2"), format!("vmi-0-{policy}-{version}"));
        assert_eq!(cache_directory("vmi-0", "policy", ""), format!("vmi-0-{policy}"));
        assert_eq!(
            cache_file_name("photon-disk1.vmdk"),
            format!("{}.vmdk", short_hash("photon-disk1"))
        );
        assert_eq!(cache_file_name("a/b.c.nvram"), format!("{}.nvram", short_hash("b.c")));
    }

    #[test]
    fn items_are_images_by_their_type() {
        assert_eq!(image_type("ovf"), Some(ImageType::Ovf));
        assert_eq!(image_type("ISO"), Some(ImageType::Iso));
        assert_eq!(image_type("vm-template"), Some(ImageType::Vm));
        assert_eq!(image_type("file"), None);
        assert!(is_vm_backed("vm-42") && !is_vm_backed("8c8e2a54"));
        assert!(
            is_system_property("vmware-system.tkr.os-version") && !is_system_property("hostname")
        );
    }

    #[test]
    fn a_name_means_one_image_or_none() {
        let image = |name: &str, display: &str| NamedImage {
            name: name.into(),
            display_name: display.into(),
        };
        let own = [image("vmi-1", "ubuntu"), image("vmi-3", "debian")];
        let cluster = [image("vmi-2", "photon"), image("vmi-1", "other"), image("vmi-4", "debian")];
        let found =
            |wanted| resolve_image(wanted, &own, &cluster).map(|image| (image.kind, image.name));
        let own_kind = |name: &str| Ok(("VirtualMachineImage".to_owned(), name.to_owned()));
        let cluster_kind =
            |name: &str| Ok(("ClusterVirtualMachineImage".to_owned(), name.to_owned()));
        assert_eq!(found("vmi-1"), own_kind("vmi-1"));
        assert_eq!(found("vmi-2"), cluster_kind("vmi-2"));
        assert_eq!(found("ubuntu"), own_kind("vmi-1"));
        assert_eq!(found("photon"), cluster_kind("vmi-2"));
        assert!(matches!(found("vmi-9"), Err(ImageNameError::NotFound { .. })));
        let error = found("debian").unwrap_err().to_string();
        assert!(
            error.contains("VirtualMachineImage/vmi-3, ClusterVirtualMachineImage/vmi-4"),
            "{error}"
        );
    }
}
