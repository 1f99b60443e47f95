//! Arguments that name objects of a store: `s3://bucket/crawl/*.warc.gz`, `gs://`, `az://`, `http(s)://`.
//!
//! Like standard input, objects are copied to the spool directory once, because everything is read twice and stores charge for each access. Needs the
//! Cargo feature `cloud`.
//!
//! The part after the bucket is the literal name of an object, as in the tools of the stores: every object can be named, and results name it like
//! that. Only `*` and a `/` at the end are special. Web addresses are URLs, where `%20` is a blank.

use std::ffi::OsStr;
use std::fmt;

/// Settings of object stores, named like the usual environment variables in lower case: `aws_endpoint`, ... They include secrets, so they are never
/// displayed.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct StoreSettings(pub Vec<(String, String)>);

impl fmt::Debug for StoreSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreSettings")
    }
}

const WEB: [&str; 2] = ["http", "https"];
const STORES: [&str; 8] = ["s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss"];

/// Returns the argument as a URL of an object store, if it is one.
pub(crate) fn url(argument: &OsStr) -> Option<&str> {
    let text = argument.to_str()?;
    (has_scheme(text, &WEB) || has_scheme(text, &STORES)).then_some(text)
}

/// Returns the last part of a URL's path, which tells the format.
pub(crate) fn file_name(url: &str) -> &str {
    let path = match has_scheme(url, &WEB) {
        true => url.split(['?', '#']).next().unwrap_or_default(),
        false => url,
    };
    path.rsplit('/').next().unwrap_or_default()
}

fn has_scheme(url: &str, schemes: &[&str]) -> bool {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        schemes
            .iter()
            .any(|known| scheme.eq_ignore_ascii_case(known))
    })
}

/// Returns the error for an object in a build that does not read stores.
#[cfg(not(feature = "cloud"))]
pub(crate) fn store_support_missing(url: &str) -> crate::error::InputError {
    crate::error::InputError::Unsupported {
        name: url.to_owned(),
        reason: "an object of a store, which needs a build with the Cargo feature `cloud`"
            .to_owned(),
        remedy: "install lookalike with the feature `full`, or copy it here first".to_owned(),
        is_convertible: false,
    }
}

#[cfg(feature = "cloud")]
pub(crate) use store::{FetchedObject, RemoteObject, fetch, list};

#[cfg(feature = "cloud")]
mod store {
    use std::ffi::OsStr;
    use std::fs::File;
    use std::io::Write;
    use std::path::{Path, PathBuf};

    use futures_util::{StreamExt, TryStreamExt, stream};
    use object_store::path::Path as Location;
    use object_store::{
        GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt, ObjectStoreScheme,
        parse_url_opts,
    };
    use url::Url;
    use xxhash_rust::xxh3::Xxh3;

    use super::{StoreSettings, WEB, has_scheme};
    use crate::error::InputError;
    use crate::glob;

    /// An object, copied.
    pub(crate) struct RemoteObject {
        pub(crate) url: String,
        pub(crate) copy: PathBuf,
        pub(crate) bytes: u64,
        /// XXH3-64 of its bytes.
        pub(crate) hash: u64,
    }

    /// An object that a URL names.
    pub(crate) enum FetchedObject {
        Copied(RemoteObject),
        /// The URL of an object that is bookkeeping of a table and was not copied.
        Bookkeeping(String),
    }

    /// The address of one object, or of all objects below a prefix.
    #[derive(Debug)]
    struct StoreAddress {
        kind: StoreKind,
        /// The URL that identifies the store to the library.
        store: Url,
        /// The object, or the folder that contains all listed objects.
        location: Location,
        /// `None` if a single object is named.
        listing: Option<ObjectListing>,
    }

    impl StoreAddress {
        /// Returns the URL of one of the objects that `url` names.
        fn url_of(&self, url: &str, location: &Location) -> String {
            match &self.listing {
                Some(listing) => format!("{}{location}", listing.base),
                None => url.to_owned(),
            }
        }

        /// Returns true if an object is bookkeeping of a table, in a folder that the URL does not name.
        fn leaves_out(&self, url: &str, object: &str) -> bool {
            let is_named = |name: &str| {
                let mut parts = url.split('/').filter(|part| part.starts_with('_'));
                parts.any(|part| glob::matches(part, name.as_bytes()))
            };
            let is_left_out =
                |name: &str| glob::is_bookkeeping(OsStr::new(name)) && !is_named(name);
            self.listing.is_some() && object.split('/').any(is_left_out)
        }
    }

