"""A package, so that pytest puts the repository on the path and not this folder, whose `losses` would hide ours."""
