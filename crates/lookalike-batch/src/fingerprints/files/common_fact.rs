//! The fact that all files of a job have in common, such as their scheme or the number of bits.

/// A fact about the contents of files, with the name of the first that states it.
pub(crate) struct CommonFact<T>(Option<(String, T)>);

impl<T> Default for CommonFact<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Copy> CommonFact<T> {
    /// Returns the fact, if a file states it.
    pub(crate) fn get(&self) -> Option<T> {
        self.0.as_ref().map(|(_, fact)| *fact)
    }

    /// Returns the fact with the name of its file.
    pub(crate) fn named(&self) -> Option<(&str, T)> {
        self.0.as_ref().map(|(name, fact)| (name.as_str(), *fact))
    }

    /// Adds what another file states, if anything, unless `ensure` refuses it next to the first.
    pub(crate) fn agree<E>(
        &mut self,
        name: &str,
        stated: Option<T>,
        ensure: impl Fn(Option<(&str, T)>, Option<(&str, T)>) -> Result<(), E>,
    ) -> Result<(), E> {
        let stated = stated.map(|fact| (name, fact));
        ensure(self.named(), stated)?;
        if self.0.is_none() {
            self.0 = stated.map(|(name, fact)| (name.to_owned(), fact));
        }
        Ok(())
    }
}