    /// A listing of several objects of a store.
    #[derive(Debug)]
    struct ObjectListing {
        /// The part of a URL before the name of an object.
        base: String,
        /// The pattern that names must match.
        pattern: String,
    }

    impl ObjectListing {
        fn names(&self, object: &str) -> bool {
            glob::matches(&self.pattern, object.as_bytes())
        }
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum StoreKind {
        S3,
        Google,
        Azure,
        Web,
    }

    impl StoreKind {
        fn of(scheme: &ObjectStoreScheme) -> StoreKind {
            match scheme {
                ObjectStoreScheme::AmazonS3 => StoreKind::S3,
                ObjectStoreScheme::GoogleCloudStorage => StoreKind::Google,
                ObjectStoreScheme::MicrosoftAzure => StoreKind::Azure,
                _ => StoreKind::Web,
            }
        }

        /// Returns the remedy if the store refuses access.
        fn remedy(self) -> &'static str {
            match self {
                StoreKind::S3 => {
                    "check the address (for all below a folder it ends with /) and the environment: AWS_ACCESS_KEY_ID, \
                     AWS_SECRET_ACCESS_KEY and AWS_REGION; AWS_ENDPOINT, and AWS_ALLOW_HTTP=true if it has no TLS, for a \
                     server other than Amazon's; AWS_SKIP_SIGNATURE=true for what is public"
                }
                StoreKind::Google => {
                    "check the address (for all below a folder it ends with /) and the environment: GOOGLE_SERVICE_ACCOUNT \
                     or GOOGLE_APPLICATION_CREDENTIALS, the path of a file with a key; GOOGLE_BASE_URL for a server other \
                     than Google's; GOOGLE_SKIP_SIGNATURE=true for what is public"
                }
                StoreKind::Azure => {
                    "check the address (for all below a folder it ends with /) and the environment: \
                     AZURE_STORAGE_ACCOUNT_NAME, with AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_KEY; \
                     AZURE_STORAGE_ENDPOINT, and AZURE_ALLOW_HTTP=true if it has no TLS, for a server other than \
                     Microsoft's; AZURE_SKIP_SIGNATURE=true for what is public"
                }
                StoreKind::Web => FETCH,
            }
        }

        /// Describes an error that occurred for `name` in the store, or on the way to it.
        fn refused(self, name: &str, error: impl Into<object_store::Error>) -> StoreRefusal {
            let error = error.into();
            let remedy = match error {
                object_store::Error::InvalidPath { .. } => UNREADABLE_NAME,
                _ => self.remedy(),
            };
            StoreRefusal {
                is_missing: matches!(error, object_store::Error::NotFound { .. }),
                ..StoreRefusal::new(name, one_line(&error.to_string()), Some(remedy))
            }
        }
    }

    const UNREADABLE_NAME: &str = "an object with an empty folder, . or .. in its name cannot be read: copy it here first, or name a folder \
                           without such objects";
    const FETCH: &str =
        "check it, or fetch it with another program and pass its content through `-`";

    /// Returns the start of a server's message as one line, because servers may answer with a page.
    fn one_line(words: &str) -> String {
        const MAX_MESSAGE_BYTES: usize = 600;
        let words: Vec<_> = words
            .split(|c: char| c.is_whitespace() || c.is_control())
            .filter(|word| !word.is_empty())
            .collect();
        let line = words.join(" ");
        let line = line.trim_end_matches([':', ' ']);
        match line.char_indices().nth(MAX_MESSAGE_BYTES) {
            Some((end, _)) => format!("{}...", &line[..end]),
            None => line.to_owned(),
        }
    }

    /// Reason why an object could not be fetched.
    #[derive(Debug)]
    pub(crate) struct StoreRefusal {
        /// The object, or the argument.
        pub(crate) name: String,
        pub(crate) reason: String,
        /// `None` if the failure is that of this machine.
        remedy: Option<&'static str>,
        /// True if the store answered that there is no such object.
        pub(crate) is_missing: bool,
    }

    impl From<StoreRefusal> for InputError {
        fn from(refused: StoreRefusal) -> Self {
            let StoreRefusal { name, reason, .. } = refused;
            match refused.remedy {
                Some(remedy) => Self::Remote {
                    name,
                    reason,
                    remedy,
                },
                None => Self::Copy { name, reason },
            }
        }
    }

