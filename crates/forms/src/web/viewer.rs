/// The person or program that looks at the questions of a store and acts on them. The pages know no more of it than this.
pub trait Viewer: Clone + Send + Sync + 'static {
    /// Makes the viewer of a site that signs browsers in by links, whose acts are recorded in these words.
    fn from_link(by: String) -> Self;

    /// Returns the words under which the acts of the viewer are recorded.
    fn by(&self) -> String;

    /// Returns the login that forms are bound to; `None` on a site of one person.
    fn session(&self) -> Option<&str> {
        None
    }

    /// Returns the party whose open pages are counted together; the words of the viewer's acts unless there is one.
    fn holder(&self) -> String {
        self.by()
    }

    /// Returns the name at the head of the pages; `None` on a site of one person.
    fn name(&self) -> Option<&str> {
        None
    }
}

/// The only person of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnlyViewer {
    by: String,
}

impl Viewer for OnlyViewer {
    fn from_link(by: String) -> Self {
        Self { by }
    }

    fn by(&self) -> String {
        self.by.clone()
    }
}
