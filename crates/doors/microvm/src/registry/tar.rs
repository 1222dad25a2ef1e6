//! Just enough of the POSIX tar format for snapshot archives: flat names, regular files, PAX records. Streamed, never held.

use std::collections::BTreeMap;
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

const BLOCK: usize = 512;
/// What eleven octal digits hold: 8 GiB. Larger sizes stand in a PAX record.
const LARGEST: u64 = 0o777_7777_7777;
/// PAX records of a sparse file list its pieces; a disk in a million pieces is not a disk.
const LONGEST_RECORDS: u64 = 64 * 1024 * 1024;

/// One file of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Entry {
    /// Without its folders.
    pub(crate) name: String,
    /// Bytes in the archive.
    pub(crate) size: u64,
    pub(crate) mode: u32,
    pub(crate) records: BTreeMap<String, String>,
}

/// Reads entries one after the other. The content of each must be read before the next is asked for.
pub(crate) struct Reader<R> {
    from: R,
    /// Of the current entry: content not read yet, and padding behind it.
    left: u64,
    padding: u64,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { from, left: 0, padding: 0 }
    }

    /// The next regular file; `None` at the end of the archive.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Entry>> {
        let mut records = BTreeMap::new();
        loop {
            self.skip().await?;
            let mut header = [0; BLOCK];
            self.from.read_exact(&mut header).await?;
            if header.iter().all(|byte| *byte == 0) {
                // What follows the end marker is padding of the medium; read it so that the writer can finish.
                tokio::io::copy(&mut self.from, &mut tokio::io::sink()).await?;
                return Ok(None);
            }
            check(&header)?;
            let mut size = number(&header[124..136])?;
            let kind = header[156];
            if kind == b'x' {
                records = self.records(size).await?;
                continue;
            }
            if let Some(real) = records.get("size") {
                size = real.parse().map_err(|_| bad("a size that is no number"))?;
            }
            self.expect(size);
            if kind == b'0' || kind == 0 {
                let path = records.remove("path").map_or_else(|| path(&header), Ok)?;
                let name = path.rsplit('/').next().unwrap_or_default().to_owned();
                if name.is_empty() {
                    return Err(bad("a file without a name"));
                }
                let mode = u32::try_from(number(&header[100..108])? & 0o7777).unwrap_or(0o640);
                return Ok(Some(Entry { name, size, mode, records }));
            }
            // Folders, links and global records are passed over.
            records.clear();
        }
    }

    /// Some content of the current entry; 0 at its end.
    pub(crate) async fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(to.len());
        if most == 0 {
            return Ok(0);
        }
        let count = self.from.read(&mut to[..most]).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= count as u64;
        Ok(count)
    }

    fn expect(&mut self, size: u64) {
        self.left = size;
        self.padding = padding(size);
    }

    async fn skip(&mut self) -> io::Result<()> {
        let wanted = self.left + self.padding;
        (self.left, self.padding) = (0, 0);
        let skipped =
            tokio::io::copy(&mut (&mut self.from).take(wanted), &mut tokio::io::sink()).await?;
        if skipped == wanted { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    async fn records(&mut self, size: u64) -> io::Result<BTreeMap<String, String>> {
        if size > LONGEST_RECORDS {
            return Err(bad("records that are too long"));
        }
        self.expect(size);
        let mut text =
            vec![0; usize::try_from(size).map_err(|_| bad("records that are too long"))?];
        self.from.read_exact(&mut text).await?;
        self.left = 0;
        parse_records(&text).ok_or_else(|| bad("a record that cannot be read"))
    }
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the archive has {what}"))
}

pub(crate) fn padding(size: u64) -> u64 {
    size.next_multiple_of(BLOCK as u64) - size
}

fn path(header: &[u8; BLOCK]) -> io::Result<String> {
    let field = |from: usize, to: usize| {
        let bytes = &header[from..to];
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8(bytes[..end].to_vec()).map_err(|_| bad("a name that is no text"))
    };
    let (name, prefix) = (field(0, 100)?, field(345, 500)?);
    Ok(if prefix.is_empty() { name } else { format!("{prefix}/{name}") })
}

/// Octal text, or for large files a binary number whose first bit is set.
fn number(field: &[u8]) -> io::Result<u64> {
    if field[0] & 0x80 != 0 {
        let tail = &field[field.len() - 8..];
        return Ok(tail.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)));
    }
    let text: String = field.iter().map(|byte| char::from(*byte)).collect();
    let text = text.trim_matches(['\0', ' ']);
    if text.is_empty() {
        Ok(0)
    } else {
        u64::from_str_radix(text, 8).map_err(|_| bad("a number that is none"))
    }
}

/// The sum of all bytes of a header, its own field counted as spaces.
fn sum(header: &[u8; BLOCK]) -> u64 {
    let bytes = header.iter().enumerate();
    bytes.map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u64::from(*byte) }).sum()
}