    impl StoreRefusal {
        fn new(name: &str, reason: String, remedy: Option<&'static str>) -> StoreRefusal {
            StoreRefusal {
                name: name.to_owned(),
                reason,
                remedy,
                is_missing: false,
            }
        }
    }

    /// Number of objects that are copied at a time: stores limit the rate of a connection, not of a client.
    const TRANSFERS: usize = 8;

    /// Copies the objects that a URL names into `spool`, sorted by name: one object, all below a path that ends in `/`, or those that match a `*`. A
    /// missing object appears as a refusal among the others: it was removed after the listing. Bookkeeping of tables is not copied. `number`
    /// distinguishes the copies of several calls.
    pub(crate) fn fetch(
        url: &str,
        settings: &StoreSettings,
        spool: &Path,
        number: usize,
    ) -> Result<Vec<Result<FetchedObject, StoreRefusal>>, StoreRefusal> {
        on_objects(url, settings, async |store, address, locations| {
            // Numbers, not object names, which may contain slashes, exceed the length of a file name, or differ only in case.
            let copy = |index| spool.join(format!("object-{number}-{index}"));
            fetch_all(url, store, address, &locations, &copy).await
        })
    }

    /// Fetches the objects at these locations. `copy` returns the path for the copy of each.
    async fn fetch_all(
        url: &str,
        store: &dyn ObjectStore,
        address: &StoreAddress,
        locations: &[Location],
        copy: &dyn Fn(usize) -> PathBuf,
    ) -> Result<Vec<Result<FetchedObject, StoreRefusal>>, StoreRefusal> {
        let objects = locations.iter().enumerate().map(|(index, location)| {
            let (object, copy) = (address.url_of(url, location), copy(index));
            async move {
                if address.leaves_out(url, &object) {
                    return Ok(FetchedObject::Bookkeeping(object));
                }
                let copied = copy_object(store, address, location, object, copy).await;
                copied.map(FetchedObject::Copied)
            }
        });
        let objects = stream::iter(objects).buffered(TRANSFERS);
        let objects = objects.map(|object| match object {
            Err(refusal) if !refusal.is_missing => Err(refusal),
            object => Ok(object),
        });
        objects.try_collect().await
    }

    /// Returns the URLs of the objects that [`fetch`] would copy. A URL that names a single object is not looked up.
    pub(crate) fn list(url: &str, settings: &StoreSettings) -> Result<Vec<String>, StoreRefusal> {
        on_objects(url, settings, async |_, address, locations| {
            let objects = locations.iter();
            let objects = objects.map(|location| address.url_of(url, location));
            Ok(objects
                .filter(|object| !address.leaves_out(url, object))
                .collect())
        })
    }

    /// Runs `work` on the store that a URL names and the objects selected there.
    fn on_objects<T>(
        url: &str,
        settings: &StoreSettings,
        work: impl AsyncFnOnce(
            &dyn ObjectStore,
            &StoreAddress,
            Vec<Location>,
        ) -> Result<T, StoreRefusal>,
    ) -> Result<T, StoreRefusal> {
        let address = address(url)?;
        // TLS needs one provider per process; an error means that there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| StoreRefusal::new(url, error.to_string(), None))?;
        runtime.block_on(async {
            let refused = |error| address.kind.refused(url, error);
            let store = open(&address, settings).map_err(refused)?;
            let locations = locations(&*store, &address).await.map_err(refused)?;
            work(&*store, &address, locations).await
        })
    }

    fn address(argument: &str) -> Result<StoreAddress, StoreRefusal> {
        let address = match has_scheme(argument, &WEB) {
            true => web_address(argument),
            false => object_address(argument),
        };
        address.map_err(|(reason, remedy)| {
            StoreRefusal::new(&without_secrets(argument), reason, Some(remedy))
        })
    }

    /// Cuts what may be secret out of an address, because refusals are logged.
    fn without_secrets(argument: &str) -> String {
        match Url::parse(argument) {
            Ok(mut url) if has_scheme(argument, &WEB) || url.password().is_some() => {
                url.set_query(None);
                // Fails without a host, and then there is no user either.
                let _ = url.set_username("").and_then(|()| url.set_password(None));
                url.into()
            }
            // Where the secret begins is unknown if the rest makes no sense.
            Err(_) if argument.contains(['@', '?']) => {
                let scheme = argument.split_once("://").map_or("", |(scheme, _)| scheme);
                format!("{scheme}://...")
            }
            _ => argument.to_owned(),
        }
    }

