//! Seed inputs: small, and together covering every feature of a format.

use std::io::Write;

/// Returns the seed inputs of a target.
pub(crate) fn seeds(target: &str) -> Vec<Vec<u8>> {
    match target {
        "html" | "main" => pages(),
        "charset" => charsets(),
        "jsonl" => lines(),
        "csv" => tables(),
        "warc" => vec![warc(), revisits(), pdf_pages()],
        "wat" => vec![wat(), warc()],
        "arc" => vec![arc()],
        "packed" => packed(),
        "bzip2" => lines().iter().map(|lines| bzip2(lines)).collect(),
        "xz" => xz_files(),
        #[cfg(feature = "pdf")]
        "pdf" => pdf(),
        #[cfg(feature = "parquet")]
        "parquet" => columns::parquet(),
        #[cfg(feature = "parquet")]
        "arrow" => columns::arrow(),
        _ => {
            let all = [pages(), charsets(), lines(), packed(), vec![warc(), arc()]];
            all.concat()
        }
    }
}

fn pages() -> Vec<Vec<u8>> {
    let story = "<p>The ferry left the harbour at nine with forty people on board and came back before noon.</p>";
    let article = format!(
        "<!DOCTYPE html><html lang=en><head><meta charset=utf-8><title>Ferry &amp; tide</title>\
         <style>p{{}}</style><script>if (a<b) {{ \"<p>\" }}</script></head><body><nav><ul><li><a href=/>Home</a>\
         <li><a href='/x?a=1&b=2'>News</a></ul></nav><main><article><h1>The ferry</h1>{}<pre>\n a\r\n  b</pre>\
         <blockquote>caf&eacute;&#233;&#xE9;&notit;<br><br>x</blockquote></article></main><aside>ad</aside>\
         <footer hidden>end</footer></body></html>",
        story.repeat(3)
    );
    let odd = "<svg><title>t</title><![CDATA[a<b]]></svg><math><mi>x</mi></math><template><p>no</template>\
               <noscript>no</noscript><textarea>a&lt;</textarea><xmp><b></xmp><table><tr><td>1<td>2<tr><th>3</table>\
               <dl><dt>a<dd>b</dl><img src=a alt=\"an &amp; image\"><area alt=x href=y><!-- c --><!-- d --!><?php?>\
               <a =b c='d\" e=f/><p style=\"display:none\">x<select><option>1</select><plaintext><p>"
        .to_owned();
    let listing: String = (0..30)
        .map(|i| format!("<li><a href=/{i}>Harbour {i}</a> <code>void f{i}(int a)</code></li>"))
        .collect();
    let script =
        "<script><!-- <script> </script> --></script><style></style></p></b><b><i></b></i>"
            .to_owned();
    [article, odd, format!("<ul>{listing}</ul>"), script]
        .into_iter()
        .map(String::into_bytes)
        .collect()
}

fn charsets() -> Vec<Vec<u8>> {
    vec![
        b"\xef\xbb\xbfplain".to_vec(),
        b"\xff\xfea\0b\0".to_vec(),
        b"<meta charset=windows-1252>caf\xe9 \x93x\x94".to_vec(),
        b"<meta http-equiv=content-type content='text/html; charset=shift_jis'>\x82\xa0\x82\xa2"
            .to_vec(),
        b"\x1b$B$\"\x1b(B".to_vec(),
        "gr\u{fc}\u{df}e \u{4f60}\u{597d} \u{420}\u{443}\u{441}\u{441}"
            .as_bytes()
            .to_vec(),
        b"\xc4\xe3\xba\xc3\xca\xc0\xbd\xe7 GB".to_vec(),
    ]
}

fn lines() -> Vec<Vec<u8>> {
    vec![
        b"{\"id\":1,\"text\":\"one\"}\r\n\n{\"url\":\"http://a.example/\",\"html\":\"<p>two\"}\n{\"text\":null}\n[1]\n{".to_vec(),
        b"\xef\xbb\xbf{\"text\":\"\\ud83d\\ude00 \\ud800 \\u0000\",\"a\":{\"b\":[1.5e300,true,null]},\"text\":\"again\"}".to_vec(),
        "{\"id\":\"\u{e9}\",\"text\":\"\u{4f60}\u{597d}\"}\n \t\n{\"id\":{},\"text\":5}\n".as_bytes().to_vec(),
    ]
}

fn tables() -> Vec<Vec<u8>> {
    vec![
        b"id,text\n1,one\n2,\"two, \"\"quoted\"\"\nand broken\"\n3\n4,a,b\n".to_vec(),
        b"\xef\xbb\xbftext;x\r\na;b\r\n".to_vec(),
        b"a,a,\n,,\n\"".to_vec(),
    ]
}

/// Builds an HTTP response with these additional header lines.
fn response(head: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n{head}\r\n");
    [head.as_bytes(), body].concat()
}