fn check(header: &[u8; BLOCK]) -> io::Result<()> {
    if number(&header[148..156])? == sum(header) {
        Ok(())
    } else {
        Err(bad("a header with a wrong sum"))
    }
}

/// `LENGTH KEY=VALUE\n`, length of the whole included.
fn parse_records(mut text: &[u8]) -> Option<BTreeMap<String, String>> {
    let mut records = BTreeMap::new();
    while !text.is_empty() {
        let space = text.iter().position(|byte| *byte == b' ')?;
        let length: usize = std::str::from_utf8(&text[..space]).ok()?.parse().ok()?;
        let record = text.get(space + 1..length)?.strip_suffix(b"\n")?;
        let (key, value) = std::str::from_utf8(record).ok()?.split_once('=')?;
        records.insert(key.to_owned(), value.to_owned());
        text = &text[length..];
    }
    Some(records)
}

/// The header blocks of an entry: PAX records first, where it has some or its size needs them.
pub(crate) fn header(entry: &Entry) -> Vec<u8> {
    let mut records = entry.records.clone();
    if entry.size > LARGEST {
        records.insert("size".to_owned(), entry.size.to_string());
    }
    if entry.name.len() > 100 {
        records.insert("path".to_owned(), entry.name.clone());
    }
    let mut blocks = Vec::new();
    if !records.is_empty() {
        let text: Vec<u8> = records.iter().flat_map(|(key, value)| record(key, value)).collect();
        let size = text.len() as u64;
        blocks.extend(block("PaxHeaders/records", size, 0o644, b'x'));
        blocks.extend(text);
        blocks.resize(blocks.len() + usize::try_from(padding(size)).unwrap_or_default(), 0);
    }
    blocks.extend(block(&entry.name, entry.size.min(LARGEST), entry.mode, b'0'));
    blocks
}

/// Two empty blocks.
pub(crate) fn end() -> Vec<u8> {
    vec![0; 2 * BLOCK]
}

fn record(key: &str, value: &str) -> Vec<u8> {
    let rest = format!(" {key}={value}\n");
    // The length counts its own digits, which may make it longer.
    let mut length = rest.len() + 1;
    while length != rest.len() + length.to_string().len() {
        length = rest.len() + length.to_string().len();
    }
    format!("{length}{rest}").into_bytes()
}

fn block(name: &str, size: u64, mode: u32, kind: u8) -> [u8; BLOCK] {
    let mut header = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    let mut end = name.len().min(100);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    put(0, &name.as_bytes()[..end]);
    put(100, format!("{mode:07o}\0").as_bytes());
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    let sum = sum(&header);
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn archive(files: &[(Entry, Vec<u8>)]) -> Vec<u8> {
        let mut all = Vec::new();
        for (entry, content) in files {
            all.extend(header(entry));
            all.extend(content);
            all.resize(all.len().next_multiple_of(BLOCK), 0);
        }
        all.extend(end());
        all
    }

    async fn read_all(bytes: &[u8]) -> io::Result<Vec<(Entry, Vec<u8>)>> {
        let mut reader = Reader::new(bytes);
        let mut files = Vec::new();
        while let Some(entry) = reader.next().await? {
            let mut content = Vec::new();
            let mut buffer = [0; 100];
            loop {
                let count = reader.read(&mut buffer).await?;
                if count == 0 {
                    break;
                }
                content.extend(&buffer[..count]);
            }
            files.push((entry, content));
        }
        Ok(files)
    }

    fn entry(name: &str, size: usize, records: &[(&str, &str)]) -> Entry {
        let records = records.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Entry { name: name.to_owned(), size: size as u64, mode: 0o640, records }
    }

    #[tokio::test]
    async fn what_is_written_is_read() {
        let map = format!("[{}]", r#"{"o":0,"l":4096},"#.repeat(200));
        let files = vec![
            (entry("snapshot.json", 3, &[]), b"abc".to_vec()),
            (
                entry(
                    "overlay.qcow2",
                    512,
                    &[("COCOON.sparse.map", &map), ("COCOON.sparse.size", "99")],
                ),
                vec![7; 512],
            ),
            (entry(&"n".repeat(130), 0, &[]), Vec::new()),
        ];
        let read = read_all(&archive(&files)).await.unwrap();
        assert_eq!(read, files);
    }

    #[tokio::test]
    async fn a_cut_archive_is_never_whole() {
        let whole = archive(&[(entry("a", 700, &[("k", "v")]), vec![1; 700])]);
        for cut in [0, 1, 511, 600, 1536, 1600, 2236, whole.len() - 1024] {
            assert!(read_all(&whole[..cut]).await.is_err(), "cut at {cut}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2048)) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let _ = runtime.block_on(read_all(&bytes));
        }

        #[test]
        fn records_count_their_own_length(key in "[a-z]{1,9}", value in "[a-z]{0,120}") {
            let text = record(&key, &value);
            let read = parse_records(&text).unwrap();
            prop_assert_eq!(read.get(&key), Some(&value));
        }
    }
}
