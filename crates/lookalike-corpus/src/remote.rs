//! Arguments that name objects of a store: `s3://bucket/crawl/*.warc.gz`, `gs://`, `az://`, `http(s)://`.
//!
//! Objects are copied to the spool directory once, as standard input is, for everything is read twice and a store
//! charges for each. In builds with the Cargo feature `cloud`.

use std::ffi::OsStr;
use std::fmt;

/// What a store must know, by the names of the usual environment variables in lower case: `aws_endpoint`, ... Holds
/// secrets: shown nowhere.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct StoreSettings(pub Vec<(String, String)>);

impl fmt::Debug for StoreSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreSettings")
    }
}

const SCHEMES: [&str; 11] = [
    "s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss", "http", "https", "r2",
];

/// The argument as a URL of an object store, if it is one.
pub(crate) fn url(argument: &OsStr) -> Option<&str> {
    let text = argument.to_str()?;
    let (scheme, _) = text.split_once("://")?;
    SCHEMES
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known))
        .then_some(text)
}

/// The last part of a URL's path: what says the format.
pub(crate) fn file_name(url: &str) -> &str {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default()
}

#[cfg(feature = "cloud")]
pub(crate) use store::{Object, fetch};

#[cfg(feature = "cloud")]
mod store {
    use std::fmt::Display;
    use std::fs::File;
    use std::io::Write;
    use std::path::{Path, PathBuf};

    use futures_util::TryStreamExt;
    use object_store::path::Path as Location;
    use object_store::{ObjectStore, ObjectStoreExt, ObjectStoreScheme, parse_url_opts};
    use url::Url;
    use xxhash_rust::xxh3::Xxh3;

    use super::StoreSettings;

    /// An object, copied.
    pub(crate) struct Object {
        pub(crate) url: String,
        pub(crate) copy: PathBuf,
        pub(crate) bytes: u64,
        /// XXH3-64 of its bytes.
        pub(crate) hash: u64,
    }

    /// Where objects are, and which are meant.
    struct Place {
        store: Box<dyn ObjectStore>,
        location: Location,
        /// None where one object is named.
        listing: Option<Listing>,
    }

    /// Several objects of a store.
    struct Listing {
        /// The URL before the path of a location.
        base: String,
        /// What locations must look like.
        pattern: globset::GlobMatcher,
    }

    /// Why there is no object.
    pub(crate) struct Refused {
        /// To be read after the URL.
        pub(crate) reason: String,
        pub(crate) remedy: &'static str,
    }

    impl Refused {
        /// By the store, or on the way to it.
        fn by_store(error: impl Display) -> Refused {
            let words = error.to_string();
            Refused {
                reason: words.split_whitespace().collect::<Vec<_>>().join(" "),
                remedy: "check the address, and for a store its settings in the environment (AWS_..., AZURE_..., GOOGLE_...)",
            }
        }

        fn here(reason: String) -> Refused {
            Refused {
                reason,
                remedy: "look at the directory for temporary files, or choose another with --tmp",
            }
        }
    }

    /// Copies what a URL names into `spool`, in the order of names: one object, all below a path that ends in `/`, or
    /// those that a `*` stands for. `number` tells apart the copies of several calls.
    pub(crate) fn fetch(
        url: &str,
        settings: &StoreSettings,
        spool: &Path,
        number: usize,
    ) -> Result<Vec<Object>, Refused> {
        // TLS needs one for the process; an error says that there is one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| Refused::here(error.to_string()))?;
        runtime.block_on(async {
            let place = place(url, settings)?;
            let mut objects = Vec::new();
            for location in locations(&place).await.map_err(Refused::by_store)? {
                let url = match &place.listing {
                    Some(listing) => format!("{}{location}", listing.base),
                    None => url.to_owned(),
                };
                let copy = spool.join(format!("object-{number}-{}", objects.len()));
                let object = copied(&*place.store, &location, url, copy).await?;
                objects.push(object);
            }
            Ok(objects)
        })
    }