fn record(kind: &str, block: &[u8]) -> Vec<u8> {
    let head = format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://a.example/1\r\nWARC-Date: 2024-01-01T00:00:00Z\r\n\
         WARC-Record-ID: <urn:uuid:1>\r\nContent-Type: application/http; msgtype={kind}\r\nContent-Length: {}\r\n\r\n",
        block.len()
    );
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

fn warc() -> Vec<u8> {
    let page = b"<html><p>a page of the archive";
    [
        record("warcinfo", b"software: x\r\n"),
        record("response", &response("", page)),
        record(
            "response",
            &response(
                "Transfer-Encoding: chunked\r\n",
                b"1e\r\n<html><p>a page of the archive\r\n0\r\n\r\n",
            ),
        ),
        record(
            "response",
            &response("Content-Encoding: gzip\r\n", &gzip(page)),
        ),
        record(
            "response",
            &response("Content-Encoding: br\r\n", b"\x0b\x02\x80hello\x03"),
        ),
        record("conversion", b"plain text of a page"),
    ]
    .concat()
}

fn revisits() -> Vec<u8> {
    [
        record("request", b"GET / HTTP/1.1\r\n\r\n"),
        record("revisit", b"HTTP/1.1 304 Not Modified\r\n\r\n"),
        record("metadata", b"{\"Container\":{}}"),
        record("resource", b"\x89PNG\r\n\x1a\n\0"),
        record(
            "response",
            b"HTTP/1.1 404 Not Found\nContent-Type: text/html\n\n<p>no",
        ),
    ]
    .concat()
}

/// Returns a record with a PDF, and one with invalid bytes declared as PDF.
fn pdf_pages() -> Vec<u8> {
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\r\n".as_slice();
    let story = include_bytes!("../fixtures/story.pdf").as_slice();
    [
        record("response", &[head, story].concat()),
        record("response", &[head, b"%PDF-1.7"].concat()),
    ]
    .concat()
}

/// Returns WAT records of a page and of a request, and one that is not JSON.
fn wat() -> Vec<u8> {
    let page = br#"{"Envelope":{"WARC-Header-Metadata":{"WARC-Date":"2024-01-01T00:00:00Z"},"Payload-Metadata":{"HTTP-Response-Metadata":
        {"Response-Message":{"Status":"200"},"Headers":{"Content-Type":"text/html"},"HTML-Metadata":{"Head":{"Title":"The ferry",
        "Metas":[{"name":"description","content":"It left."}]},"Links":[{"path":"A@/href","url":"/1","text":"tide"}]}}}}}"#;
    let json = |block: &[u8]| {
        let head = format!(
            "WARC/1.0\r\nWARC-Type: metadata\r\nWARC-Target-URI: http://a.example/1\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            block.len()
        );
        [head.as_bytes(), block, b"\r\n\r\n"].concat()
    };
    [
        json(page),
        json(br#"{"Envelope":{"Payload-Metadata":{}}}"#),
        json(b"{"),
    ]
    .concat()
}

fn arc() -> Vec<u8> {
    let block = response("", b"<html><p>an old page");
    let version = "1 0 Crawler\nURL IP-address Archive-date Content-type Archive-length\n\n";
    let mut bytes = format!(
        "filedesc://a.arc 0.0.0.0 20080101000000 text/plain {}\n{version}\nhttp://a.example/ 192.0.2.1 20080102000000 text/html {}\n",
        version.len(),
        block.len()
    )
    .into_bytes();
    bytes.extend(block);
    bytes.push(b'\n');
    bytes
}

fn packed() -> Vec<Vec<u8>> {
    let members: Vec<Vec<u8>> = [
        record("response", &response("", b"<p>one")),
        record("response", &response("", b"<p>two")),
    ]
    .iter()
    .map(|record| gzip(record))
    .collect();
    let frames = [zstd(&warc()), zstd(&revisits())].concat();
    vec![members.concat(), gzip(&warc()), frames]
}

#[cfg(feature = "pdf")]
fn pdf() -> Vec<Vec<u8>> {
    let page = b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n2 0 obj\n<< /Type /Pages /Count 1 /Kids [3 0 R] >>\n\
        endobj\n3 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>\n\
        endobj\n4 0 obj\n<< /Length 70 >>\nstream\nq 1 0 0 1 5 5 cm BT /F1 9 Tf 10 10 Td (some text) Tj T* [(a) -500 (b)] TJ ET Q\n\
        endstream\nendobj\n5 0 obj\n<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>\nendobj\ntrailer << /Root 1 0 R >>\n";
    vec![
        page.to_vec(),
        include_bytes!("../fixtures/story.pdf").to_vec(),
        include_bytes!("../fixtures/packed.pdf").to_vec(),
        include_bytes!("../fixtures/owned.pdf").to_vec(),
    ]
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 0);
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

