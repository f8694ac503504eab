"""How a database comes from one version of the schema to the next."""