    fn place(url: &str, settings: &StoreSettings) -> Result<Place, Refused> {
        let whole = url.contains('*') || url.ends_with('/');
        // A store is found by what stands before the first pattern.
        let plain = match url.find('*') {
            Some(star) => &url[..=url[..star].rfind('/').unwrap_or(0)],
            None => url,
        };
        let parsed = Url::parse(plain).map_err(Refused::by_store)?;
        let (scheme, _) = ObjectStoreScheme::parse(&parsed).map_err(Refused::by_store)?;
        let mut settings = settings.0.clone();
        if scheme == ObjectStoreScheme::Http {
            check_http(&parsed, whole)?;
            // Who writes `http:` means it.
            settings.push(("allow_http".to_owned(), "true".to_owned()));
        }
        let (store, location) = parse_url_opts(&parsed, settings).map_err(Refused::by_store)?;
        let listing = match whole {
            true => Some(listing(url, plain, &location)?),
            false => None,
        };
        Ok(Place {
            store,
            location,
            listing,
        })
    }

    /// What a plain web address cannot be here.
    fn check_http(url: &Url, whole: bool) -> Result<(), Refused> {
        const FETCH: &str = "let another program fetch it, and pass its content through `-`";
        let (reason, remedy) = if whole {
            ("HTTP has no list of files", "name each of them")
        } else if url.query().is_some() {
            ("an address with a query is not read", FETCH)
        } else if url.password().is_some() {
            ("the password in it would stand in the results", FETCH)
        } else {
            return Ok(());
        };
        Err(Refused {
            reason: reason.to_owned(),
            remedy,
        })
    }

    /// Which objects `url` means, of which `plain` is the part without patterns, and `location` what that names.
    fn listing(url: &str, plain: &str, location: &Location) -> Result<Listing, Refused> {
        let base = plain.strip_suffix('/').unwrap_or(plain);
        let base = base.strip_suffix(location.as_ref()).unwrap_or(base);
        let base = format!("{}/", base.strip_suffix('/').unwrap_or(base));
        let rest = url.strip_prefix(&base).unwrap_or_default();
        let below = if rest.is_empty() || rest.ends_with('/') {
            "**"
        } else {
            ""
        };
        let pattern = globset::GlobBuilder::new(&format!("{rest}{below}"))
            .literal_separator(true)
            .build();
        let pattern = pattern.map_err(Refused::by_store)?;
        Ok(Listing {
            base,
            pattern: pattern.compile_matcher(),
        })
    }

    /// The objects that are meant, by name.
    async fn locations(place: &Place) -> object_store::Result<Vec<Location>> {
        let Some(listing) = &place.listing else {
            return Ok(vec![place.location.clone()]);
        };
        let listed = place.store.list(Some(&place.location));
        let listed: Vec<_> = listed.try_collect().await?;
        let found = listed
            .into_iter()
            .filter(|meta| meta.size > 0 && listing.pattern.is_match(meta.location.as_ref()));
        let mut found: Vec<Location> = found.map(|meta| meta.location).collect();
        found.sort();
        Ok(found)
    }

    async fn copied(
        store: &dyn ObjectStore,
        location: &Location,
        url: String,
        copy: PathBuf,
    ) -> Result<Object, Refused> {
        let failed = |error: object_store::Error| Refused::by_store(error);
        let local = |error: std::io::Error| Refused::here(format!("{}: {error}", copy.display()));
        let mut parts = store.get(location).await.map_err(failed)?.into_stream();
        let mut file = File::create(&copy).map_err(local)?;
        let (mut hasher, mut bytes) = (Xxh3::new(), 0);
        while let Some(part) = parts.try_next().await.map_err(failed)? {
            hasher.update(&part);
            bytes += part.len() as u64;
            file.write_all(&part).map_err(local)?;
        }
        Ok(Object {
            url,
            copy,
            bytes,
            hash: hasher.digest(),
        })
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
        assert_eq!(
            file_name("https://a.example/b/c.warc.gz?token=a/b"),
            "c.warc.gz"
        );
    }

    #[test]
    fn secrets_are_not_shown() {
        let settings = StoreSettings(vec![("aws_secret_access_key".into(), "hush".into())]);
        assert_eq!(format!("{settings:?}"), "StoreSettings");
    }
}