/// Returns complete files, two streams in one file, and one whose header requests a window of 4 GiB.
fn xz_files() -> Vec<Vec<u8>> {
    let mut files: Vec<Vec<u8>> = lines().iter().map(|lines| xz(lines)).collect();
    files.push(files.concat());
    let mut greedy = files[0].clone();
    // The header of the first block: length, flags, filter, length and value of its property, padding, checksum.
    greedy[16] = 40;
    let mut sum = flate2::Crc::new();
    sum.update(&greedy[12..20]);
    greedy[20..24].copy_from_slice(&sum.sum().to_le_bytes());
    files.push(greedy);
    files
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("memory")
}

#[cfg(feature = "parquet")]
mod columns {
    use std::sync::Arc;

    use arrow_array::types::Int8Type;
    use arrow_array::{
        ArrayRef, DictionaryArray, Int64Array, RecordBatch, StringArray, StringViewArray,
    };
    use arrow_ipc::CompressionType;
    use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
    use parquet::arrow::ArrowWriter;
    use parquet::basic::{Compression, Encoding, GzipLevel, ZstdLevel};
    use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
    use parquet::schema::types::ColumnPath;

    fn batch() -> RecordBatch {
        let columns: [(&str, ArrayRef); 4] = [
            (
                "id",
                Arc::new(Int64Array::from(vec![Some(1), None, Some(3)])),
            ),
            (
                "text",
                Arc::new(StringArray::from(vec![Some("one"), None, Some("three")])),
            ),
            (
                "view",
                Arc::new(StringViewArray::from(vec![
                    "a",
                    "b",
                    "a longer text than fits inline",
                ])),
            ),
            (
                "kind",
                Arc::new(
                    ["x", "y", "x"]
                        .into_iter()
                        .collect::<DictionaryArray<Int8Type>>(),
                ),
            ),
        ];
        RecordBatch::try_from_iter(columns).expect("columns of one length")
    }

    /// Returns texts that every codec compresses.
    fn packable() -> RecordBatch {
        let text = |start: &str| {
            format!(
                "{start} {}",
                "the ferry left the harbour at nine ".repeat(12)
            )
        };
        let texts: Vec<String> = ["one", "two", "one"]
            .iter()
            .map(|start| text(start))
            .collect();
        let columns: [(&str, ArrayRef); 2] = [
            ("id", Arc::new(Int64Array::from(vec![7; 3]))),
            ("text", Arc::new(StringArray::from(texts))),
        ];
        RecordBatch::try_from_iter(columns).expect("columns of one length")
    }

    fn parquet_of(batch: &RecordBatch, properties: WriterPropertiesBuilder) -> Vec<u8> {
        let properties = properties.set_max_row_group_row_count(Some(2)).build();
        let writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties));
        let mut writer = writer.expect("a schema");
        writer.write(batch).expect("memory");
        writer.into_inner().expect("memory")
    }

    /// Returns files with every codec of this build, every encoding of texts, and both versions of pages.
    pub(super) fn parquet() -> Vec<Vec<u8>> {
        let properties = WriterProperties::builder;
        let codecs = [
            Compression::SNAPPY,
            Compression::GZIP(GzipLevel::default()),
            Compression::LZ4,
            Compression::LZ4_RAW,
            Compression::ZSTD(ZstdLevel::default()),
        ];
        let encodings = [
            Encoding::PLAIN,
            Encoding::DELTA_LENGTH_BYTE_ARRAY,
            Encoding::DELTA_BYTE_ARRAY,
        ];
        let packed = codecs
            .into_iter()
            .map(|codec| parquet_of(&packable(), properties().set_compression(codec)));
        let encoded = encodings.into_iter().map(|encoding| {
            let text = || ColumnPath::from("text");
            let properties = properties()
                .set_column_dictionary_enabled(text(), false)
                .set_column_encoding(text(), encoding)
                .set_writer_version(WriterVersion::PARQUET_2_0);
            parquet_of(&packable(), properties)
        });
        let plain = parquet_of(&batch(), properties());
        let brotli = [
            include_bytes!("../fixtures/brotli.parquet").to_vec(),
            include_bytes!("../fixtures/brotli-v2.parquet").to_vec(),
        ];
        std::iter::once(plain)
            .chain(packed)
            .chain(encoded)
            .chain(brotli)
            .collect()
    }

    /// Returns files and streams, uncompressed and with both codecs.
    pub(super) fn arrow() -> Vec<Vec<u8>> {
        let codecs = [
            None,
            Some(CompressionType::LZ4_FRAME),
            Some(CompressionType::ZSTD),
        ];
        let write = |codec: Option<CompressionType>| {
            let batch = if codec.is_some() { packable() } else { batch() };
            let options = || {
                let options = IpcWriteOptions::default().try_with_compression(codec);
                options.expect("built in")
            };
            let file = FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options());
            let mut file = file.expect("a schema");
            file.write(&batch).expect("memory");
            let stream = StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options());
            let mut stream = stream.expect("a schema");
            stream.write(&batch).expect("memory");
            [
                file.into_inner().expect("memory"),
                stream.into_inner().expect("memory"),
            ]
        };
        codecs.into_iter().flat_map(write).collect()
    }
}