    /// A reason and a remedy.
    type ReasonAndRemedy = (String, &'static str);

    /// Parses the URL of a file on the web, or the web address of an object in a store.
    fn web_address(argument: &str) -> Result<StoreAddress, ReasonAndRemedy> {
        let url = Url::parse(argument).map_err(|error| (error.to_string(), FETCH))?;
        let refused = if argument.contains('*') || argument.ends_with('/') {
            let remedy = "name each file, or objects of a store by s3://, gs:// or az://";
            Some(("a web address cannot list files", remedy))
        } else if url.query().is_some() {
            // Queries contain signatures of stores, which would appear in names of sources and so in all results.
            Some(("an address with a query is not read", FETCH))
        } else if url.password().is_some() || !url.username().is_empty() {
            // The name of a user is often a token.
            Some((
                "the user or password in it would appear in the results",
                FETCH,
            ))
        } else {
            None
        };
        if let Some((reason, remedy)) = refused {
            return Err((reason.to_owned(), remedy));
        }
        let parsed = ObjectStoreScheme::parse(&url);
        let (scheme, location) = parsed.map_err(|error| (error.to_string(), FETCH))?;
        Ok(StoreAddress {
            kind: StoreKind::of(&scheme),
            store: url,
            location,
            listing: None,
        })
    }

    /// Parses `s3://BUCKET/NAME` and the like.
    fn object_address(argument: &str) -> Result<StoreAddress, ReasonAndRemedy> {
        const SHAPE: &str = "write it as s3://BUCKET/PATH";
        let (scheme, rest) = argument.split_once("://").unwrap_or_default();
        let (bucket, path) = rest.split_once('/').unwrap_or((rest, ""));
        // Do not parse the name as part of a URL: it may contain `#`, `?` and `%`.
        let store = Url::parse(&format!("{scheme}://{bucket}/"));
        let store = store.map_err(|error| (error.to_string(), SHAPE))?;
        if store.query().is_some() || store.fragment().is_some() || store.host_str().is_none() {
            return Err(("there is no bucket in it".to_owned(), SHAPE));
        }
        if store.password().is_some() {
            let reason = "the password in it would appear in the results".to_owned();
            return Err((reason, "give it in the environment"));
        }
        // There is no slash after the bucket: a user who forgot the name does not mean the whole bucket.
        if rest == bucket {
            let reason = "names a bucket, not an object".to_owned();
            return Err((reason, "end it with / for all that is in the bucket"));
        }
        let parsed = ObjectStoreScheme::parse(&store).map_err(|error| (error.to_string(), SHAPE));
        let kind = StoreKind::of(&parsed?.0);
        if path.starts_with('/') {
            // The library would remove the slash, and read another object.
            return Err((
                "its name begins with an empty folder".to_owned(),
                UNREADABLE_NAME,
            ));
        }
        let folder = match path.find('*') {
            // Stores list by prefixes of whole folders, so take the last one before the first star.
            Some(star) => &path[..path[..star].rfind('/').map_or(0, |slash| slash + 1)],
            None => path,
        };
        let location =
            Location::parse(folder).map_err(|error| (error.to_string(), UNREADABLE_NAME))?;
        let listing = match path.contains('*') || argument.ends_with('/') {
            true => Some(ObjectListing {
                base: format!("{scheme}://{bucket}/"),
                pattern: pattern(path),
            }),
            false => None,
        };
        Ok(StoreAddress {
            kind,
            store,
            location,
            listing,
        })
    }

    /// Converts a path to a pattern in which only `*` is special, and `/` at the end stands for everything below.
    fn pattern(path: &str) -> String {
        let mut pattern = String::with_capacity(path.len());
        for character in path.chars() {
            if matches!(character, '?' | '[' | ']' | '{' | '}' | '!' | '\\') {
                pattern.push('\\');
            }
            pattern.push(character);
        }
        if path.is_empty() || path.ends_with('/') {
            pattern.push_str("**");
        }
        pattern
    }

    fn open(
        address: &StoreAddress,
        settings: &StoreSettings,
    ) -> object_store::Result<Box<dyn ObjectStore>> {
        // The default of the library, 30 seconds, applies to a whole transfer, however large, but only silence must be limited. These come first, so
        // that the environment can override them.
        let ours = [("timeout", "1week"), ("read_timeout", "30s")];
        let ours = ours.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let mut settings: Vec<_> = ours.into_iter().chain(settings.0.clone()).collect();
        if address.kind == StoreKind::Web {
            // The user wrote `http:` deliberately. Placed after the user's settings, because the last of two settings with the same name counts.
            settings.push(("allow_http".to_owned(), "true".to_owned()));
        }
        Ok(parse_url_opts(&address.store, settings)?.0)
    }

    /// Returns the selected objects, sorted by name.
    async fn locations(
        store: &dyn ObjectStore,
        address: &StoreAddress,
    ) -> object_store::Result<Vec<Location>> {
        let Some(listing) = &address.listing else {
            return Ok(vec![address.location.clone()]);
        };
        // The whole listing is in memory, some hundred bytes per object: it must be sorted, because stores do not guarantee an order.
        let listed: Vec<_> = store.list(Some(&address.location)).try_collect().await?;
        Ok(matching(listed, listing))
    }

    /// Returns the listed objects whose names match, in order.
    fn matching(mut listed: Vec<ObjectMeta>, listing: &ObjectListing) -> Vec<Location> {
        listed.sort_by(|a, b| a.location.cmp(&b.location));
        // Web consoles create an object of size 0 for a folder; the library removes the slash from its name.
        let is_folder = |meta: &ObjectMeta| {
            let below = format!("{}/", meta.location);
            let next = listed.partition_point(|other| name(other) < &*below);
            let next = listed.get(next);
            meta.size == 0 && next.is_some_and(|next| name(next).starts_with(&below))
        };
        let is_meant = |meta: &&ObjectMeta| listing.names(name(meta)) && !is_folder(meta);
        let meant = listed.iter().filter(is_meant);
        meant.map(|meta| meta.location.clone()).collect()
    }

    fn name(meta: &ObjectMeta) -> &str {
        meta.location.as_ref()
    }

    async fn copy_object(
        store: &dyn ObjectStore,
        address: &StoreAddress,
        location: &Location,
        url: String,
        copy: PathBuf,
    ) -> Result<RemoteObject, StoreRefusal> {
        let failed = |error: object_store::Error| address.kind.refused(&url, error);
        let local = |error: std::io::Error| {
            StoreRefusal::new(&url, format!("{}: {error}", copy.display()), None)
        };
        let whole = store.get(location).await.map_err(failed)?;
        let (size, tag) = (whole.meta.size, whole.meta.e_tag.clone());
        let mut parts = whole.into_stream();
        let mut file = File::create(&copy).map_err(local)?;
        // A resumed job recognizes the object by this hash, because the copy has no modification time of the original.
        let (mut hasher, mut bytes, mut resumed_at) = (Xxh3::new(), 0, 0);
        loop {
            match parts.try_next().await {
                Ok(Some(part)) => {
                    hasher.update(&part);
                    bytes += part.len() as u64;
                    file.write_all(&part).map_err(local)?;
                }
                Ok(None) => break,
                // The library counts its attempts over the whole transfer: ten interruptions of a large transfer would end it, and any after three
                // minutes. Asking again is worthwhile as long as bytes arrived.
                Err(error) => {
                    // Without a tag, the rest may be of another object. Each attempt must deliver something, so that a server that only disconnects
                    // does not hold the job.
                    let is_worth_it = tag.is_some() && bytes > resumed_at && bytes < size;
                    resumed_at = bytes;
                    let options = GetOptions {
                        range: Some(GetRange::Bounded(bytes..size)),
                        ..GetOptions::default()
                    };
                    if !is_worth_it {
                        return Err(failed(error));
                    }
                    match store.get_opts(location, options).await {
                        Ok(rest) if rest.meta.e_tag == tag => parts = rest.into_stream(),
                        Err(missing @ object_store::Error::NotFound { .. }) => {
                            // The partial copy is useless; if it remains, it is removed with the directory.
                            let _ = std::fs::remove_file(&copy);
                            return Err(failed(missing));
                        }
                        // The object was replaced meanwhile, or the store does not answer.
                        _ => return Err(failed(error)),
                    }
                }
            }
        }
        Ok(RemoteObject {
            url,
            copy,
            bytes,
            hash: hasher.digest(),
        })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn named(argument: &str) -> (StoreKind, String, Option<ObjectListing>) {
            let address = address(argument).expect(argument);
            (address.kind, address.location.to_string(), address.listing)
        }

        #[test]
        fn a_name_in_a_store_is_no_url() {
            for name in ["100% #1?.txt", "a%20b", "[1]/{x}", "a\\b", "é+&=;", "a b"] {
                for scheme in ["s3", "gs", "az", "abfss"] {
                    let (_, location, listing) = named(&format!("{scheme}://data/{name}"));
                    assert_eq!(location, name);
                    assert!(listing.is_none());
                    let (_, folder, listing) = named(&format!("{scheme}://data/{name}/"));
                    assert_eq!(folder, name);
                    let listing = listing.expect("a folder");
                    assert_eq!(listing.base, format!("{scheme}://data/"));
                    assert!(listing.names(&format!("{name}/x/y")));
                    assert!(!listing.names(name));
                }
            }
        }

        #[test]
        fn a_name_in_the_web_is_a_url() {
            let (kind, location, _) = named("https://a.example/x/a%20b%23.txt#top");
            assert_eq!((kind, location.as_str()), (StoreKind::Web, "x/a b#.txt"));
            let (kind, location, _) = named("https://u.blob.core.windows.net/data/a%20b");
            assert_eq!((kind, location.as_str()), (StoreKind::Azure, "a b"));
            let (kind, location, _) = named("https://data.s3.amazonaws.com/x/y");
            assert_eq!((kind, location.as_str()), (StoreKind::S3, "x/y"));
        }

        #[test]
        fn a_star_stands_for_names_and_two_for_folders() {
            for (pattern, folder, fits, fits_not) in [
                ("a/*.gz", "a", "a/x.gz", "a/b/x.gz"),
                ("a/x*", "a", "a/xy", "a/yx"),
                ("**/*.gz", "", "a/b/x.gz", "a/b/x"),
                ("a/**/x", "a", "a/b/c/x", "a/b/c/y"),
                ("a[1]/*?", "a[1]", "a[1]/b?", "a1/bc"),
                ("", "", "a/b", ""),
            ] {
                let (_, location, listing) = named(&format!("gs://data/{pattern}"));
                assert_eq!(location, folder);
                let listing = listing.expect("several");
                assert!(listing.names(fits), "{pattern}");
                assert!(fits_not.is_empty() || !listing.names(fits_not), "{pattern}");
            }
        }

        #[test]
        fn an_object_of_no_bytes_was_passed_over_in_silence() {
            let object = |name: &str, size| ObjectMeta {
                location: Location::parse(name).expect(name),
                last_modified: Default::default(),
                size,
                e_tag: None,
                version: None,
            };
            let listed = [
                ("a/empty.jsonl", 0),
                ("a/b-c.txt", 3),
                ("a/b/x.txt", 3),
                ("a/b", 0),
                ("a/b.txt", 3),
            ];
            let listed = listed.map(|(name, size)| object(name, size)).to_vec();
            let (_, _, listing) = named("s3://data/a/");
            let found = matching(listed, &listing.expect("a folder"));
            let found: Vec<_> = found.iter().map(Location::to_string).collect();
            let expected = ["a/b-c.txt", "a/b.txt", "a/b/x.txt", "a/empty.jsonl"];
            assert_eq!(found, expected);
        }

        #[test]
        fn bookkeeping_of_tables_was_copied_before_it_was_left_out() {
            let store = object_store::memory::InMemory::new();
            let spool = tempfile::tempdir().expect("a folder");
            let copy = |index: usize| spool.path().join(index.to_string());
            let names = [
                "t/_SUCCESS",
                "t/_temporary/0/part-0.jsonl",
                "t/part-0.jsonl",
            ];
            let locations = names.map(Location::from);
            let address = |url: &str| address(url).expect(url);
            let fetched = async |url: &'static str| {
                let fetched = fetch_all(url, &store, &address(url), &locations, &copy).await;
                let fetched = fetched.unwrap_or_default().into_iter();
                fetched.map(|object| match object {
                    Ok(FetchedObject::Copied(object)) => object.url,
                    Ok(FetchedObject::Bookkeeping(_)) => "left out".to_owned(),
                    Err(refusal) => refusal.reason,
                })
            };
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            runtime.expect("a runtime").block_on(async {
                for location in &locations {
                    let put = store.put(location, "{}".into()).await;
                    put.expect("an object");
                }
                let found: Vec<_> = fetched("s3://data/t/").await.collect();
                assert_eq!(found, ["left out", "left out", "s3://data/t/part-0.jsonl"]);
                assert_eq!(std::fs::read_dir(spool.path()).expect("copies").count(), 1);
                // A folder that the URL names is read.
                let found: Vec<_> = fetched("s3://data/t/_temporary/0/").await.collect();
                assert_eq!(found[1], "s3://data/t/_temporary/0/part-0.jsonl");
            });
        }

        #[test]
        fn names_that_the_library_cannot_read_have_a_remedy_of_their_own() {
            let refused = address("s3://data/a//b").expect_err("an empty folder");
            assert_eq!(refused.remedy, Some(UNREADABLE_NAME));
            let listed = Location::parse("a//b").expect_err("an empty folder");
            assert_eq!(
                StoreKind::S3.refused("s3://data/", listed).remedy,
                Some(UNREADABLE_NAME)
            );
        }

        #[test]
        fn secrets_in_addresses_and_half_addresses_are_refused() {
            for (argument, reason) in [
                ("https://a.example/b?token=hush", "query"),
                ("https://u.blob.core.windows.net/data/b?sig=hush", "query"),
                (
                    "https://data.s3.amazonaws.com/b?X-Amz-Signature=hush",
                    "query",
                ),
                ("https://name:hush@a.example/b", "password"),
                ("https://hush@a.example/b", "user"),
                ("s3://key:hush@data/b", "password"),
                // These do not parse, because what looks like a port is none.
                ("s3://key:hush/hush@data/b", "port"),
                ("https://name:hush@a.example:99999/b", "port"),
                ("https://a.example:99999/b?token=hush", "port"),
                ("https://a.example/b/", "cannot list files"),
                (
                    "https://u.blob.core.windows.net/data/*",
                    "cannot list files",
                ),
                ("s3://data", "names a bucket"),
                ("s3://", "no bucket"),
                ("az:///a", "no bucket"),
                ("gs://data?x/a", "no bucket"),
                ("s3://data/a//b", "empty path segment"),
                ("s3://data//b", "empty folder"),
                ("s3://data//", "empty folder"),
                ("s3://data//*", "empty folder"),
                ("s3://data/../b", "illegal"),
            ] {
                let refused = address(argument).expect_err(argument);
                assert!(refused.reason.contains(reason), "{refused:?}");
                // The rest of the address is shown.
                assert!(!refused.name.contains("hush"), "{refused:?}");
                assert!(
                    refused.name == argument || argument.contains("hush"),
                    "{refused:?}"
                );
            }
        }

        #[test]
        fn a_refusal_names_the_variables_of_its_store_alone() {
            let prefixes = ["AWS_", "GOOGLE_", "AZURE_"];
            for (address, own) in [
                ("s3://data/a", "AWS_"),
                ("gs://data/a", "GOOGLE_"),
                ("az://data/a", "AZURE_"),
                ("https://a.example/a", "-"),
            ] {
                let (kind, ..) = named(address);
                let remedy = kind.remedy();
                for prefix in prefixes {
                    assert_eq!(remedy.contains(prefix), prefix == own, "{remedy}");
                }
            }
        }

        #[test]
        fn a_servers_page_is_cut_and_cannot_steer_a_terminal() {
            let page = format!("404\r\n<p>\u{1b}[2J{}", "é ".repeat(1000));
            let reason = one_line(&page);
            assert!(reason.starts_with("404 <p> [2Jé é"), "{reason}");
            assert_eq!(reason.chars().count(), 603);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_told_from_files() {
        assert_eq!(url(OsStr::new("s3://a/b")), Some("s3://a/b"));
        assert_eq!(url(OsStr::new("HTTPS://a/b")), Some("HTTPS://a/b"));
        for file in ["a/b", "s3:/a", "c://x", "-", "ftp://a/b"] {
            assert_eq!(url(OsStr::new(file)), None);
        }
    }

    #[test]
    fn a_name_in_a_store_may_have_marks_of_urls() {
        let web = "https://a.example/b/c.warc.gz?token=a/b";
        assert_eq!(file_name(web), "c.warc.gz");
        assert_eq!(file_name("s3://a/b/#1?.warc.gz"), "#1?.warc.gz");
    }

    #[test]
    fn secrets_are_not_shown() {
        let settings = StoreSettings(vec![("aws_secret_access_key".into(), "hush".into())]);
        assert_eq!(format!("{settings:?}"), "StoreSettings");
    }
}
