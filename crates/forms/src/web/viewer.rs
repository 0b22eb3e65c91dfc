/// The person or program that views the questions of a store and acts on them. The pages use nothing else of it.
pub trait Viewer: Clone + Send + Sync + 'static {
    /// Creates the viewer of a site that signs browsers in by links, whose actions are recorded under this name.
    fn from_link(by: String) -> Self;

    /// Returns the name under which the viewer's actions are recorded.
    fn by(&self) -> String;

    /// Returns the login that forms are bound to; `None` on a site of one person.
    fn session(&self) -> Option<&str> {
        None
    }

    /// Returns the party whose open pages are counted together; by default the name of its actions.
    fn holder(&self) -> String {
        self.by()
    }

    /// Returns the name shown on the pages; `None` on a site of one person.
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
