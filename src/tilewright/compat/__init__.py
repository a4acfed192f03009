"""Other tools' interfaces, so that scripts written for them run with one changed import."""
