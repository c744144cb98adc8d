"""One file per family of formats; `ltenet.io` chooses among them by suffix."""
