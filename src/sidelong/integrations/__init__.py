"""sidelong inside other packages: one file a package, which that file alone imports."""
