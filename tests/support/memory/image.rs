//! State of folders and files, and the changes between states.

use std::collections::BTreeMap;

/// Number of a file or folder. The root folder has 0.
pub(super) type Node = usize;

/// One change that can be lost on its own.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// Assigns a name in a folder, or removes it.
    Name {
        folder: Node,
        name: String,
        node: Option<Node>,
    },
    /// Renames within a folder. Both names change, or neither.
    Rename {
        folder: Node,
        from: String,
        to: String,
        node: Node,
    },
    Write {
        node: Node,
        offset: usize,
        bytes: Vec<u8>,
    },
    Cut {
        node: Node,
        length: usize,
    },
    Sync {
        node: Node,
    },
}

impl Change {
    /// The file or folder whose fsync makes the change durable.
    pub(super) fn node(&self) -> Node {
        match self {
            Self::Name { folder, .. } | Self::Rename { folder, .. } => *folder,
            Self::Write { node, .. } | Self::Cut { node, .. } | Self::Sync { node } => *node,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Content {
    Folder(BTreeMap<String, Node>),
    File(Vec<u8>),
}

#[derive(Clone, Debug)]
pub(super) struct Image(pub(super) Vec<Content>);

impl Image {
    fn names(&mut self, folder: Node) -> &mut BTreeMap<String, Node> {
        match &mut self.0[folder] {
            Content::Folder(names) => names,
            Content::File(_) => panic!("a file among folders"),
        }
    }

    pub(super) fn apply(&mut self, change: &Change) {
        match change {
            Change::Name { folder, name, node: Some(node) } => {
                self.names(*folder).insert(name.clone(), *node);
            }
            Change::Name { folder, name, node: None } => {
                self.names(*folder).remove(name);
            }
            Change::Rename { folder, from, to, node } => {
                self.names(*folder).remove(from);
                self.names(*folder).insert(to.clone(), *node);
            }
            Change::Write { node, offset, bytes } => {
                if let Content::File(content) = &mut self.0[*node] {
                    content.resize(content.len().max(offset + bytes.len()), 0);
                    content[*offset..offset + bytes.len()].copy_from_slice(bytes);
                }
            }
            Change::Cut { node, length } => {
                if let Content::File(content) = &mut self.0[*node] {
                    content.resize(*length, 0);
                }
            }
            Change::Sync { .. } => {}
        }
    }
}
